"""Finding organizations by id or slug, and iterating over all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import bindparam, func, or_, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import Transaction
from normata.core.db.types import text
from normata.core.schema.table import sql_table
from normata.errors import NotFound
from normata.identity.choice import NoSuchOrganization
from normata.identity.model import Membership, Organization


def find(transaction: Transaction, name: str | None) -> str:
    """The id of the organization with this id or slug; of the only one where ``name`` is null.

    Raises NoSuchOrganization.
    """
    if name is not None:
        # An id takes precedence over a slug with the same spelling.
        found = sorted(
            transaction.scalars(_CALLED, {"name": name}), key=lambda organization_id: organization_id != name
        )
        if found:
            return str(found[0])
    known = transaction.rows(_FIRST)
    if name is None and len(known) == 1:
        return str(known[0].id)
    raise NoSuchOrganization.of(name, [row.slug for row in known])


def reached(unit: UnitOfWork, name: str) -> str:
    """The id of the organization with this id or slug, which the actor may change.

    Raises InsufficientRole, or NotFound where there is none that they may see.
    """
    if unit.scope is not None and name in unit.scope.readable:
        unit.require_reach(name)
        return name
    found = unit.scalars(_CALLED, {"name": name})
    # An id takes precedence over a slug with the same spelling, if the actor can see its organization.
    for organization_id in sorted(found, key=lambda one: one != name):
        if unit.may_read(organization_id):
            unit.require_reach(organization_id)
            return str(organization_id)
    raise NotFound


def one_of(transaction: Transaction, name: str, known: Collection[str]) -> str:
    """The id of the one of these organizations with this id or slug; empty if it is none of them."""
    found = (one for one in transaction.scalars(_CALLED, {"name": name}) if one in known)
    return min(map(str, found), key=lambda one: one != name, default="")


def seen(unit: UnitOfWork, name: str) -> str:
    """The id of the organization with this id or slug, which the actor may read. Raises NotFound."""
    for organization_id in sorted(unit.scalars(_CALLED, {"name": name}), key=lambda one: one != name):
        if unit.may_read(organization_id):
            return str(organization_id)
    raise NotFound


def listing(transaction: Transaction) -> Sequence[Any]:
    """All organizations, by slug, each with the number of its members. For commands."""
    return transaction.rows(_LIST)


def name_of(transaction: Transaction, organization_id: str) -> str:
    """The name of an organization; empty if there is none in sight."""
    return str(transaction.scalar(_NAME, {"organization": organization_id}) or "")


def _next_select(after: str, *, source: str, number: str) -> str:
    columns = f"{number}, one.id" if number else "one.id"
    from_each = f"{source} CROSS JOIN LATERAL" if source else ""
    return (
        f"SELECT {columns} AS organization_id FROM {from_each}"  # noqa: S608 - built from constants
        f" (SELECT id FROM organization WHERE id > {after} ORDER BY id LIMIT {STEP}) AS one"
        f" ORDER BY {columns}"
    )


STEP = 100  # organizations at a time

# The next organization ids after one, in order. With row-level security a transaction sees only organizations in its
# scope, so a job that goes through all of them needs this lookup.
NEXT_ORGANIZATIONS = Lookup(
    name="normata_next_organizations",
    arguments=("after",),
    columns={"organization_id": text()},
    select=_next_select,
)

_TABLE = sql_table(Organization)
_CALLED = select(_TABLE.c.id).where(or_(_TABLE.c.id == bindparam("name"), _TABLE.c.slug == bindparam("name")))
_MEMBER = sql_table(Membership)
_MEMBERS = (
    select(func.count())
    .where(_MEMBER.c.organization_id == _TABLE.c.id, _MEMBER.c.removed_at.is_(None))
    .correlate(_TABLE)
    .scalar_subquery()
)
_LIST = select(*_TABLE.c, _MEMBERS.label("members")).order_by(_TABLE.c.slug)
_NAME = select(_TABLE.c.name).where(_TABLE.c.id == bindparam("organization"))
_FIRST = select(_TABLE.c.id, _TABLE.c.slug).order_by(_TABLE.c.slug).limit(10)
