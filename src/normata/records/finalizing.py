"""Finalizing records: what they say is complete, and stays as it is (ISO/IEC 27001, clause 7.5.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from normata.core.changes.unit_of_work import UnitOfWork
from normata.errors import Archived, Forbidden, WrongState
from normata.identity.authority import own_membership
from normata.records.finals import FINALIZATION, FINALIZED, UNFINISHED, is_to_finalize
from normata.records.kinds import Record
from normata.records.lookup import found_for_change
from normata.records.steps import step_writes, take_step

FINALIZATION_WRITES = step_writes(Record, "status", "current_version", *FINALIZATION)
_NOBODY = "A record is finalized by a member, and not by a service account."
_FIRST_VERSION = 1


def finalize(unit: UnitOfWork, record_id: str, *, require_current: Callable[[Any], None]) -> Any:
    """Record that the actor has finalized a record, and return its row. A record without a version gets the first.

    ``require_current`` gets the row before, and raises if that is not the state that the caller knows. Raises NotFound,
    InsufficientRole, Archived, WrongState, and Forbidden for a service account.
    """
    before = found_for_change(unit, Record, record_id)
    if own_membership(unit, before.organization_id) is None:
        raise Forbidden(_NOBODY)
    if before.archived_at is not None:
        raise Archived
    if not is_to_finalize(before.status, before.finalized_at):
        raise WrongState(before.status, UNFINISHED)
    require_current(before)
    values = {
        "status": FINALIZED,
        "current_version": _FIRST_VERSION if before.current_version is None else before.current_version,
        "finalized_at": unit.moment,
        "finalized_by": unit.actor.user_name,
    }
    return take_step(unit, "finalize", Record, before, values)
