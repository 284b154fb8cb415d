"""Whether an assessment is stale, and why.

It is computed when it is read, so nothing has to be written at the time when an assessment becomes stale.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, and_, func, or_

from normata.core.schema.fields import Timestamp
from normata.core.schema.wire import Wire
from normata.frameworks.model import ControlCoverage

REVIEW_OVERDUE = "REVIEW_OVERDUE"
STALE = "Why the assessment is stale; empty if it is not. To confirm it, or another `coverageStatus`, ends that."
LAPSED_STATUS = "The status of an assessment that has lapsed: it counts no more, and `coverageStatus` is null."
LAPSED_AT = "The moment from which on the status should not count; null if it counts."


class Staleness(Wire):
    """A reason for which an assessment is stale."""

    reason: str = Field(
        description="`REVIEW_OVERDUE`: its `reviewBy` has passed, and it was neither assessed nor confirmed since.",
        json_schema_extra={"x-extensible-enum": [REVIEW_OVERDUE]},
    )
    since: Timestamp = Field(description="Since when. A plain date passes when its day ends.")


def staleness(row: Any, moment: str) -> list[dict[str, Any]]:
    """The members of :class:`Staleness` of an assessment with review_due_at, assessed_at and lapsed_at."""
    since = row.lapsed_at
    if since is None and row.review_due_at is not None and row.review_due_at <= moment:
        is_reviewed = row.assessed_at is not None and row.assessed_at >= row.review_due_at
        since = None if is_reviewed else row.review_due_at
    return [] if since is None else [{"reason": REVIEW_OVERDUE, "since": since}]


def is_overdue(moment: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that the review of an assessment is overdue at a moment, and it has not lapsed."""
    columns = ControlCoverage
    return and_(
        columns.review_due_at <= moment,
        or_(columns.assessed_at.is_(None), columns.assessed_at < columns.review_due_at),
        columns.lapsed_at.is_(None),
    )


def is_stale(moment: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that an assessment is stale at a moment; it is never null."""
    return func.coalesce(or_(ControlCoverage.lapsed_at.is_not(None), is_overdue(moment)), False)
