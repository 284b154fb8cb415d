"""Service accounts: users of one organization that are programs. They have tokens, and nobody signs in as them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import Wire
from normata.errors import MemberRemoved, NotFound
from normata.identity import memberships, users
from normata.identity.authority import require_role
from normata.identity.members import members
from normata.identity.model import Membership, User

ServiceRole = Literal["viewer", "auditor", "editor", "admin"]

CREATION_WRITES = (*users.CREATION_WRITES, *memberships.JOINING_WRITES)
CHANGE_WRITES = (*users.RENAME_WRITES, *members.CHANGE_WRITES)


class ServiceAccount(Wire):
    """A program that works in one organization."""

    id: str = Field(description="The id of its user.")
    organization_id: str
    member_id: str = Field(description="The id of its membership.")
    name: str
    role: ServiceRole = Field(description="What it may do in the organization.")


def create(unit: UnitOfWork, organization_id: str, name: str, role: ServiceRole) -> Any:
    """Create a service account, and return its row. Raises NotFound, InsufficientRole and Forbidden."""
    require_role(unit, organization_id, "admin", role)
    user_id = new_id()
    users.create(unit, user_id, email=None, name=name, organization_id=organization_id)
    memberships.join(unit, organization_id, user_id, role)
    return unit.row(_ONE, {"user": user_id})


def change(unit: UnitOfWork, user_id: str, *, name: str | None = None, role: ServiceRole | None = None) -> Any:
    """Give a service account another name or role, and return its row.

    Raises NotFound, InsufficientRole, Forbidden if either role is larger than the actor's, and MemberRemoved.
    """
    before = _found(unit, user_id)
    require_role(unit, before.organization_id, "admin", before.role)
    if before.removed_at is not None:
        raise MemberRemoved
    if role is not None:
        members.change(unit, before.member_id, {"role": role})
    if name is not None:
        users.rename(unit, user_id, name)
    return unit.row(_ONE, {"user": user_id})


def remove(unit: UnitOfWork, user_id: str) -> Any:
    """End a service account with its tokens, and return its row. Repeating it is harmless.

    Raises as :func:`members.remove` does.
    """
    before = _found(unit, user_id)
    members.remove(unit, before.member_id)
    return before


def list_accounts(transaction: Transaction, query: PageQuery) -> dict[str, Any]:
    """A page of an organization's service accounts, by their names."""
    statement = _EVERY.where(_MEMBER.c.organization_id == query.organization_id, _MEMBER.c.removed_at.is_(None))
    found = fetch_page(transaction, statement, [_USER.c.name, _USER.c.id], query)
    return envelope([as_wire(row) for row in found.rows], found, query)


def one_account(transaction: Transaction, organization_id: str, user_id: str) -> dict[str, Any]:
    """A service account of an organization. Raises NotFound."""
    row = transaction.row(_ONE, {"user": user_id})
    if row is None or row.organization_id != organization_id or row.removed_at is not None:
        raise NotFound
    return as_wire(row)


def as_wire(row: Any) -> dict[str, Any]:
    """A service account in wire form."""
    return {
        "id": row.id,
        "organizationId": row.organization_id,
        "memberId": row.member_id,
        "name": row.name,
        "role": row.role,
    }


def _found(unit: UnitOfWork, user_id: str) -> Any:
    row = unit.row(_ONE, {"user": user_id})
    if row is None:
        raise NotFound
    unit.require_reach(row.organization_id)
    return row


_USER, _MEMBER = sql_table(User), sql_table(Membership)
_EVERY = select(
    _USER.c.id,
    _USER.c.organization_id,
    _USER.c.name,
    _MEMBER.c.id.label("member_id"),
    _MEMBER.c.role,
    _MEMBER.c.removed_at,
).join(_MEMBER, (_MEMBER.c.user_id == _USER.c.id) & (_MEMBER.c.organization_id == _USER.c.organization_id))
_ONE = _EVERY.where(_USER.c.id == bindparam("user"))
