"""The responsibilities of a member: every live record and assessment that names them, in any field; and their handover.

A record without a field of a responsible member is there where the member owns it by a link. An assessment is named by
its control, as in its path: the kind is ``controls``, the id that of the control. Assessments of a framework that the
organization has left are not counted, because nobody sees or changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from pydantic import Field
from pydantic.alias_generators import to_camel
from sqlalchemy import ColumnElement, CompoundSelect, Select, and_, bindparam, func, literal_column, select, union_all

from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.changes.writing import BODY
from normata.core.db.security import Write, together
from normata.core.db.transaction import Transaction
from normata.core.db.types import text
from normata.core.http.roles import AUDITOR
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import Table, sql_table
from normata.core.schema.wire import Wire
from normata.coverage.assessments import ASSESSMENT_WRITES, AssessmentInput, assess
from normata.coverage.recompute import lock_coverage
from normata.errors import Archived, HasResponsibilities, NotFound
from normata.frameworks.model import Control, ControlCoverage, FrameworkAdoption
from normata.identity.members import members
from normata.identity.members.members import member_named
from normata.identity.model import Membership
from normata.links.commands import CREATION_WRITES, REMOVAL_WRITES, change_owner, lock_links
from normata.links.model import OWNS, End
from normata.records import assurance as _kinds  # noqa: F401 - importing the kinds registers them in Restorable.kinds
from normata.records.archive.queries import KINDS
from normata.records.base import Restorable
from normata.records.owners import MEMBERS, has_linked_owners, is_owned_by
from normata.records.writing import change, change_writes

MAX_AT_ONCE = 200  # records in one request
CONTROLS = "controls"  # the name of assessments as a kind here


class Responsibility(Wire):
    """A field of a live record, or of an assessment, that names the member."""

    kind: str = Field(
        description="The kind of the record: the first segment of its address, such as `tasks`; of an assessment it is "
        "`controls`."
    )
    id: str = Field(description="The id of the record; of an assessment that of its control.")
    label: str = Field(
        description="The name or title of the record; of an assessment the identifier and the name of its control."
    )
    field: str = Field(
        description="The field that names the member, such as `ownerId`; `OWNS` where the member owns it by a link."
    )


class HandoverOutcome(NamedTuple):
    """The numbers of records that were handed over, by kind, and of those left."""

    records: dict[str, int]
    left: int


def list_responsibilities(transaction: Transaction, member_id: str, query: PageQuery) -> dict[str, Any]:
    """A page of the responsibilities of a member of the organization, by kind. Raises NotFound."""
    member = member_named(transaction, member_id)
    if member is None or member.organization_id != query.organization_id:
        raise NotFound
    named = _named().subquery("named").c
    order = [named.kind, named.label, named.id, named.field]
    found = fetch_page(transaction, select(*named), order, query, _parameters(member))
    names = named.keys()
    return envelope([{name: getattr(row, name) for name in names} for row in found.rows], found, query)


def count_responsibilities(transaction: Transaction, member: Any) -> dict[str, int]:
    """The number of live records for which a member is responsible, by kind; kinds without any are left out."""
    rows = transaction.rows(_counts(), _parameters(member))
    return {row.kind: row.records for row in rows}


def change_member(
    unit: UnitOfWork,
    member_id: str,
    changed: Mapping[str, Any],
    require_current: Callable[[Any], None] = lambda _: None,
) -> Any:
    """Change a member as :func:`members.change` does. Who becomes an auditor must not be responsible for anything.

    Raises what that raises, and HasResponsibilities.
    """
    before = member_named(unit, member_id)
    row = members.change(unit, member_id, changed, require_current)
    if row.role == AUDITOR != getattr(before, "role", None) and count_responsibilities(unit, row):
        raise HasResponsibilities
    return row


def hand_over(
    unit: UnitOfWork, member_id: str, to_member_id: str, kinds: Sequence[str] | None = None
) -> HandoverOutcome:
    """Make another member responsible for the records of a member: of these kinds, or of all.

    Each record and assessment is changed as a PATCH changes it, with its event and its notification, and a link is
    removed and made anew, up to :data:`MAX_AT_ONCE` of them. Raises NotFound, InsufficientRole and FaultyInput.
    """
    member = member_named(unit, member_id)
    if member is None:
        raise NotFound
    unit.require_reach(member.organization_id)
    chosen = frozenset(_by_path() if kinds is None else kinds)
    _require_fit(unit, member, to_member_id, chosen)
    if CONTROLS in chosen:
        lock_coverage(unit, member.organization_id)  # nobody can change what is found until it is written
    lock_links(unit, member.organization_id)
    handed: dict[str, int] = {}
    linked: list[End] = []
    first = _first(unit, member, chosen)
    if controls := [row_id for path, row_id in first if path == CONTROLS]:
        assess(unit, member.organization_id, [_assigned(control, to_member_id) for control in controls])
        handed[CONTROLS] = len(controls)
    for (path, record_id), fields in first.items():
        kind = _by_path()[path]
        if not issubclass(kind, Restorable):
            continue
        if has_linked_owners(kind):
            linked.append(End(path, record_id))
            handed[path] = handed.get(path, 0) + 1
            continue
        try:
            change(unit, kind, record_id, dict.fromkeys(fields, to_member_id))
        except (Archived, NotFound):
            continue  # somebody has just removed the responsible member
        handed[path] = handed.get(path, 0) + 1
    if linked:
        change_owner(unit, member.organization_id, End(MEMBERS, member.id), End(MEMBERS, to_member_id), linked)
    left = count_responsibilities(unit, member)
    return HandoverOutcome(handed, sum(number for path, number in left.items() if path in chosen))


def handover_writes() -> tuple[Write, ...]:
    """The writes of :func:`hand_over`."""
    kinds = (kind for kind in _by_path().values() if issubclass(kind, Restorable) and not has_linked_owners(kind))
    return together(ASSESSMENT_WRITES, CREATION_WRITES, REMOVAL_WRITES, *(change_writes(kind) for kind in kinds))


def _assigned(control_id: str, to_member_id: str) -> AssessmentInput:
    """An assessment with another owner, and the rest unchanged."""
    return AssessmentInput(Row(ControlCoverage.array, BODY, "", {}), {"owner_id": to_member_id}, control_id=control_id)


def _require_fit(unit: UnitOfWork, member: Any, to_member_id: str, kinds: frozenset[str]) -> None:
    """Raise FaultyInput unless the new member is of the same organization, and the kinds have responsible members."""
    body = Row("", BODY, "", {})
    faults: list[Fault] = []
    other = member_named(unit, to_member_id)
    if other is None or other.organization_id != member.organization_id or other.removed_at is not None:
        faults.append(body.fault("toMemberId", "names no member of the organization"))
    elif other.role == AUDITOR:
        faults.append(body.fault("toMemberId", "names an auditor, who is responsible for nothing"))
    elif other.id == member.id:
        faults.append(body.fault("toMemberId", "names the same member"))
    unknown = sorted(kinds - _by_path().keys())
    if unknown:
        known = ", ".join(sorted(_by_path()))
        faults.append(body.fault("kinds", f"has {', '.join(unknown)}, but members answer for {known}"))
    if faults:
        raise FaultyInput(faults)


def _first(unit: UnitOfWork, member: Any, kinds: frozenset[str]) -> dict[tuple[str, str], list[str]]:
    """The fields that name a member, by kind and id of the records, for the records of one handover."""
    fields: dict[tuple[str, str], list[str]] = {}
    for path in sorted(kinds):
        for column in _fields(_by_path()[path]):
            room = MAX_AT_ONCE - len(fields)
            for row in unit.rows(_records(_by_path()[path], column), _parameters(member) | {"most": max(room, 0)}):
                fields.setdefault((path, row.id), []).append(row.field)
    return fields


@cache
def member_columns(table: type[Table]) -> tuple[str, ...]:
    """The columns of a kind, or of assessments, that name members, but for those that follow from steps."""
    members = Membership.__tablename__
    return tuple(
        column.name
        for column in sql_table(table).c
        if column.info.get("refers_to") == members and "set_by" not in column.info
    )


def _fields(table: type[Table]) -> tuple[str, ...]:
    """What names members: the columns, or the links of owners."""
    return (OWNS,) if has_linked_owners(table) else member_columns(table)


@cache
def _by_path() -> dict[str, type[Table]]:
    """The tables with responsible members, by their paths: all kinds, and assessments."""
    return {CONTROLS: ControlCoverage, **KINDS}


def counted_columns() -> frozenset[tuple[str, str]]:
    """The tables and columns of responsible members."""
    return frozenset(
        (str(table.__tablename__), column) for table in _by_path().values() for column in member_columns(table)
    )


def _parameters(member: Any) -> dict[str, Any]:
    return {"organization": member.organization_id, "member": member.id}


def _named_by(kind: type[Table], column: str) -> Select[Any]:
    path = next(path for path, one in _by_path().items() if one is kind)
    table = sql_table(kind)
    row_id, label = _known_by(kind)
    found = select(
        literal_column(f"'{path}'", text()).label("kind"),
        row_id.label("id"),
        label.label("label"),
        literal_column(f"'{OWNS if column == OWNS else to_camel(column)}'", text()).label("field"),
    ).where(
        table.c.organization_id == bindparam("organization"),
        is_owned_by(kind, [bindparam("member")]) if column == OWNS else table.c[column] == bindparam("member"),
    )
    if issubclass(kind, Restorable):
        return found.where(table.c.archived_at.is_(None))
    return found.join_from(table, _CONTROL, _CONTROL.c.id == table.c.control_id).join(
        _ADOPTION,
        and_(
            _ADOPTION.c.framework_id == _CONTROL.c.framework_id, _ADOPTION.c.organization_id == table.c.organization_id
        ),
    )


def _known_by(kind: type[Table]) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """The id of a row in its path, and its name for people."""
    if issubclass(kind, Restorable):
        return kind.sql().c.id, kind.sql().c[kind.title_column()]
    return _CONTROL.c.id, _CONTROL.c.identifier + " " + _CONTROL.c.name


@cache
def _named() -> CompoundSelect[Any]:
    return union_all(*(_named_by(kind, column) for kind in _by_path().values() for column in _fields(kind)))


@cache
def _counts() -> Select[Any]:
    found = _named().subquery("named")
    return (
        select(found.c.kind, func.count(found.c.id.distinct()).label("records"))
        .group_by(found.c.kind)
        .order_by(found.c.kind)
    )


@cache
def _records(kind: type[Table], column: str) -> Select[Any]:
    row_id, _label = _known_by(kind)
    return _named_by(kind, column).order_by(row_id).limit(bindparam("most"))


_CONTROL, _ADOPTION = sql_table(Control), sql_table(FrameworkAdoption)
