"""The steps of an assessment of a vendor: it is sent, submitted, perhaps reopened, and reviewed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork, insert_of
from normata.core.db.security import Write
from normata.errors import Archived, Forbidden, WrongState
from normata.identity.authority import own_membership
from normata.records.assurance import VendorAssessment
from normata.records.kinds import Vendor
from normata.records.lookup import found_for_change
from normata.records.steps import step_writes, take_step
from normata.vendors.answers import score_in_all
from normata.vendors.model import Questionnaire
from normata.vendors.questionnaires import locked, of_service
from normata.vendors.rules import DRAFT, REVIEWED, SENT, SUBMITTED, SUPERSEDED

VALUES = ("inherent_probability", "inherent_impact", "residual_probability", "residual_impact")
REASONS = ("inherent_reason", "residual_reason")
_REVIEW = ("status", "reviewed_at", "reviewed_by_id", "next_assessment_at", *VALUES, *REASONS)

Known = Callable[[Any], None]  # gets the row before, and raises if that is not the state that the caller knows

SEND_WRITES: tuple[Write, ...] = (
    *step_writes(VendorAssessment, "status", "sent_at", "questionnaire_id"),
    insert_of(Questionnaire),
)
SUBMIT_WRITES = step_writes(VendorAssessment, "status", "submitted_at", "submitted_by_id", "score")
REOPEN_WRITES = step_writes(VendorAssessment, "status", "submitted_at", "submitted_by_id", "score", "reopening_reason")
REVIEW_WRITES = (*step_writes(VendorAssessment, *_REVIEW), *step_writes(Vendor, "last_assessment_id", *VALUES))

_NOBODY = "An assessment is reviewed by a member, and not by a service account."


def send(unit: UnitOfWork, assessment_id: str, *, require_current: Known) -> Any:
    """Fix the questions of a draft, so that they can be answered, and return its row.

    Raises NotFound, InsufficientRole, Archived and WrongState.
    """
    before = _in(unit, assessment_id, (DRAFT,))
    require_current(before)
    return send_draft(unit, before)


def send_draft(unit: UnitOfWork, before: Any) -> Any:
    """Send the draft ``before``, which is locked, and return its row."""
    if before.questionnaire_id is None:
        questionnaire = of_service(unit, before.organization_id)
    else:
        questionnaire = locked(unit, before.questionnaire_id)  # it may be changed at this moment
    values = {"status": SENT, "sent_at": unit.moment, "questionnaire_id": questionnaire.id}
    return take_step(unit, "send", VendorAssessment, before, values)


def submit(unit: UnitOfWork, assessment_id: str, *, require_current: Known) -> Any:
    """Record that the answers are complete, and return the row. They stay as they are from then on.

    Raises NotFound, InsufficientRole, Archived and WrongState.
    """
    before = _in(unit, assessment_id, (SENT,))
    require_current(before)
    return submit_sent(unit, before, own_membership(unit, before.organization_id))


def submit_sent(unit: UnitOfWork, before: Any, member_id: str | None) -> Any:
    """Submit the assessment ``before``, which is locked, and return its row. It is by the vendor without a member."""
    values = {
        "status": SUBMITTED,
        "submitted_at": unit.moment,
        "submitted_by_id": member_id,
        "score": score_in_all(unit, before),
    }
    return take_step(unit, "submit", VendorAssessment, before, values)


def reopen(unit: UnitOfWork, assessment_id: str, reason: str, *, require_current: Known) -> Any:
    """Let submitted answers be changed again, for a reason, and return the row.

    Raises NotFound, InsufficientRole, Archived and WrongState.
    """
    before = _in(unit, assessment_id, (SUBMITTED,))
    require_current(before)
    values: dict[str, Any] = {"status": SENT, "reopening_reason": reason}
    values |= dict.fromkeys(("submitted_at", "submitted_by_id", "score"))
    return take_step(unit, "reopen", VendorAssessment, before, values)


def review(unit: UnitOfWork, assessment_id: str, values: Mapping[str, Any], *, require_current: Known) -> Any:
    """Record what submitted answers mean, and return the row. The vendor gets the values, and the one before ends.

    ``values`` has :data:`VALUES`, :data:`REASONS` and ``next_assessment_at``. Raises NotFound, InsufficientRole,
    Archived, WrongState, and Forbidden for a service account.
    """
    before = _in(unit, assessment_id, (SUBMITTED,))
    member_id = own_membership(unit, before.organization_id)
    if member_id is None:
        raise Forbidden(_NOBODY)
    require_current(before)
    if before.vendor_id is not None:
        vendor = found_for_change(unit, Vendor, before.vendor_id)
        if vendor.archived_at is not None:
            raise Archived("The vendor is archived.")
        key = {"organization": before.organization_id, "vendor": vendor.id}
        for earlier_id in unit.scalars(_REVIEWED, key):
            earlier = found_for_change(unit, VendorAssessment, earlier_id)
            take_step(unit, "review", VendorAssessment, earlier, {"status": SUPERSEDED})
        now = {name: values[name] for name in VALUES}
        take_step(unit, "review", Vendor, vendor, {"last_assessment_id": before.id, **now})
    made = {"status": REVIEWED, "reviewed_at": unit.moment, "reviewed_by_id": member_id, **values}
    return take_step(unit, "review", VendorAssessment, before, made)


def _in(unit: UnitOfWork, assessment_id: str, allowed: tuple[str, ...]) -> Any:
    """The row of a live assessment in one of these states, locked."""
    before = found_for_change(unit, VendorAssessment, assessment_id)
    if before.archived_at is not None:
        raise Archived
    if before.status not in allowed:
        raise WrongState(before.status, allowed)
    return before


_TABLE = VendorAssessment.sql()
_REVIEWED = (
    select(_TABLE.c.id)
    .where(
        _TABLE.c.organization_id == bindparam("organization"),
        _TABLE.c.vendor_id == bindparam("vendor"),
        _TABLE.c.status == REVIEWED,
        _TABLE.c.archived_at.is_(None),
    )
    .order_by(_TABLE.c.id)
)
