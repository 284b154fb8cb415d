"""Whether an assessment is stale, and why.

It is computed when it is read, so nothing has to be written at the time when an assessment becomes stale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, and_, case, exists, func, or_, select
from sqlalchemy import Table as SqlTable

from normata.core.schema.fields import Timestamp
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.frameworks.evidence_model import ControlEvidence
from normata.frameworks.model import ControlCoverage
from normata.frameworks.wording_model import ControlWording

# The columns that follow from when an assessment was made, and from its review and evidence.
REVIEW_COLUMNS = ("assessed_at", "review_due_at", "lapsed_status", "lapsed_at", "lapse_reason")

REVIEW_OVERDUE = "REVIEW_OVERDUE"
EVIDENCE_ENDED = "EVIDENCE_ENDED"
WORDING_CHANGED = "WORDING_CHANGED"
STALE = "Why the assessment is stale; empty if it is not. To confirm it, or another `coverageStatus`, ends that."
ASSESSED_AT = "When the status was last set or confirmed; without a status, when it was decided whether it applies."
LAPSED_STATUS = "The status of an assessment that has lapsed: it counts no more, and `coverageStatus` is null."
LAPSED_AT = "The moment from which on the status should not count; null if it counts."


class Staleness(Wire):
    """A reason for which an assessment is stale."""

    reason: str = Field(
        description="`REVIEW_OVERDUE`: its `reviewBy` has passed, and it was neither assessed nor confirmed since."
        " `EVIDENCE_ENDED`: the control had evidence, and no piece is valid any more: its `validUntil` has passed, or"
        " it was archived or unlinked; and likewise."
        " `WORDING_CHANGED`: an import has changed the identifier, name or description of the control since it was"
        " assessed or confirmed; `GET /controls/{id}/wordings/` has the earlier text.",
        json_schema_extra={"x-extensible-enum": [REVIEW_OVERDUE, EVIDENCE_ENDED, WORDING_CHANGED]},
    )
    since: Timestamp = Field(description="Since when. A plain date passes when its day ends.")


_WORDING, _ASSESSMENT, _EVIDENCE = sql_table(ControlWording), sql_table(ControlCoverage), sql_table(ControlEvidence)


def assessed_on(assessment: SqlTable) -> ColumnElement[Any]:
    """When an assessment was made or last confirmed, and so for which wording of the control."""
    return func.coalesce(assessment.c.assessed_at, assessment.c.created_at)


def has_assessed(assessment: SqlTable) -> ColumnElement[bool]:
    """Whether an assessment judges the control. One with only an owner depends on no wording, and on no evidence."""
    return or_(*(assessment.c[name].is_not(None) for name in ("coverage_status", "lapsed_status", "is_applicable")))


def reworded_at(assessment: SqlTable, pick: Callable[[ColumnElement[Any]], ColumnElement[Any]]) -> ColumnElement[Any]:
    """When the control of an assessment got another wording than the assessed one; null if it has not.

    ``assessment`` is the table of assessments, or its history, and ``pick`` chooses one of several times. An assessment
    at the same time as an import was made before it.
    """
    made_at = assessed_on(assessment)
    return (
        select(pick(_WORDING.c.stale_since))
        .where(
            _WORDING.c.control_id == assessment.c.control_id,
            _WORDING.c.stale_since.is_not(None),
            or_(_WORDING.c.valid_from.is_(None), _WORDING.c.valid_from < made_at),
            or_(made_at.is_(None), _WORDING.c.replaced_at >= made_at),
            has_assessed(assessment),
        )
        .correlate(assessment)
        .scalar_subquery()
    )


ASSESSED_ON = assessed_on(_ASSESSMENT)
HAS_ASSESSED = has_assessed(_ASSESSMENT)
# In the rows of :func:`staleness` it is ``reworded_at``.
REWORDED_AT: ColumnElement[str | None] = reworded_at(_ASSESSMENT, func.max)
_OF_ASSESSMENT = and_(
    _EVIDENCE.c.organization_id == _ASSESSMENT.c.organization_id, _EVIDENCE.c.control_id == _ASSESSMENT.c.control_id
)
# When the evidence of an assessment ends, or has ended; null if it has no end, or there never was any. In the rows of
# :func:`staleness` it is ``evidence_ends_at``.
EVIDENCE_ENDS_AT: ColumnElement[str | None] = (
    select(_EVIDENCE.c.ends_at).where(_OF_ASSESSMENT, HAS_ASSESSED).correlate(_ASSESSMENT).scalar_subquery()
)


# What :func:`staleness` needs of an assessment.
STALENESS_COLUMNS = (
    *(_ASSESSMENT.c[name] for name in ("assessed_at", "review_due_at", "lapsed_at", "lapse_reason")),
    EVIDENCE_ENDS_AT.label("evidence_ends_at"),
    REWORDED_AT.label("reworded_at"),
)


def is_made_on(valid_from: str | None, replaced_at: str, made_at: str | None) -> bool:
    """Whether an assessment made at a time was of this wording, by the same rule as :data:`REWORDED_AT`."""
    if made_at is None:
        return valid_from is None
    return (valid_from is None or valid_from < made_at) and made_at <= replaced_at


def missed_review(row: Any) -> str | None:
    """When a review was due after which an assessment was neither made nor confirmed; null if there is none."""
    is_reviewed = row.review_due_at is None or (row.assessed_at is not None and row.assessed_at >= row.review_due_at)
    return None if is_reviewed else str(row.review_due_at)


def ended_evidence(row: Any) -> str | None:
    """When the evidence ends after which an assessment was neither made nor confirmed; null if there is no such end."""
    if row.evidence_ends_at is None or (row.assessed_at is not None and row.assessed_at >= row.evidence_ends_at):
        return None
    return str(row.evidence_ends_at)


def review_missed_at(assessment: SqlTable) -> ColumnElement[Any]:
    """The same as :func:`missed_review` in SQL, of the table of assessments or its history."""
    return case((is_before(assessment.c, assessment.c.review_due_at), assessment.c.review_due_at))


def is_before(columns: Any, moment: ColumnElement[Any]) -> ColumnElement[bool]:
    """The condition that an assessment was neither made nor confirmed since a moment."""
    return or_(columns.assessed_at.is_(None), columns.assessed_at < moment)


def staleness(row: Any, moment: str) -> list[dict[str, Any]]:
    """The reasons why an assessment is stale at a moment. Its row has :data:`STALENESS_COLUMNS`."""
    if row.lapsed_at is row.review_due_at is row.evidence_ends_at is row.reworded_at is None:  # as most are
        return []
    overdue, ended = missed_review(row), ended_evidence(row)
    overdue = overdue if overdue is not None and overdue <= moment else None
    ended = ended if ended is not None and ended <= moment else None
    if row.lapsed_at is not None:
        if row.lapse_reason == EVIDENCE_ENDED:
            ended = row.lapsed_at
        else:
            overdue = row.lapsed_at
    if overdue is ended is row.reworded_at is None:
        return []
    reasons = ((REVIEW_OVERDUE, overdue), (EVIDENCE_ENDED, ended), (WORDING_CHANGED, row.reworded_at))
    return [{"reason": reason, "since": since} for reason, since in reasons if since is not None]


def is_overdue(moment: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that the review of an assessment is overdue at a moment, and it has not lapsed."""
    columns = ControlCoverage
    return and_(
        columns.review_due_at <= moment,
        is_before(columns, columns.review_due_at.expression),
        columns.lapsed_at.is_(None),
    )


