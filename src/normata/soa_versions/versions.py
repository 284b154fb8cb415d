"""Making, listing and approving versions of the statement of applicability."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field
from pydantic.alias_generators import to_camel
from sqlalchemy import bindparam, func, select, update

from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow
from normata.core.changes.source import Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.changes.writing import BODY, valid_rows, write_one
from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Identifier
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import listed_columns
from normata.errors import FilesErased, Forbidden, InsufficientRole, NotFound, WrongState
from normata.identity.authority import own_membership, require_role
from normata.identity.organization_lookup import reached
from normata.soa_versions.files import Draft, columns_of, file_faults
from normata.soa_versions.model import FILE_FORMATS, FileFormat, SoaVersion, VersionState, file_column

CREATION_WRITES = (insert_of(SoaVersion),)
APPROVAL_WRITES = (update_of(SoaVersion, "state", "approved_at", "superseded_at"),)

_NOT_APPROVER = "Only the member whom the version names as its approver can approve it."
_NAMING = "To name an approver takes the role admin or owner in the organization."


class VersionQuery(PageQuery):
    """The query of the list of versions."""

    framework_id: Identifier | None = Field(default=None, description="Only the versions of this framework.")
    state: VersionState | None = Field(default=None, description="Only those in this state.")


def present(row: Any) -> dict[str, Any]:
    """The wire form of a version, without its files."""
    return {to_camel(column.name): getattr(row, column.name) for column in listed_columns(SoaVersion)}


def list_versions(transaction: Transaction, query: VersionQuery) -> dict[str, Any]:
    """A page of the versions of an organization, the newest first; two statements."""
    statement = select(*_LISTED).where(_TABLE.c.organization_id == query.organization_id)
    for name in ("framework_id", "state"):
        if (value := getattr(query, name)) is not None:
            statement = statement.where(_TABLE.c[name] == value)
    found = fetch_page(transaction, statement, [_TABLE.c.created_at.desc(), _TABLE.c.id.desc()], query)
    return envelope([present(row) for row in found.rows], found, query)


def one_version(transaction: Transaction, organization_id: str, version_id: str) -> Any:
    """The row of a version of an organization, without its files. Raises NotFound."""
    row = transaction.row(_FIND, {"version": version_id})
    if row is None or row.organization_id != organization_id:
        raise NotFound
    return row


def file_of(transaction: Transaction, version: Any, name: FileFormat) -> bytes | None:
    """The bytes of a version in a format; null if it was made without. Raises FilesErased."""
    if version.erased_at is not None:
        raise FilesErased
    content = transaction.scalar(_FILES[name], {"version": version.id})
    return None if content is None else b64decode(content)


# --- Making one


def draft_of(unit: UnitOfWork, body: Any) -> Draft:
    """What a request wants a version to be made of. Raises NotFound, InsufficientRole and Forbidden."""
    organization_id = reached(unit, body.organization_id)
    if body.approver_id is not None:
        try:
            require_role(unit, organization_id, "admin")
        except InsufficientRole:
            raise Forbidden(_NAMING) from None
    key = {"organization": organization_id, "framework": body.framework_id}
    number = (unit.scalar(_LAST, key) or 0) + 1
    others = tuple(body.other_framework_ids)
    return Draft(organization_id, body.framework_id, others, number, body.title, body.scope, body.approver_id)


def plan(unit: UnitOfWork, body: Any) -> tuple[Draft, Mapping[str, Any]]:
    """What a version is made of, and what follows from that, which takes a while. Raises what :func:`create` raises."""
    draft = draft_of(unit, body)
    return draft, columns_of(unit, draft)


def create(unit: UnitOfWork, body: Any, planned: tuple[Draft, Mapping[str, Any]] | None = None) -> Any:
    """Make a version, and return its row.

    Raises NotFound, InsufficientRole, Forbidden if an approver is named without the role admin, and FaultyInput.
    """
    _lock(unit, reached(unit, body.organization_id))
    draft = draft_of(unit, body)
    # The number is in the files, and another version may have taken it since they were made.
    columns = planned[1] if planned is not None and planned[0] == draft else columns_of(unit, draft)
    values = {
        "id": new_id(),
        "organization_id": draft.organization_id,
        "framework_id": draft.framework_id,
        "number": draft.number,
        "title": draft.title,
        "approver_id": draft.approver_id,
        **columns,
    }
    sent = Row(SoaVersion.array, BODY, "", {to_camel(name): value for name, value in values.items()})
    [pending] = valid_rows(unit, SoaVersion, [sent], are_new=True)
    row = write_one(unit, SoaVersion, pending)
    unit.publish(Change("create", SoaVersion, row.organization_id, row.id, row._asdict()))
    return row


# --- Approving one


def approve(unit: UnitOfWork, version_id: str) -> Any:
    """Approve a version, which supersedes the approved one of its framework, and return its row.

    Raises NotFound, InsufficientRole, Forbidden unless the actor is the member whom it names, WrongState and
    FilesErased.
    """
    found = unit.row(_FIND, {"version": version_id})
    if found is None:
        raise NotFound
    unit.require_reach(found.organization_id)
    _lock(unit, found.organization_id)
    before: Any = unit.row(_FIND, {"version": version_id})
    _require_approver(unit, before)
    if before.state != "DRAFT":
        raise WrongState(before.state, ["DRAFT"])
    if before.erased_at is not None:
        raise FilesErased
    key = {"organization": before.organization_id, "framework": before.framework_id}
    for earlier in unit.rows(_APPROVED, key):
        _move(unit, "supersede", earlier, {"state": "SUPERSEDED", "superseded_at": unit.moment})
    return _move(unit, "approve", before, {"state": "APPROVED", "approved_at": unit.moment})


def _require_approver(unit: UnitOfWork, version: Any) -> None:
    if version.approver_id is None or own_membership(unit, version.organization_id) != version.approver_id:
        raise Forbidden(_NOT_APPROVER)


def _move(unit: UnitOfWork, action: str, before: Any, changed: Mapping[str, Any]) -> Any:
    values = {"approved_at": before.approved_at, "superseded_at": before.superseded_at, **changed}
    row: Any = unit.row(_MOVE, {"version": before.id, **{f"new_{name}": value for name, value in values.items()}})
    unit.publish(Change(action, SoaVersion, row.organization_id, row.id, row._asdict(), before._asdict()))
    return row


def _lock(unit: UnitOfWork, organization_id: str) -> None:
    """Lock the versions of an organization: each has a number of its own, and one of a framework is approved."""
    unit.lock(f"statements of {organization_id}")


# --- Loading some


def check_loaded(_unit: UnitOfWork, rows: Sequence[PendingRow], _references: References) -> None:
    """The rule of loaded versions: their files are those that were hashed."""
    for row in rows:
        if row.changed:
            for column, reason in file_faults(row.after):
                row.add_fault(column, reason)


_TABLE = sql_table(SoaVersion)
_LISTED = [_TABLE.c[column.name] for column in listed_columns(SoaVersion)]
_FIND = select(*_LISTED).where(_TABLE.c.id == bindparam("version"))
_FILES = {name: select(_TABLE.c[file_column(name)]).where(_TABLE.c.id == bindparam("version")) for name in FILE_FORMATS}
_of_framework = (_TABLE.c.organization_id == bindparam("organization")) & (
    _TABLE.c.framework_id == bindparam("framework")
)
_LAST = select(func.max(_TABLE.c.number)).where(_of_framework)
_APPROVED = select(*_LISTED).where(_of_framework, _TABLE.c.state == "APPROVED")
_MOVE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("version"))
    .values(
        {
            name: bindparam(f"new_{name}", type_=_TABLE.c[name].type)
            for name in ("state", "approved_at", "superseded_at")
        }
    )
    .returning(*_LISTED)
)
