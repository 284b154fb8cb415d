"""Verifying findings: somebody looks whether what was found is corrected (ISO 19011, 6.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import sql_table
from normata.errors import Archived, Forbidden, WrongState
from normata.events.content import values_of
from normata.events.model import AuditEvent
from normata.identity.authority import own_membership
from normata.identity.model import User
from normata.records.closing import CLOSED, RESOLVED, VERIFICATION, VERIFIED, is_to_verify, needs_verification
from normata.records.kinds import Finding
from normata.records.lookup import found_for_change
from normata.records.owners import responsible_since
from normata.records.steps import step_writes, take_step

VERIFICATION_WRITES = step_writes(Finding, "status", *VERIFICATION)
_NOBODY = "A finding is verified by a member, and not by a service account."
_OWNER = (
    "Somebody else than who has owned the finding since it was resolved has to verify it, as the organization requires."
)
_RESOLVER = "Somebody else than who has resolved the finding has to verify it, as the organization requires."


def verify(unit: UnitOfWork, finding_id: str, note: str | None, *, require_current: Callable[[Any], None]) -> Any:
    """Record that the actor has verified a resolved or closed finding, and return its row. A closed one stays closed.

    ``require_current`` gets the row before, and raises if that is not the state that the caller knows. Raises NotFound,
    InsufficientRole, Archived, WrongState, and Forbidden for a service account and, if the organization requires
    somebody else, for whoever has owned it since it was resolved and for who has resolved it.
    """
    before = found_for_change(unit, Finding, finding_id)
    member_id = own_membership(unit, before.organization_id)
    if member_id is None:
        raise Forbidden(_NOBODY)
    if before.archived_at is not None:
        raise Archived
    if not is_to_verify(before.status, before.verified_at):
        raise WrongState(before.status if before.verified_at is None else VERIFIED, RESOLVED)
    if needs_verification(unit, before.organization_id):
        _require_somebody_else(unit, before, member_id)
    require_current(before)
    values = {
        "status": CLOSED if before.status == CLOSED else VERIFIED,
        **dict(zip(VERIFICATION, (unit.moment, member_id, unit.actor.user_name, note), strict=True)),
    }
    return take_step(unit, "verify", Finding, before, values)


def _require_somebody_else(unit: UnitOfWork, finding: Any, member_id: str) -> None:
    resolved = _resolving_events(unit, finding)
    # Otherwise an owner could give the finding away, and verify it.
    since = resolved[-1].at if resolved else unit.moment
    if member_id in responsible_since(unit, Finding, finding._asdict(), since):
        raise Forbidden(_OWNER)
    if unit.actor.user_id in {event.user_id for event in resolved}:
        raise Forbidden(_RESOLVER)


def _resolving_events(unit: UnitOfWork, finding: Any) -> list[Any]:
    """The events by which users have resolved or closed a finding since a person has last opened it, newest first.

    What service accounts have done does not count: one can reopen and resolve what somebody else has resolved.
    """
    found = []
    for event in unit.rows(_EVENTS, {"organization": finding.organization_id, "finding": finding.id}):
        after = values_of(event.body)["after"] if event.body else None
        if after and "status" in after:
            if after["status"] not in (*RESOLVED, VERIFIED):
                break
            found.append(event)
    return found


_EVENT, _USER = sql_table(AuditEvent).c, sql_table(User)
_EVENTS = (
    select(_EVENT.at, _EVENT.user_id, _EVENT.body)
    .outerjoin(_USER, _USER.c.id == _EVENT.user_id)
    .where(
        _USER.c.organization_id.is_(None),
        _EVENT.organization_id == bindparam("organization"),
        _EVENT.entity_id == bindparam("finding"),
        _EVENT.entity_type == Finding.__name__,
    )
    .order_by(_EVENT.at.desc(), _EVENT.id.desc())
)