def is_unsupported(moment: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that the evidence of an assessment has ended at a moment, and it has not lapsed."""
    return and_(
        HAS_ASSESSED,
        _ASSESSMENT.c.lapsed_at.is_(None),
        exists()
        .where(_OF_ASSESSMENT, _EVIDENCE.c.ends_at <= moment, is_before(_ASSESSMENT.c, _EVIDENCE.c.ends_at))
        .correlate(_ASSESSMENT),
    )


def is_stale(moment: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that an assessment is stale at a moment; it is never null."""
    return func.coalesce(
        or_(
            ControlCoverage.lapsed_at.is_not(None), is_overdue(moment), is_unsupported(moment), REWORDED_AT.is_not(None)
        ),
        False,
    )


def reviewed_columns(
    before: Mapping[str, Any],
    reviewed: Mapping[str, Any],
    after: Mapping[str, Any],
    moment: str,
    restored: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The review columns of a changed assessment: with another status, or else decision, it is assessed now.

    If an earlier one is ``restored``, they are those that it had: undoing a change confirms nothing.
    """
    row = {**after, **reviewed}
    if restored is not None:
        row |= restored
    elif after["coverage_status"] != before["coverage_status"]:
        row |= {"assessed_at": moment, "lapsed_status": None, "lapsed_at": None, "lapse_reason": None}
    elif row["coverage_status"] is row["lapsed_status"] is None and after["is_applicable"] != before["is_applicable"]:
        row["assessed_at"] = moment
    ControlCoverage.derive(row)
    return {name: row[name] for name in REVIEW_COLUMNS}
