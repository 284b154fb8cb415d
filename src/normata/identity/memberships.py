"""Making a user a member of an organization, for the first time or again."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.http.roles import Role
from normata.core.schema.table import new_id, sql_table
from normata.identity.model import Membership

JOINING_WRITES = (insert_of(Membership), update_of(Membership, "role", "removed_at"))


def join(unit: UnitOfWork, organization_id: str, user_id: str, role: Role) -> str:
    """Make a user a member, and return the id of the membership. A member keeps their role.

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
        }
        unit.rows(_CREATE, row)
        unit.publish(Change("create", Membership, organization_id, row["id"], row))
        return str(row["id"])
    if before.removed_at is not None:
        unit.rows(_BRING_BACK, {"member": before.id, "new_role": role})
        row = before._asdict()
        after = row | {"role": role, "removed_at": None}
        unit.publish(Change("restore", Membership, organization_id, before.id, after, row))
    return str(before.id)


_MEMBER = sql_table(Membership)
_FIND = select(*_MEMBER.c).where(
    _MEMBER.c.organization_id == bindparam("organization"), _MEMBER.c.user_id == bindparam("user")
)
_CREATE = insert(_MEMBER).values({column.name: bindparam(column.name, type_=column.type) for column in _MEMBER.c})
_BRING_BACK = (
    update(_MEMBER).where(_MEMBER.c.id == bindparam("member")).values(role=bindparam("new_role"), removed_at=None)
)
