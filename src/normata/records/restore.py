"""Restoring a record of any kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from sqlalchemy import (
    ColumnElement,
    FromClause,
    ScalarSelect,
    Select,
    Update,
    bindparam,
    case,
    literal,
    or_,
    select,
    update,
)

from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.db.security import Write
from normata.core.schema.table import sql_table
from normata.core.schema.wire import columns
from normata.errors import NotArchived, NotFound, SlugTaken, Unavailable
from normata.identity.model import Organization
from normata.records.base import Restorable
from normata.records.lookup import found_for_change

_ORGANIZATION = sql_table(Organization)


def restore_writes(kind: type[Restorable]) -> tuple[Write, ...]:
    """The writes of a restore."""
    return (update_of(kind, *_restored_columns(kind)),)


def restore(
    unit: UnitOfWork,
    kind: type[Restorable],
    record_id: str,
    organization_id: str | None = None,
    require_current: Callable[[Any], None] | None = None,
) -> Any:
    """Restore an archived record and return its row. All other fields stay as they were.

    It is one statement, so that of several simultaneous callers exactly one succeeds. ``organization_id`` (null: any)
    must be the id or slug of the record's organization. ``require_current`` (null: no check) gets the row before, and
    raises if that is not the state that the caller knows; this takes one more statement. Raises NotFound (unknown,
    foreign, or of another kind), Forbidden (a role too small), NotArchived and SlugTaken, and then changes nothing.
    """
    before = found_for_change(unit, kind, record_id) if require_current is not None else None
    parameters = {"record": record_id, "organization": organization_id}
    row = unit.row(_restore(kind, organization_id is not None), parameters | {"moment": unit.moment})
    if row is None:
        _refuse(unit, kind, parameters)
    if require_current is not None:
        # After all other checks (RFC 9110, section 13.2.1).
        require_current(before)
    # Publishing checks that the actor may change the row's organization.
    unit.publish(
        Change(
            "restore",
            kind,
            row.organization_id,
            row.id,
            row._asdict(),
            None if before is None else before._asdict(),
            changed=_restored_columns(kind),
        )
    )
    return row


@cache
def _restored_columns(kind: type[Restorable]) -> tuple[str, ...]:
    return ("archived_at", "updated_at") if "updated_at" in kind.sql().c else ("archived_at",)


def _refuse(unit: UnitOfWork, kind: type[Restorable], parameters: dict[str, str | None]) -> NoReturn:
    """Raise the reason why there was nothing to restore, without revealing more than the caller may know."""
    found = unit.row(_find(kind), parameters)
    if found is None:
        raise NotFound
    unit.require_reach(found.organization_id)
    if found.archived_at is None:
        raise NotArchived
    if found.namesake is not None:
        raise SlugTaken(found.namesake)
    # Archived and free now, but not a moment ago: it was changed in between.
    raise Unavailable("the record was changed while it was being restored", "locked")


@cache
def _restore(kind: type[Restorable], names_organization: bool) -> Update:
    table = kind.sql()
    changes: dict[str, Any] = {"archived_at": None}
    if "updated_at" in table.c:
        moment = bindparam("moment", type_=table.c.updated_at.type)
        # If the clock was set back, a record must not be changed before it was created.
        changes["updated_at"] = case((table.c.created_at > moment, table.c.created_at), else_=moment)
    condition = _is_target(table) if names_organization else table.c.id == bindparam("record")
    statement = update(table).where(condition, table.c.archived_at.is_not(None)).values(changes)
    if "slug" in table.c:
        # Two simultaneous restores to one slug both pass here. The unique index accepts one, and the other runs again.
        # An EXISTS would become a join in PostgreSQL, which reads all live records as long as there are no statistics.
        statement = statement.where(_namesake(kind, table).is_(None))
    return statement.returning(*columns(kind))


@cache
def _find(kind: type[Restorable]) -> Select[Any]:
    table = kind.sql()
    namesake = _namesake(kind, table) if "slug" in table.c else literal(None)
    return select(table.c.organization_id, table.c.archived_at, namesake.label("namesake")).where(_is_target(table))


def _is_target(table: FromClause) -> ColumnElement[bool]:
    of_request = bindparam("organization", type_=table.c.organization_id.type)
    named = select(_ORGANIZATION.c.id).where(or_(_ORGANIZATION.c.id == of_request, _ORGANIZATION.c.slug == of_request))
    return (table.c.id == bindparam("record")) & or_(of_request.is_(None), table.c.organization_id.in_(named))


def _namesake(kind: type[Restorable], table: FromClause) -> ScalarSelect[Any]:
    """A live record that has the slug of a row of ``table``; null if there is none."""
    live = kind.sql().alias("live")
    return (
        select(live.c.id)
        .where(
            live.c.organization_id == table.c.organization_id, live.c.slug == table.c.slug, live.c.archived_at.is_(None)
        )
        .correlate(table)
        .limit(1)
        .scalar_subquery()
    )
