"""Who has written the text of a policy, as the events of the policy say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import bindparam, or_, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import sql_table
from normata.events.content import values_of
from normata.events.model import AuditEvent
from normata.identity.model import AccessToken, Membership, User
from normata.records.kinds import Policy


def last_editor(unit: UnitOfWork, policy: Any) -> str | None:
    """The membership of the last person who changed the text of a policy before its first approval; null if unknown.

    A service account is nobody else than who uses it, so what it has written since does not count.
    """
    texts = (one for one in _written(unit, policy) if one.action != "submit")
    return next((one.member_id for one in texts if one.account_of is None), None)


def is_by_own_program(unit: UnitOfWork, policy: Any, since: str) -> bool:
    """Whether a service account has written or submitted the text of a policy since a moment, which the actor controls.

    That is so if they have made the account, or the token with which it was done.
    """
    means: set[str] = set()
    for one in _written(unit, policy):
        if one.account_of is not None and one.at > since:
            means |= {one.member_id, one.token_id} - {None}
    key = {"organization": policy.organization_id, "actor": unit.actor.user_id, "means": sorted(means)}
    return bool(means) and unit.row(_MADE, key) is not None


def _written(unit: UnitOfWork, policy: Any) -> Iterator[Any]:
    """The events that have written or submitted the text of a policy, the newest first."""
    for one in unit.stream(_EVENTS, {"organization": policy.organization_id, "policy": policy.id}):
        is_text = one.action in ("draft", "submit")
        if is_text or (one.body and "content" in (values_of(one.body)["after"] or {})):
            yield one


_MEMBER, _USER, _EVENT = (sql_table(one) for one in (Membership, User, AuditEvent))
_EVENTS = (
    select(
        *(_EVENT.c.action, _EVENT.c.body, _EVENT.c.at, _EVENT.c.token_id),
        *(_MEMBER.c.id.label("member_id"), _USER.c.organization_id.label("account_of")),
    )
    .outerjoin(
        _MEMBER,
        (_MEMBER.c.organization_id == _EVENT.c.organization_id) & (_MEMBER.c.user_id == _EVENT.c.user_id),
    )
    .outerjoin(_USER, _USER.c.id == _EVENT.c.user_id)
    .where(
        _EVENT.c.organization_id == bindparam("organization"),
        _EVENT.c.entity_type == Policy.__name__,
        _EVENT.c.entity_id == bindparam("policy"),
        _EVENT.c.action.in_(("create", "update", "draft", "submit")),
    )
    .order_by(_EVENT.c.at.desc(), _EVENT.c.id.desc())
)
_MADE = (
    select(_EVENT.c.id)
    .where(
        _EVENT.c.organization_id == bindparam("organization"),
        _EVENT.c.entity_id.in_(bindparam("means", expanding=True)),
        _EVENT.c.user_id == bindparam("actor"),
        or_(*(_EVENT.c.entity_type == one.__name__ for one in (Membership, AccessToken))),
        _EVENT.c.action == "create",
    )
    .limit(1)
)
