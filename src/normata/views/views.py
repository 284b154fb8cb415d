"""Saving, changing and removing views of lists. A member sees their own, and those that are shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from sqlalchemy import ColumnElement, bindparam, delete, func, or_, select

from normata.core.changes.source import Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of
from normata.core.changes.writing import BODY, every_column_of, valid_rows, write_one
from normata.core.db.transaction import Transaction
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import as_wire
from normata.errors import NotFound
from normata.frameworks.model import Control
from normata.identity.authority import require_role
from normata.identity.organization_lookup import reached
from normata.records.archive.queries import KINDS
from normata.views.model import SavedView

LISTS: tuple[str, ...] = (Control.array, *KINDS)

if TYPE_CHECKING:
    ListName = str
else:  # the names are known at run time only
    ListName = Annotated[
        Literal[LISTS], Field(description="The list: `controls`, or a kind of records as in its path, such as `tasks`.")
    ]

CREATION_WRITES = (insert_of(SavedView),)
CHANGE_WRITES = (every_column_of(SavedView),)
REMOVAL_WRITES = (delete_of(SavedView),)


def list_views(transaction: Transaction, user_id: str, query: PageQuery) -> dict[str, Any]:
    """A page of the views that a user sees, by their names; two statements."""
    statement = select(*_TABLE.c).where(_TABLE.c.organization_id == query.organization_id, _seen_by(user_id))
    found = fetch_page(
        transaction, statement, [func.lower(_TABLE.c.name, type_=_TABLE.c.name.type), _TABLE.c.id], query
    )
    return envelope([as_wire(SavedView, row) for row in found.rows], found, query)


def one_view(transaction: Transaction, organization_id: str, user_id: str, view_id: str) -> dict[str, Any]:
    """A view that a user sees. Raises NotFound."""
    row = transaction.row(_FIND, {"view": view_id})
    if row is None or row.organization_id != organization_id or not (row.is_shared or row.user_id == user_id):
        raise NotFound
    return as_wire(SavedView, row)


def create(unit: UnitOfWork, organization: str, body: Mapping[str, Any]) -> Any:
    """Save a view for the actor, and return its row. Raises NotFound, InsufficientRole and FaultyInput.

    To share it takes an editor.
    """
    organization_id = reached(unit, organization)
    if body.get("isShared"):
        require_role(unit, organization_id, "editor")
    ours = {"id": new_id(), "organizationId": organization_id, "userId": unit.actor.user_id}
    return _store(unit, "create", {**body, **ours})


def change(unit: UnitOfWork, view_id: str, body: Mapping[str, Any]) -> Any:
    """Change the fields in ``body`` of a view, and return its row. Raises what :func:`create` raises.

    What was shared, or is from now on, takes an editor. Who stops sharing a view has it for themselves.
    """
    before = _found(unit, view_id, will_be_shared=bool(body.get("isShared")))
    values: dict[str, Any] = {**body, "id": view_id}
    if before.is_shared and body.get("isShared") is False:
        values["userId"] = unit.actor.user_id
    return _store(unit, "update", values, before)


def remove(unit: UnitOfWork, view_id: str) -> None:
    """Remove a view. Raises NotFound, and InsufficientRole where it is shared and the actor is no editor."""
    before = _found(unit, view_id)
    unit.rows(_DELETE, {"view": view_id})
    unit.publish(Change("delete", SavedView, before.organization_id, before.id, before=before._asdict()))


def _found(unit: UnitOfWork, view_id: str, *, will_be_shared: bool = False) -> Any:
    row = unit.row(_LOCK, {"view": view_id})
    if row is None:
        raise NotFound
    unit.require_reach(row.organization_id)
    if not row.is_shared and unit.scope is not None and row.user_id != unit.actor.user_id:
        raise NotFound
    if row.is_shared or will_be_shared:
        require_role(unit, row.organization_id, "editor")
    return row


def _store(unit: UnitOfWork, action: str, values: Mapping[str, Any], before: Any = None) -> Any:
    [pending] = valid_rows(unit, SavedView, [Row(SavedView.array, BODY, "", dict(values))], are_new=before is None)
    if not pending.changed:
        return before
    row = write_one(unit, SavedView, pending)
    known = None if before is None else before._asdict()
    unit.publish(Change(action, SavedView, row.organization_id, row.id, row._asdict(), known))
    return row


_TABLE = sql_table(SavedView)
_FIND = select(*_TABLE.c).where(_TABLE.c.id == bindparam("view"))
_LOCK = _FIND.with_for_update()
_DELETE = delete(_TABLE).where(_TABLE.c.id == bindparam("view"))


def _seen_by(user_id: str) -> ColumnElement[bool]:
    return or_(_TABLE.c.user_id == user_id, _TABLE.c.is_shared)
