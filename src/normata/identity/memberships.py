"""Memberships: whether one is valid, and making a user a member of an organization, for the first time or again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, bindparam, insert, select, update

from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow
from normata.core.changes.source import Fault, FaultyInput
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.http.roles import Role
from normata.core.schema.table import new_id, sql_table
from normata.identity.model import Membership

JOINING_WRITES = (insert_of(Membership), update_of(Membership, "role", "removed_at", "expires_at"))
_NO_END = "must be null for an owner: an organization always has one"


def is_valid(expires_at: str | None, moment: str) -> bool:
    """Whether what expires at a time, null for never, is still valid at ``moment``."""
    return expires_at is None or expires_at > moment


def is_out(member: Any, moment: str) -> bool:
    """Whether a membership allows nothing any more at ``moment``: it was removed, or has expired."""
    return member.removed_at is not None or not is_valid(member.expires_at, moment)


def is_in(moment: BindParameter[Any]) -> ColumnElement[bool]:
    """The condition that a membership is neither removed nor expired at ``moment``."""
    return _MEMBER.c.removed_at.is_(None) & (_MEMBER.c.expires_at.is_(None) | (_MEMBER.c.expires_at > moment))


def require_end(unit: UnitOfWork, role: Role, expires_at: str | None) -> None:
    """Raise FaultyInput unless a membership with this role may end then: not in the past, and no owner's."""
    if expires_at is None:
        return
    reason = _NO_END if role == "owner" else "must be in the future" if expires_at <= unit.moment else ""
    if reason:
        raise FaultyInput([Fault("body", "/expiresAt", reason)])


def fault_owners_that_end(_unit: UnitOfWork, rows: Sequence[PendingRow], _references: References) -> None:
    """The rule of loaded memberships: an owner's does not end."""
    for row in rows:
        if row.final["role"] == "owner" and row.final["expires_at"] is not None:
            row.add_fault("expires_at", _NO_END)


def join(unit: UnitOfWork, organization_id: str, user_id: str, role: Role, expires_at: str | None = None) -> str:
    """Make a user a member until ``expires_at``, and return the id of the membership. A member keeps role and end.

    A former member gets the same membership again, because records may still name it.
    """
    before = unit.row(_FIND, {"organization": organization_id, "user": user_id})
    if before is None:
        row: dict[str, Any] = {
            "id": new_id(),
            "organization_id": organization_id,
            "user_id": user_id,
            "role": role,
            "removed_at": None,
            "expires_at": expires_at,
        }
        unit.rows(_CREATE, row)
        unit.publish(Change("create", Membership, organization_id, row["id"], row))
        return str(row["id"])
    if is_out(before, unit.moment):
        unit.rows(_BRING_BACK, {"member": before.id, "new_role": role, "new_end": expires_at})
        row = before._asdict()
        after = row | {"role": role, "removed_at": None, "expires_at": expires_at}
        unit.publish(Change("restore", Membership, organization_id, before.id, after, row))
    return str(before.id)


_MEMBER = sql_table(Membership)
_FIND = select(*_MEMBER.c).where(
    _MEMBER.c.organization_id == bindparam("organization"), _MEMBER.c.user_id == bindparam("user")
)
_CREATE = insert(_MEMBER).values({column.name: bindparam(column.name, type_=column.type) for column in _MEMBER.c})
_BRING_BACK = (
    update(_MEMBER)
    .where(_MEMBER.c.id == bindparam("member"))
    .values(
        role=bindparam("new_role"),
        removed_at=None,
        expires_at=bindparam("new_end", type_=_MEMBER.c.expires_at.type),
    )
)
