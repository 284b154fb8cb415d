"""What a member may do to other members: change nobody with a larger role, and give no larger role than their own.

The role is read within the change itself, because the role at the time of the request may have changed since.
"""

from __future__ import annotations

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.roles import Role, role_suffices
from normata.core.schema.table import sql_table
from normata.errors import Forbidden, InsufficientRole
from normata.identity.memberships import is_in
from normata.identity.model import Membership, User

_LARGER = "Your role does not allow this: the role concerned is larger than yours."


def lock_members(unit: UnitOfWork, organization_id: str) -> None:
    """Lock the organization's members, so that two last owners cannot leave at the same time."""
    unit.lock(f"members of {organization_id}")


def require_role(unit: UnitOfWork, organization_id: str, least: Role, *involved: str) -> None:
    """Require that the actor has the role ``least``, and may change members from and to the roles ``involved``.

    A command may do anything. Raises InsufficientRole, Forbidden, and NotFound if the actor may not know of it.
    """
    unit.require_reach(organization_id)
    if unit.scope is None:
        return
    parameters = {"organization": organization_id, "user": unit.actor.user_id, "moment": unit.moment}
    role = unit.scalar(_ROLE, parameters)
    if role is None or not role_suffices(role, least):
        raise InsufficientRole
    if not all(role_suffices(role, one) for one in involved):  # type: ignore[arg-type] # stored roles
        raise Forbidden(_LARGER)


def own_membership(unit: UnitOfWork, organization_id: str) -> str | None:
    """The id of the actor's membership; null if they are no member, or a service account, which approves nothing."""
    who = {"organization": organization_id, "user": unit.actor.user_id, "moment": unit.moment}
    found: str | None = unit.scalar(_OWN, who)
    return found


_MEMBER, _USER = sql_table(Membership), sql_table(User)
_IS_ACTORS = (
    _MEMBER.c.organization_id == bindparam("organization"),
    _MEMBER.c.user_id == bindparam("user"),
    is_in(bindparam("moment", type_=_MEMBER.c.expires_at.type)),
)
_ROLE = select(_MEMBER.c.role).where(*_IS_ACTORS)
_OWN = (
    select(_MEMBER.c.id)
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .where(*_IS_ACTORS, _USER.c.organization_id.is_(None))
)
