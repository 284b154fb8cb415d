"""Removing a user from the instance: all memberships, tokens and sessions end.

What they created stays, with their name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import bindparam, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.schema.table import sql_table
from normata.errors import LastOwner
from normata.identity import calendar, operators
from normata.identity.invitations import invitations
from normata.identity.members import members
from normata.identity.model import AccessToken, Membership, Organization, User
from normata.identity.sessions import sessions
from normata.identity.tokens import tokens


class RemovedCounts(NamedTuple):
    """The numbers of ended memberships, tokens, sessions, and invitations to the user's address."""

    members: int
    tokens: int
    sessions: int
    invitations: int


def remove_user(unit: UnitOfWork, user: Any) -> RemovedCounts:
    """End all access of a user, the address of their calendar included. Repeating it is harmless. For commands.

    Raises LastOwner.
    """
    parameters = {"user": user.id}
    ended = [_remove(unit, row) for row in unit.rows(_MEMBERS, parameters)]
    revoked = [tokens.revoke(unit, token_id) for token_id in unit.scalars(_TOKENS, parameters)]
    ended_sessions = sessions.end_others(unit, user.id)
    open_invitations = [] if user.email is None else invitations.revoke_of_address(unit, user.email)
    calendar.remove(unit, user.id)
    operators.set_operator(unit, user.id, is_operator=False)
    if user.removed_at is None:
        unit.rows(_REMOVE, parameters | {"moment": unit.moment})
        before = {"id": user.id, "organization_id": user.organization_id, "removed_at": None}
        after = before | {"removed_at": unit.moment}
        unit.publish(Change("remove", User, user.organization_id, user.id, after, before))
    return RemovedCounts(len(ended), len(revoked), ended_sessions, len(open_invitations))


def _remove(unit: UnitOfWork, membership: Any) -> Any:
    try:
        return members.remove(unit, membership.id)
    except LastOwner:
        raise LastOwner(f"They are the last owner of {membership.slug}; make somebody else an owner first.") from None


_MEMBER, _TOKEN, _USER = sql_table(Membership), sql_table(AccessToken), sql_table(User)
_ORGANIZATION = sql_table(Organization)
_MEMBERS = (
    select(_MEMBER.c.id, _ORGANIZATION.c.slug)
    .join(_ORGANIZATION, _ORGANIZATION.c.id == _MEMBER.c.organization_id)
    .where(_MEMBER.c.user_id == bindparam("user"), _MEMBER.c.removed_at.is_(None))
    .order_by(_ORGANIZATION.c.slug)
)
_TOKENS = (
    select(_TOKEN.c.id)
    .where(_TOKEN.c.user_id == bindparam("user"), _TOKEN.c.revoked_at.is_(None))
    .order_by(_TOKEN.c.id)
)
_REMOVE = (
    update(_USER)
    .where(_USER.c.id == bindparam("user"))
    .values(removed_at=bindparam("moment", type_=_USER.c.removed_at.type))
)
