"""Gap suggestions: the controls that would close or reduce gaps if they became FULL.

By the rules of coverage, a control that becomes FULL makes FULL what a match of level FULL leads to, and makes PARTIAL
whatever any of its matches leads to. Only controls that are not FULL yet can lift more. A control that does not apply,
or whose framework is not adopted, lifts nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import aliased

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import CoverageStatus, MatchLevel
from normata.core.schema.wire import Wire
from normata.frameworks.control_wire import MatchedControl
from normata.frameworks.counting import match_counts
from normata.frameworks.model import Control, ControlMatch, EffectiveCoverage
from normata.reports.requirements import (
    EFFECTIVE_OF_CONTROL,
    FRAMEWORK,
    IS_APPLICABLE,
    ORGANIZATION,
    coverage_of,
    status_in,
)

_MAX_SUGGESTIONS = 3  # of one gap
_MAX_STEPS = 10  # of a report


class GapSuggestion(Wire):
    """A control from which a match leads to the gap, and its effect on the gap if it became `FULL`."""

    control: MatchedControl = Field(description="The control that would have to become `FULL`.")
    match_level: MatchLevel
    effective_coverage_status: CoverageStatus = Field(description="How far that control is covered now.")
    would_become: CoverageStatus = Field(
        description="What the gap would then be: `FULL`, or `PARTIAL` where it is `NONE`."
    )
    lifts: int = Field(description="How many gaps of this report it would lift, this one included.")


class NextStep(Wire):
    """A control that would lift many gaps of the report at once, if it became `FULL`."""

    control: MatchedControl = Field(description="The control that would have to become `FULL`.")
    effective_coverage_status: CoverageStatus = Field(description="How far that control is covered now.")
    closes: int = Field(description="How many gaps of this report would become `FULL`.")
    lifts: int = Field(description="How many gaps of this report would rise, those that it closes included.")


def read_candidates(transaction: Transaction, organization_id: str, framework_id: str) -> list[Any]:
    """The matches that lead from controls below FULL into controls below FULL of the framework, in one statement."""
    return transaction.rows(_CANDIDATES, {"organization": organization_id, "framework": framework_id})


class _Lift(NamedTuple):
    """The effect of one control on one gap."""

    source: Any
    closes: bool


class GapSuggestions:
    """The suggestions for each of ``gaps``: ids, with the current status of each.

    ``candidates`` are the rows of :func:`read_candidates`, ``adopted`` the frameworks that matches come from, by id and
    in the order of lists.
    """

    def __init__(
        self,
        gaps: Mapping[str, CoverageStatus],
        candidates: Iterable[Any],
        adopted: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._adopted = adopted
        self._rank = {framework_id: number for number, framework_id in enumerate(adopted)}
        self._lifts: defaultdict[str, dict[str, _Lift]] = defaultdict(dict)  # by gap and source
        for row in candidates:
            closes = row.match_level == "FULL"
            if row.target_id not in gaps or not (closes or gaps[row.target_id] == "NONE"):
                continue
            known = self._lifts[row.target_id].get(row.id)
            if known is None or closes > known.closes:  # the stronger of two matches between the same controls counts
                self._lifts[row.target_id][row.id] = _Lift(row, closes)
        self._sources: dict[str, Any] = {}
        self._lifted: defaultdict[str, int] = defaultdict(int)
        self._closed: defaultdict[str, int] = defaultdict(int)
        for lift in (lift for lifts in self._lifts.values() for lift in lifts.values()):
            self._sources[lift.source.id] = lift.source
            self._lifted[lift.source.id] += 1
            self._closed[lift.source.id] += lift.closes

    def of(self, gap_id: str) -> Iterator[dict[str, Any]]:
        """The members of :class:`GapSuggestion` for a gap: first those that close it, then those that lift most."""
        lifts = [*self._lifts.get(gap_id, {}).values()]
        if len(lifts) > 1:
            lifts.sort(key=lambda lift: (not lift.closes, *self._order(lift.source)))
        for source, closes in lifts[:_MAX_SUGGESTIONS]:
            status = "FULL" if closes else "PARTIAL"
            yield self._control(source) | {
                "matchLevel": status,
                "wouldBecome": status,
                "lifts": self._lifted[source.id],
            }

    def next_steps(self) -> Iterator[dict[str, Any]]:
        """The members of :class:`NextStep`: first those that close most, then those that lift most."""
        helpful: Sequence[Any] = nsmallest(
            _MAX_STEPS,
            (source for source in self._sources.values() if self._lifted[source.id] > 1),
            key=lambda source: (-self._closed[source.id], *self._order(source)),
        )
        for source in helpful:
            yield self._control(source) | {"closes": self._closed[source.id], "lifts": self._lifted[source.id]}

    def _order(self, source: Any) -> tuple[int, bool, int, int, str]:
        """The sort key: most lifted gaps first, then a higher status, then framework and catalog order."""
        nearer = source.effective == "PARTIAL"
        return -self._lifted[source.id], not nearer, self._rank[source.framework_id], source.position, source.id

    def _control(self, source: Any) -> dict[str, Any]:
        return {
            "control": {
                "id": source.id,
                "identifier": source.identifier,
                "name": source.name,
                "slug": source.slug,
                "framework": self._adopted[source.framework_id],
            },
            "effectiveCoverageStatus": source.effective,
        }


_target = aliased(Control, name="target")
_of_target = aliased(EffectiveCoverage, name="of_target")

# Only controls of adopted frameworks have coverage, so all others are left out.
_CANDIDATES = (
    select(
        _target.id.label("target_id"),
        ControlMatch.match_level,
        Control.id,
        Control.framework_id,
        Control.position,
        Control.identifier,
        Control.name,
        Control.slug,
        EffectiveCoverage.status.label("effective"),
    )
    .select_from(_target)
    .outerjoin(_of_target, coverage_of(_target.id, _of_target))
    .join(ControlMatch, ControlMatch.target_control_id == _target.id)
    .join(Control, Control.id == ControlMatch.source_control_id)
    .outerjoin(EffectiveCoverage, EFFECTIVE_OF_CONTROL)
    .where(
        _target.framework_id == FRAMEWORK,
        status_in(_of_target, "FULL") != "FULL",
        status_in(EffectiveCoverage, "FULL") != "FULL",
        Control.id != _target.id,
        IS_APPLICABLE,
        match_counts(ORGANIZATION),
    )
)
