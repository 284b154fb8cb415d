"""Confirming that an assessment still holds."""

from __future__ import annotations

from typing import Any

from normata.core.changes.source import FaultyInput, Row
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.types import passes_at
from normata.coverage.assessments import (
    ASSESSMENT_COLUMNS,
    read_assessments,
    update_assessments,
)
from normata.coverage.recompute import Touched, bring_up_to_date, lock_coverage
from normata.coverage.staleness import REVIEW_COLUMNS
from normata.errors import NotAssessed
from normata.frameworks.model import ControlCoverage


def confirm_assessment(unit: UnitOfWork, organization_id: str, control_id: str, review_by: str | None) -> Any:
    """Record that an assessment still holds, and return :func:`read_assessments` of its control.

    It is then not stale, and counts again if it had lapsed. Raises NotFound, NotAssessed if there is nothing to
    confirm, and FaultyInput if the next review is missing or not later.
    """
    unit.require_reach(organization_id)
    lock_coverage(unit, organization_id)
    (found,) = read_assessments(unit, organization_id, [control_id])
    if found.assessment_id is None:
        raise NotAssessed
    source = Row("controlCoverages", "body", "", {})
    if review_by is None and found.review_due_at is not None and found.review_due_at <= unit.moment:
        raise FaultyInput([source.fault("reviewBy", f"is required: the review was due by {found.review_by}")])
    if review_by is not None and passes_at(review_by) <= unit.moment:
        raise FaultyInput([source.fault("reviewBy", "must be in the future")])
    columns = (*ASSESSMENT_COLUMNS, *REVIEW_COLUMNS, "created_at", "updated_at")
    before = {name: getattr(found, name) for name in columns}
    before |= {"id": found.assessment_id, "organization_id": organization_id, "control_id": control_id}
    after = {
        **before,
        "coverage_status": found.coverage_status or found.lapsed_status,
        "review_by": review_by or found.review_by,
        "assessed_at": unit.moment,
        "updated_at": unit.moment,
    }
    ControlCoverage.derive(after)
    update_assessments(unit, [after])
    if found.lapsed_status is not None:
        bring_up_to_date(unit, organization_id, Touched(assessed=[control_id]))
    unit.publish(Change("confirm", ControlCoverage, organization_id, found.assessment_id, after, before))
    return read_assessments(unit, organization_id, [control_id])[0]
