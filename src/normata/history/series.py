"""The coverage of frameworks over time: the counts of their requirements at evenly spaced moments."""

from __future__ import annotations

from bisect import bisect_left
from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from sqlalchemy import Select

from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.fields import Timestamp
from normata.core.schema.history_triggers import FOREVER
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Wire
from normata.errors import NotFound, TooManyPoints
from normata.history.series_statements import ADOPTIONS, ADOPTIONS_OF_ONE, COUNTED, COUNTED_OF_ONE, STALE
from normata.history.start import known_span, thirty_days_before

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


class AdoptionSpan(Wire):
    """A time in which the organization had adopted a framework in one way."""

    since: Timestamp = Field(description="When it began.")
    until: Timestamp | None = Field(description="When the framework was left, or another baseline taken; null if now.")
    adopted_at: Timestamp = Field(description="When the framework was adopted, which may be before the past is known.")
    baseline_id: str | None = Field(description="The adopted baseline; null for the whole framework.")


class StatusPoint(Wire):
    """The requirements of a framework by status at a moment; all counts are 0 while it was not adopted."""

    at: Timestamp = Field(description="The moment.")
    is_adopted: bool = Field(description="Whether the organization had adopted the framework.")
    baseline_id: str | None = Field(description="The baseline that it was adopted with; null for the whole framework.")
    full: int = Field(description="How many applicable requirements were `FULL`, by what follows.")
    partial: int = Field(description="How many were `PARTIAL`.")
    none: int = Field(description="How many were `NONE`.")
    excluded: int = Field(description="How many did not apply.")


class CoveragePoint(StatusPoint):
    """The coverage of a framework at a moment; all counts are 0 while it was not adopted."""

    conflicts: int = Field(description="How many applicable ones had an assessment in conflict.")
    stale: int = Field(description="How many applicable ones had a stale assessment.")


_THIRTY_DAYS = "The same thirty days before `to`; null if the past is not known so far back."
_ADOPTION = "When the framework was adopted, in order."
_SINCE = "The moment since which the past of the organization is known."


class CoverageSeries(Wire):
    """The coverage of a framework over time."""

    framework_id: str = Field(description="The id of the framework.")
    known_since: Timestamp = Field(description=_SINCE)
    points: list[CoveragePoint] = Field(description="In order; the last one is at `to`.")
    thirty_days_before: CoveragePoint | None = Field(description=_THIRTY_DAYS)
    adoptions: list[AdoptionSpan] = Field(description=_ADOPTION)


class FrameworkSeries(Wire):
    """The requirements of one of the frameworks by status over time."""

    framework_id: str = Field(description="The id of the framework.")
    points: list[StatusPoint] = Field(description="In order; the last one is at `to`.")
    thirty_days_before: StatusPoint | None = Field(description=_THIRTY_DAYS)
    adoptions: list[AdoptionSpan] = Field(description=_ADOPTION)


class OrganizationSeries(Wire):
    """The coverage of all frameworks of an organization over time."""

    known_since: Timestamp = Field(description=_SINCE)
    frameworks: list[FrameworkSeries] = Field(description="Those that were adopted at `to`, by their ids.")


_STATUSES = ("full", "partial", "none", "excluded")


def coverage_series(
    transaction: Transaction, organization_id: str, framework_id: str, query: SeriesQuery
) -> dict[str, Any]:
    """The members of :class:`CoverageSeries`, in four statements, whatever the number of moments.

    Raises NotFound unless the organization has or had adopted the framework, PastUnknown of moments that are not known,
    and TooManyPoints.
    """
    key = {"organization": organization_id, "framework": framework_id}
    adoptions = transaction.rows(ADOPTIONS_OF_ONE, key)
    if not adoptions:
        raise NotFound
    moments = _Moments.of(transaction, query)
    key |= moments.span
    counts = _counted(transaction, COUNTED_OF_ONE, key, moments)[framework_id]
    for row in transaction.rows(STALE, key):
        counts.add("stale", row.was_so_from, row.was_so_to, row.requirements)
    series = moments.series(adoptions, counts, (*_STATUSES, "conflicts", "stale"))
    return {"frameworkId": framework_id, "knownSince": moments.since, **series}


