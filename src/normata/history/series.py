"""The coverage of a framework over time: the counts of its requirements at evenly spaced moments."""

from __future__ import annotations

from bisect import bisect_left
from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from sqlalchemy import BindParameter, ColumnElement, bindparam, func, or_, select, union
from sqlalchemy import Table as SqlTable

from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp, format_timestamp
from normata.core.schema.fields import Timestamp
from normata.core.schema.history_triggers import BEGINNING, FOREVER
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import NotFound, PastUnknown, TooManyPoints
from normata.frameworks.model import Control
from normata.frameworks.wording_model import ControlWording
from normata.history.model import AdoptionHistory, AssessmentHistory, ControlHistory, EffectiveHistory, HistoryStart

MAX_POINTS = 1_000

Step = Literal["day", "week", "month"]


class SeriesQuery(OrganizationQuery):
    """The query of coverage over time."""

    from_: Annotated[
        Timestamp | None,
        Field(
            alias="from",
            description="The first moment. Unless said, a year before `to`, or the beginning of the known past.",
        ),
    ] = None
    to: Annotated[Timestamp | None, Field(description="The last moment; now unless said.")] = None
    step: Annotated[Step, Field(description="The time between two moments.")] = "week"


class CoveragePoint(Wire):
    """The coverage of a framework at a moment; all counts are 0 while it was not adopted."""

    at: Timestamp = Field(description="The moment.")
    is_adopted: bool = Field(description="Whether the organization had adopted the framework.")
    baseline_id: str | None = Field(description="The baseline that it was adopted with; null for the whole framework.")
    full: int = Field(description="How many applicable requirements were `FULL`, by what follows.")
    partial: int = Field(description="How many were `PARTIAL`.")
    none: int = Field(description="How many were `NONE`.")
    excluded: int = Field(description="How many did not apply.")
    conflicts: int = Field(description="How many applicable ones had an assessment in conflict.")
    stale: int = Field(description="How many applicable ones had a stale assessment.")


class CoverageSeries(Wire):
    """The coverage of a framework over time."""

    framework_id: str = Field(description="The id of the framework.")
    known_since: Timestamp = Field(description="The moment since which the past of the organization is known.")
    points: list[CoveragePoint] = Field(description="In order; the last one is at `to`.")


def coverage_series(
    transaction: Transaction, organization_id: str, framework_id: str, query: SeriesQuery
) -> dict[str, Any]:
    """The members of :class:`CoverageSeries`, in five statements, whatever the number of moments.

    Raises NotFound unless the organization has or had adopted the framework, PastUnknown of moments that are not known,
    and TooManyPoints.
    """
    key = {"organization": organization_id, "framework": framework_id}
    adoptions = transaction.rows(_ADOPTIONS, key)
    if not adoptions:
        raise NotFound
    since = str(transaction.scalar(_SINCE, key) or FOREVER)
    now = transaction.time_of_reading()
    # In whole seconds, so that who asks again at once has the answer already.
    end = query.to or max(since, f"{now[: -len('.123Z')]}.000Z")
    start = query.from_ or max(since, _before(end))
    if start < since or end > now or start > end:
        raise PastUnknown(f"must be from {since}, since when the past is known, to now, and not before `from`")
    moments = list(_moments(start, end, query.step))
    key |= {"start": moments[0], "end": moments[-1]}
    counts = _Counts(moments)
    requirements = _requirements(transaction, key)
    stale = _stale(transaction, key)
    for row in transaction.rows(_EFFECTIVE_ROWS, key):
        held = _Span(row.valid_from, row.valid_to)
        for span in held.parts(requirements.get(row.control_id, ())):
            counts.add(row.status.lower() if row.applies else "excluded", span)
            if row.applies and row.conflict is not None:
                counts.add("conflicts", span)
            if row.applies:
                for part in span.parts(stale.get(row.control_id, ())):
                    counts.add("stale", part)
    names = ("full", "partial", "none", "excluded", "conflicts", "stale")
    sums = {name: counts.sums(name) for name in names}
    points = []
    for place, moment in enumerate(moments):
        adoption = next((one for one in adoptions if one.valid_from <= moment < one.valid_to), None)
        points.append(
            {"at": moment, "isAdopted": adoption is not None, "baselineId": adoption and adoption.baseline_id}
            | {name: sums[name][place] for name in names}
        )
    return {"frameworkId": framework_id, "knownSince": since, "points": points}


class _Span(NamedTuple):
    """The time from ``start`` until before ``end``."""

    start: str
    end: str

    def parts(self, others: Iterable[_Span]) -> Iterator[_Span]:
        """The parts of it that lie in other spans."""
        for other in others:
            start, end = max(self.start, other.start), min(self.end, other.end)
            if start < end:
                yield _Span(start, end)


class _Counts:
    """Counts by moment, as differences to the moment before, so that a span costs the same however long it is."""

    def __init__(self, moments: Sequence[str]) -> None:
        self._moments = moments
        self._changes: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(moments) + 1))

    def add(self, name: str, span: _Span) -> None:
        """Count one more at each moment of a span."""
        changes = self._changes[name]
        changes[bisect_left(self._moments, span.start)] += 1
        changes[bisect_left(self._moments, span.end)] -= 1

    def sums(self, name: str) -> list[int]:
        """The count at each moment."""
        total, found = 0, []
        for change in self._changes[name][:-1]:
            total += change
            found.append(total)
        return found


