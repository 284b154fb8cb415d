"""Who is responsible for a row: the member that a column names, or the members who own it by links.

Assessments, and most kinds of records, have a column of the responsible member. Of the others every live member who
`OWNS` a record by a link is responsible for it. Whoever was removed, or is an auditor, is responsible for nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, bindparam, literal_column, or_, select

from normata.core.db.transaction import Transaction, batches
from normata.core.http.roles import AUDITOR
from normata.core.schema.table import Table, sql_table
from normata.frameworks.model import ControlCoverage
from normata.identity.model import Membership, User
from normata.links.model import OWNS, Link
from normata.records.base import Restorable


class Owner(NamedTuple):
    """A responsible member: the id of the membership, and the name of the user."""

    member_id: str
    name: str


def responsible_column(table: type[Table]) -> str | None:
    """The column of the responsible member; null if there is none, so that the owners have links."""
    if table is ControlCoverage:
        return "owner_id"
    return table.responsible if issubclass(table, Restorable) else None


def has_linked_owners(table: type[Table]) -> bool:
    """Whether the rows of a table are records whose owners have links."""
    return issubclass(table, Restorable) and table.responsible is None


def is_owned_by(table: type[Table], members: Select[Any] | Sequence[ColumnElement[str]]) -> ColumnElement[bool]:
    """The condition that one of these members is responsible for a row of the organization ``organization``."""
    columns, column = sql_table(table).c, responsible_column(table)
    if column is not None:
        return columns[column].in_(members)
    owned = _OWNING.where(_LINK.organization_id == bindparam("organization"), _LINK.from_id.in_(members))
    return columns.id.in_(owned.with_only_columns(_LINK.to_id).where(_leads_to(table)))


def somebody_owns(table: type[Table]) -> ColumnElement[bool]:
    """The condition that somebody is responsible for a row of one of the ``organizations``."""
    columns, column = sql_table(table).c, responsible_column(table)
    if column is not None:
        return and_(columns[column].is_not(None), columns[column].not_in(_NOT_RESPONSIBLE))
    owner = _LIVE_OWNING.where(_LINK.organization_id == columns.organization_id, _LINK.to_id == columns.id)
    return owner.where(_leads_to(table)).exists()


def owners_by_links(
    transaction: Transaction, organization_id: str, ids: Collection[str]
) -> Mapping[tuple[str, str], Sequence[Owner]]:
    """The live owners by links of what has one of these ids, by its kind and its id; first who was linked first."""
    found: defaultdict[tuple[str, str], list[Owner]] = defaultdict(list)
    for batch in batches(sorted(ids)):
        for row in transaction.rows(_OWNERS, {"organization": organization_id, "ids": batch}):
            found[row.to_kind, row.to_id].append(Owner(row.from_id, row.name))
    return found


def responsible_for(transaction: Transaction, table: type[Table], row: Mapping[str, Any]) -> list[str]:
    """The ids of the members who are responsible for a row."""
    column = responsible_column(table)
    if column is not None:
        return [row[column]] if row[column] is not None else []
    if not has_linked_owners(table):
        return []
    found = owners_by_links(transaction, row["organization_id"], [row["id"]])
    return [owner.member_id for owner in found.get((table.array, row["id"]), ())]


def responsible_since(transaction: Transaction, table: type[Table], row: Mapping[str, Any], moment: str) -> set[str]:
    """The ids of the members who have owned a row by links at any time since a moment, and of those who do now."""
    place = {"organization": row["organization_id"], "kind": table.array, "id": row["id"], "moment": moment}
    return {*responsible_for(transaction, table, row), *transaction.scalars(_OWNED_SINCE, place)}


MEMBERS = Membership.array
_LINK, _MEMBER, _USER = sql_table(Link).c, sql_table(Membership).c, sql_table(User).c
_OWNING = select(_LINK.to_id).where(
    _LINK.relation == literal_column(f"'{OWNS}'"),
    _LINK.from_kind == literal_column(f"'{MEMBERS}'"),
    _LINK.removed_at.is_(None),
)
_LIVE_OWNING = _OWNING.join(
    Membership, and_(_MEMBER.id == _LINK.from_id, _MEMBER.removed_at.is_(None), _MEMBER.role != AUDITOR)
)
_OWNERS = (
    _LIVE_OWNING.with_only_columns(_LINK.to_kind, _LINK.to_id, _LINK.from_id, _USER.name)
    .join(User, _USER.id == _MEMBER.user_id)
    .where(_LINK.organization_id == bindparam("organization"), _LINK.to_id.in_(bindparam("ids", expanding=True)))
    .order_by(_LINK.created_at, _LINK.id)
)
_OWNED_SINCE = select(_LINK.from_id).where(
    _LINK.organization_id == bindparam("organization"),
    _LINK.to_kind == bindparam("kind"),
    _LINK.to_id == bindparam("id"),
    _LINK.from_kind == literal_column(f"'{MEMBERS}'"),
    _LINK.relation == literal_column(f"'{OWNS}'"),
    _LINK.removed_at >= bindparam("moment"),
)
# If the member was removed, or has become an auditor, whoever takes the record over is notified.
_NOT_RESPONSIBLE = select(_MEMBER.id).where(
    _MEMBER.organization_id.in_(bindparam("organizations", expanding=True)),
    or_(_MEMBER.removed_at.is_not(None), _MEMBER.role == AUDITOR),
)


@cache
def _leads_to(table: type[Table]) -> ColumnElement[bool]:
    return _LINK.to_kind == literal_column(f"'{table.array}'")