def organization_series(transaction: Transaction, query: SeriesQuery) -> dict[str, Any]:
    """The members of :class:`OrganizationSeries`, in three statements, whatever the number of frameworks and moments.

    Raises PastUnknown of moments that are not known, and TooManyPoints.
    """
    moments = _Moments.of(transaction, query)
    key = {"organization": query.organization_id} | moments.span
    adoptions: defaultdict[str, list[Any]] = defaultdict(list)
    for row in transaction.rows(ADOPTIONS, key):
        adoptions[row.framework_id].append(row)
    counted = _counted(transaction, COUNTED, key, moments)
    last = moments.shown[-1]
    return {
        "knownSince": moments.since,
        "frameworks": [
            {"frameworkId": framework_id, **moments.series(rows, counted[framework_id], _STATUSES)}
            for framework_id, rows in adoptions.items()
            if any(row.valid_from <= last < row.valid_to for row in rows)
        ],
    }


class _Counts:
    """Counts by moment, as differences to the moment before, so that a span costs the same however long it is."""

    def __init__(self, moments: Sequence[str]) -> None:
        self._moments = moments
        self._changes: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(moments) + 1))

    def add(self, name: str, start: str, end: str, count: int = 1) -> None:
        """Count so many more at each moment from ``start`` until before ``end``."""
        if start < end:
            changes = self._changes[name]
            changes[bisect_left(self._moments, start)] += count
            changes[bisect_left(self._moments, end)] -= count

    def sums(self, name: str) -> list[int]:
        """The count at each moment."""
        total, found = 0, []
        for change in self._changes[name][:-1]:
            total += change
            found.append(total)
        return found


class _Moments(NamedTuple):
    """The moments of a query, and the one thirty days before the last; null if that is not known."""

    since: str
    shown: list[str]
    before: str | None

    @classmethod
    def of(cls, transaction: Transaction, query: SeriesQuery) -> _Moments:
        """Raises PastUnknown and TooManyPoints."""
        since, start, end = known_span(transaction, query, transaction.time_of_reading(), _year_before)
        before = thirty_days_before(end)
        return cls(since, list(_spaced(start, end, query.step)), before if before >= since else None)

    @property
    def all(self) -> list[str]:
        """All of them in order."""
        return sorted({*self.shown, *([self.before] if self.before else [])})

    @property
    def span(self) -> dict[str, str]:
        """The first and the last one, as parameters of statements."""
        return {"start": self.all[0], "end": self.shown[-1]}

    def series(self, adoptions: Sequence[Any], counts: _Counts, names: Sequence[str]) -> dict[str, Any]:
        """The members that series have in common."""
        sums = {name: counts.sums(name) for name in names}
        points = {}
        for place, moment in enumerate(self.all):
            adoption = next((one for one in adoptions if one.valid_from <= moment < one.valid_to), None)
            points[moment] = {
                "at": moment,
                "isAdopted": adoption is not None,
                "baselineId": adoption and adoption.baseline_id,
                **{name: sums[name][place] for name in names},
            }
        return {
            "points": [points[moment] for moment in self.shown],
            "thirtyDaysBefore": points[self.before] if self.before else None,
            "adoptions": [
                {
                    "since": one.valid_from,
                    "until": None if one.valid_to == FOREVER else one.valid_to,
                    "adoptedAt": one.adopted_at,
                    "baselineId": one.baseline_id,
                }
                for one in adoptions
            ],
        }


def _counted(
    transaction: Transaction, statement: Select[Any], key: dict[str, Any], moments: _Moments
) -> defaultdict[str, _Counts]:
    """The counts of each framework but for stale ones, by its id."""
    every = moments.all
    found: defaultdict[str, _Counts] = defaultdict(lambda: _Counts(every))
    for row in transaction.rows(statement, key):
        counts = found[row.framework_id]
        counts.add(row.status.lower() if row.applies else "excluded", row.was_so_from, row.was_so_to, row.requirements)
        if row.applies and row.is_conflict:
            counts.add("conflicts", row.was_so_from, row.was_so_to, row.requirements)
    return found


def _spaced(start: str, end: str, step: Step) -> Iterator[str]:
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


def _year_before(moment: str) -> str:
    return format_timestamp(_months_later(datetime.fromisoformat(moment), -12))
