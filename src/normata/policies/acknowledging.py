"""Acknowledging a published version: who is asked and reminded, who has done it, and doing it.

Members are asked once the version is published, and those who join later within a day. Who was asked is reminded every
week, until they have acknowledged it, or another version is in force.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, exists, func, insert, select, update

from normata.core.changes.jobs import DueJob, JobType
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.types import format_timestamp
from normata.core.schema.table import new_id, sql_table
from normata.errors import Archived, Forbidden, NotFound, WrongState, WrongVersion
from normata.identity.authority import own_membership
from normata.identity.memberships import is_in
from normata.identity.model import Membership, User
from normata.policies.acknowledgement_model import Acknowledgement
from normata.policies.model import PolicyVersion
from normata.policies.steps import ACKNOWLEDGEMENTS
from normata.policies.versions import Versions, change_policy
from normata.records.kinds import Policy
from normata.records.lookup import find, found_for_change

AT_ONCE = 200  # members who are asked, or reminded, in one transaction
_AGAIN = timedelta(days=1)  # until the next look for members who have joined
_REMINDED_AFTER = timedelta(days=7)

ACKNOWLEDGEMENT_WRITES = (insert_of(Acknowledgement), update_of(Acknowledgement, "acknowledged_at"))
REQUEST_WRITES = (insert_of(Acknowledgement), update_of(Acknowledgement, "reminded_at"))

_NO_PERSON = "Only a member who is a person can acknowledge a policy."


@dataclass(frozen=True, slots=True)
class AcknowledgementsRequested(Change):
    """Members were asked to acknowledge a version of a policy, or reminded of it."""

    policy: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    member_ids: Sequence[str] = ()


class Reminded(NamedTuple):
    """How many members were reminded, and whether more could be: there is a limit for one transaction."""

    members: int
    has_more: bool


def acknowledge(unit: UnitOfWork, policy_id: str, number: int) -> Any:
    """Acknowledge the published version of a policy as the actor, also again, and return the acknowledgement.

    Raises NotFound, InsufficientRole, Archived, Forbidden for a service account, WrongState if none is published, and
    WrongVersion if it is another one.
    """
    policy: Any = unit.row(find(Policy), {"record": policy_id})
    if policy is None:
        raise NotFound
    unit.require_reach(policy.organization_id)
    if policy.archived_at is not None:
        raise Archived
    version = Versions(unit, policy).last("PUBLISHED")
    if version is None:
        raise WrongState(policy.status, ("PUBLISHED",))
    if version.number != number:
        raise WrongVersion(version.number)
    member = own_membership(unit, policy.organization_id)
    if member is None:
        raise Forbidden(_NO_PERSON)
    key = {"organization": policy.organization_id, "version": version.id, "member": member}
    known = unit.row(_FIND, key)
    if known is not None and known.acknowledged_at is not None:
        return known
    done = unit.row(_DO, key | {"moment": unit.moment}) if known is not None else None
    row = done or unit.row(_ADD, _new(key, acknowledged_at=unit.moment))
    unit.publish(Change("update", Acknowledgement, policy.organization_id))
    change_policy(unit, "acknowledge", policy, version)
    return row


def ask(unit: UnitOfWork, version: Any, policy: Any) -> int:
    """Ask the next members to acknowledge a version, and return how many there were."""
    key = {"organization": version.organization_id, "version": version.id}
    wanted = {**key, "roles": version.acknowledging_roles, "moment": unit.moment, "most": AT_ONCE}
    members = unit.scalars(_UNASKED, wanted)
    if members:
        rows = [_new({**key, "member": member}, requested_at=unit.moment) for member in members]
        unit.execute_many(_INSERT, rows)
        _publish(unit, "ask", version, policy, members)
    return len(members)


def remind_open(unit: UnitOfWork, version: Any, policy: Any, moment: str, after: timedelta = _REMINDED_AFTER) -> int:
    """Remind the next members who were asked or reminded so long ago, and return how many there were."""
    before = format_timestamp(datetime.fromisoformat(moment) - after)
    key = {"organization": version.organization_id, "version": version.id}
    rows = unit.rows(_OPEN, {**key, "before": before, "moment": unit.moment, "most": AT_ONCE})
    if rows:
        unit.execute_many(_REMIND, [{"acknowledgement": row.id, "now": unit.moment} for row in rows])
        members = [row.member_id for row in rows]
        _publish(unit, "ask_again", version, policy, members)
    return len(rows)


def remind(unit: UnitOfWork, policy_id: str) -> Reminded:
    """Remind the next members who have not acknowledged the published version of a policy, nor were reminded today.

    Raises NotFound, InsufficientRole, Archived, and WrongState if none is published.
    """
    policy = found_for_change(unit, Policy, policy_id)
    if policy.archived_at is not None:
        raise Archived
    version = Versions(unit, policy).last("PUBLISHED")
    if version is None:
        raise WrongState(policy.status, ("PUBLISHED",))
    found = remind_open(unit, version, policy, unit.moment, _AGAIN)
    if found:
        change_policy(unit, "ask_again", policy, version)
    return Reminded(found, has_more=found == AT_ONCE)


def _publish(unit: UnitOfWork, action: str, version: Any, policy: Any, members: Sequence[str]) -> None:
    facts = {"policy": policy._asdict(), "number": version.number, "member_ids": members}
    unit.publish(AcknowledgementsRequested(action, Acknowledgement, version.organization_id, **facts))


def _run(unit: UnitOfWork, job: DueJob) -> str | None:
    version: Any = unit.row(_VERSION_OF, {"version": job.key})
    if version is None or version.state != "PUBLISHED" or version.acknowledging_roles is None:
        return None
    policy: Any = unit.row(find(Policy), {"record": version.policy_id})
    if policy is None:
        return None
    is_live = policy.archived_at is None
    if is_live and AT_ONCE in (ask(unit, version, policy), remind_open(unit, version, policy, job.moment)):
        return job.moment
    return format_timestamp(datetime.fromisoformat(job.moment) + _AGAIN)


ACKNOWLEDGEMENT_JOBS = JobType(ACKNOWLEDGEMENTS, _run, writes=REQUEST_WRITES)


def _new(key: dict[str, Any], **values: Any) -> dict[str, Any]:
    names = dict.fromkeys(("requested_at", "reminded_at", "acknowledged_at"))
    own = {"id": new_id(), "organization_id": key["organization"], "version_id": key["version"]}
    return {**names, **own, "member_id": key["member"], **values}


def is_requested(roles: ColumnElement[Any]) -> ColumnElement[bool]:
    """The condition that a person is a member now, with one of these roles; its parameter is ``moment``."""
    moment = bindparam("moment", type_=_MEMBER.c.expires_at.type)
    return and_(
        is_in(moment), _MEMBER.c.role.in_(roles), _USER.c.organization_id.is_(None), _USER.c.removed_at.is_(None)
    )


_TABLE, _VERSION = sql_table(Acknowledgement), sql_table(PolicyVersion)
_MEMBER, _USER = sql_table(Membership), sql_table(User)
_IS_OF_VERSION = (_TABLE.c.organization_id == bindparam("organization")) & (_TABLE.c.version_id == bindparam("version"))
_MOMENT = bindparam("moment", type_=_TABLE.c.requested_at.type)
_FIND = select(*_TABLE.c).where(_IS_OF_VERSION, _TABLE.c.member_id == bindparam("member"))
_INSERT = insert(_TABLE).values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
_ADD = _INSERT.returning(*_TABLE.c)
_DO = (
    update(_TABLE)
    .where(_IS_OF_VERSION, _TABLE.c.member_id == bindparam("member"), _TABLE.c.acknowledged_at.is_(None))
    .values(acknowledged_at=_MOMENT)
    .returning(*_TABLE.c)
)
_VERSION_OF = select(
    _VERSION.c.id, _VERSION.c.organization_id, _VERSION.c.policy_id, _VERSION.c.number, _VERSION.c.state,
    _VERSION.c.acknowledging_roles,
).where(_VERSION.c.id == bindparam("version"))  # fmt: skip
_UNASKED = (
    select(_MEMBER.c.id)
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .where(
        _MEMBER.c.organization_id == bindparam("organization"),
        is_requested(bindparam("roles", expanding=True)),
        ~exists().where(_IS_OF_VERSION, _TABLE.c.member_id == _MEMBER.c.id).correlate(_MEMBER),
    )
    .order_by(_MEMBER.c.id)
    .limit(bindparam("most"))
)
_OPEN = (
    select(_TABLE.c.id, _TABLE.c.member_id)
    .join(_MEMBER, (_MEMBER.c.organization_id == _TABLE.c.organization_id) & (_MEMBER.c.id == _TABLE.c.member_id))
    .where(
        _IS_OF_VERSION,
        _TABLE.c.acknowledged_at.is_(None),
        func.coalesce(_TABLE.c.reminded_at, _TABLE.c.requested_at)
        <= bindparam("before", type_=_TABLE.c.requested_at.type),
        is_in(bindparam("moment", type_=_MEMBER.c.expires_at.type)),
    )
    .order_by(_TABLE.c.id)
    .limit(bindparam("most"))
)
_REMIND = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("acknowledgement"))
    .values(reminded_at=bindparam("now", type_=_TABLE.c.reminded_at.type))
)
