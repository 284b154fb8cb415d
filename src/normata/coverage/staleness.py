"""Whether an assessment is stale, and why.

It is computed when it is read, so nothing has to be written at the time when an assessment becomes stale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, and_, case, func, or_, select
from sqlalchemy import Table as SqlTable

from normata.core.schema.fields import Timestamp
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.frameworks.model import ControlCoverage
from normata.frameworks.wording_model import ControlWording

# The columns that follow from when an assessment was made, and from its review.
REVIEW_COLUMNS = ("assessed_at", "review_due_at", "lapsed_status", "lapsed_at")

REVIEW_OVERDUE = "REVIEW_OVERDUE"
WORDING_CHANGED = "WORDING_CHANGED"
STALE = "Why the assessment is stale; empty if it is not. To confirm it, or another `coverageStatus`, ends that."
ASSESSED_AT = "When the status was last set or confirmed; without a status, when it was decided whether it applies."
LAPSED_STATUS = "The status of an assessment that has lapsed: it counts no more, and `coverageStatus` is null."
LAPSED_AT = "The moment from which on the status should not count; null if it counts."


class Staleness(Wire):
    """A reason for which an assessment is stale."""

    reason: str = Field(
        description="`REVIEW_OVERDUE`: its `reviewBy` has passed, and it was neither assessed nor confirmed since."
        " `WORDING_CHANGED`: an import has changed the identifier, name or description of the control since it was"
        " assessed or confirmed; `GET /controls/{id}/wordings/` has the earlier text.",
        json_schema_extra={"x-extensible-enum": [REVIEW_OVERDUE, WORDING_CHANGED]},
    )
    since: Timestamp = Field(description="Since when. A plain date passes when its day ends.")


_WORDING, _ASSESSMENT = sql_table(ControlWording), sql_table(ControlCoverage)


def assessed_on(assessment: SqlTable) -> ColumnElement[Any]:
    """When an assessment was made or last confirmed, and so for which wording of the control."""
    return func.coalesce(assessment.c.assessed_at, assessment.c.created_at)


def has_assessed(assessment: SqlTable) -> ColumnElement[bool]:
    """Whether an assessment judges the control. One with only an owner does not depend on the wording."""
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


def is_made_on(valid_from: str | None, replaced_at: str, made_at: str | None) -> bool:
    """Whether an assessment made at a time was of this wording, by the same rule as :data:`REWORDED_AT`."""
    if made_at is None:
        return valid_from is None
    return (valid_from is None or valid_from < made_at) and made_at <= replaced_at


def missed_review(row: Any) -> str | None:
    """When a review was due after which an assessment was neither made nor confirmed; null if there is none."""
    is_reviewed = row.review_due_at is None or (row.assessed_at is not None and row.assessed_at >= row.review_due_at)
    return None if is_reviewed else str(row.review_due_at)


def review_missed_at(assessment: SqlTable) -> ColumnElement[Any]:
    """The same in SQL, of the table of assessments or its history."""
    return case((_is_unreviewed(assessment.c), assessment.c.review_due_at))


def _is_unreviewed(columns: Any) -> ColumnElement[bool]:
    """The condition that an assessment was neither made nor confirmed since its review was due, if it ever is."""
    return or_(columns.assessed_at.is_(None), columns.assessed_at < columns.review_due_at)


def staleness(row: Any, moment: str) -> list[dict[str, Any]]:
    """The reasons why an assessment is stale. Its row has review_due_at, assessed_at, lapsed_at and reworded_at."""
    if row.lapsed_at is row.review_due_at is row.reworded_at is None:  # as most are, in reports of thousands of rows
        return []
    since = row.lapsed_at
    if since is None and (due := missed_review(row)) is not None and due <= moment:
        since = due
    reasons = ((REVIEW_OVERDUE, since), (WORDING_CHANGED, row.reworded_at))
    return [{"reason": reason, "since": since} for reason, since in reasons if since is not None]


def is_overdue(moment: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that the review of an assessment is overdue at a moment, and it has not lapsed."""
    columns = ControlCoverage
    return and_(columns.review_due_at <= moment, _is_unreviewed(columns), columns.lapsed_at.is_(None))


def is_stale(moment: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that an assessment is stale at a moment; it is never null."""
    return func.coalesce(
        or_(ControlCoverage.lapsed_at.is_not(None), is_overdue(moment), REWORDED_AT.is_not(None)), False
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
        row |= {"assessed_at": moment, "lapsed_status": None, "lapsed_at": None}
    elif row["coverage_status"] is row["lapsed_status"] is None and after["is_applicable"] != before["is_applicable"]:
        row["assessed_at"] = moment
    ControlCoverage.derive(row)
    return {name: row[name] for name in REVIEW_COLUMNS}