def _moments(start: str, end: str, step: Step) -> Iterator[str]:
    """Moments from ``start`` on, and ``end``. Raises TooManyPoints."""
    first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
    for number in range(MAX_POINTS):
        match step:
            case "month":
                here = _months_later(first, number)
            case _:
                here = first + timedelta(days=number * (7 if step == "week" else 1))
        if here >= last:
            yield end
            return
        yield format_timestamp(here)
    raise TooManyPoints(f"There would be more than {MAX_POINTS} points; ask for less time, or a longer step.")


def _months_later(moment: datetime, months: int) -> datetime:
    """The same day so many months later, or the last of that month."""
    year, month = divmod(moment.month - 1 + months, 12)
    year += moment.year
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))


def _before(moment: str) -> str:
    """A year before."""
    return format_timestamp(_months_later(datetime.fromisoformat(moment), -12))


def _requirements(transaction: Transaction, key: dict[str, Any]) -> dict[str, list[_Span]]:
    """When each control was a requirement of the framework, by its id."""
    found: defaultdict[str, list[_Span]] = defaultdict(list)
    since: dict[str, str] = {}
    for row in transaction.rows(_EARLIER_CONTROLS, key):
        since[row.id] = row.valid_to
        if not row.was_absent and row.type == "CONTROL" and not row.is_decomposed:
            found[row.id].append(_Span(row.valid_from, row.valid_to))
    for row in transaction.rows(_REQUIREMENTS, key):
        found[row.id].append(_Span(since.get(row.id, BEGINNING), FOREVER))
    return found


def _stale(transaction: Transaction, key: dict[str, Any]) -> dict[str, list[_Span]]:
    """When the assessment of each control was stale, by the rules of :mod:`normata.coverage.staleness`."""
    found: defaultdict[str, list[_Span]] = defaultdict(list)
    for row in transaction.rows(_ASSESSMENTS, key):
        since = [row.valid_from] if row.lapsed_at is not None else []
        if row.review_due_at is not None and (row.assessed_at is None or row.assessed_at < row.review_due_at):
            since.append(row.review_due_at)
        if row.stale_since is not None:
            since.append(row.stale_since)
        if since:
            found[row.control_id].append(_Span(max(row.valid_from, min(since)), row.valid_to))
    return found


_ADOPTED, _EFFECTIVE = sql_table(AdoptionHistory), sql_table(EffectiveHistory)
_EARLIER, _START = sql_table(ControlHistory), sql_table(HistoryStart)
_CONTROL, _WORDING = sql_table(Control), sql_table(ControlWording)
_ASSESSMENT = sql_table(AssessmentHistory)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_FRAMEWORK: BindParameter[str] = bindparam("framework")

_SINCE = select(_START.c.since).where(_START.c.organization_id == _ORGANIZATION)
_ADOPTIONS = (
    select(_ADOPTED.c.valid_from, _ADOPTED.c.valid_to, _ADOPTED.c.baseline_id)
    .where(_ADOPTED.c.organization_id == _ORGANIZATION, _ADOPTED.c.framework_id == _FRAMEWORK)
    .order_by(_ADOPTED.c.valid_from)
)
_EARLIER_CONTROLS = (
    select(*(_EARLIER.c[name] for name in ("id", "type", "is_decomposed", "was_absent", "valid_from", "valid_to")))
    .where(_EARLIER.c.framework_id == _FRAMEWORK)
    .order_by(_EARLIER.c.id, _EARLIER.c.valid_from)
)
_REQUIREMENTS = select(_CONTROL.c.id).where(
    _CONTROL.c.framework_id == _FRAMEWORK, _CONTROL.c.type == "CONTROL", _CONTROL.c.is_decomposed.is_(False)
)
# The controls of the framework, those that are gone included.
_controls = union(
    select(_CONTROL.c.id).where(_CONTROL.c.framework_id == _FRAMEWORK),
    select(_EARLIER.c.id).where(_EARLIER.c.framework_id == _FRAMEWORK),
)


def _in_time(history: SqlTable) -> tuple[ColumnElement[bool], ...]:
    """The entries of the organization about these controls that held at any time between the moments."""
    return (
        history.c.organization_id == _ORGANIZATION,
        history.c.control_id.in_(_controls),
        history.c.valid_from <= bindparam("end", type_=UtcTimestamp()),
        history.c.valid_to > bindparam("start", type_=UtcTimestamp()),
    )


_EFFECTIVE_ROWS = select(
    *(_EFFECTIVE.c[name] for name in ("control_id", "status", "applies", "conflict", "valid_from", "valid_to"))
).where(*_in_time(_EFFECTIVE))
_assessed_on = func.coalesce(_ASSESSMENT.c.assessed_at, _ASSESSMENT.c.created_at)
_ASSESSMENTS = select(
    *(
        _ASSESSMENT.c[name]
        for name in ("control_id", "review_due_at", "assessed_at", "lapsed_at", "valid_from", "valid_to")
    ),
    select(func.min(_WORDING.c.stale_since))
    .where(
        _WORDING.c.control_id == _ASSESSMENT.c.control_id,
        _WORDING.c.stale_since.is_not(None),
        or_(_WORDING.c.valid_from.is_(None), _WORDING.c.valid_from < _assessed_on),
        or_(_assessed_on.is_(None), _WORDING.c.replaced_at >= _assessed_on),
        or_(*(_ASSESSMENT.c[name].is_not(None) for name in ("coverage_status", "lapsed_status", "is_applicable"))),
    )
    .correlate(_ASSESSMENT)
    .scalar_subquery()
    .label("stale_since"),
).where(*_in_time(_ASSESSMENT))
