"""The gaps of a framework: its applicable leaves below FULL, worst first, each with what would close it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import COVERAGE_STATUSES, CoverageStatus
from normata.core.schema.wire import Wire
from normata.frameworks.control_wire import ControlReference
from normata.reports.counts import CoverageCounter, CoverageCounts
from normata.reports.gap_suggestions import GapSuggestion, GapSuggestions, NextStep, read_candidates
from normata.reports.leaves import parent_of, read_leaves
from normata.reports.report_header import Report, ReportHeader, read_report_header


class Gap(Wire):
    """An applicable control without children that is not covered in full."""

    id: str
    identifier: str
    name: str
    parent: ControlReference | None
    is_mandatory: bool
    is_assessed: bool = Field(description="Whether the organization has said anything of the control.")
    coverage_status: CoverageStatus
    coverage_gap: str | None
    effective_coverage_status: CoverageStatus = Field(
        description="What follows from statements, matches and roll-up: the best of all paths."
    )
    suggestions: list[GapSuggestion] = Field(
        description="Controls that would close or lift the gap if they became `FULL`, the most useful first; at most"
        " three. The control's own statement closes it, too."
    )


class GapReport(Report):
    """What is missing of a framework, and what would close most of it."""

    counts: CoverageCounts = Field(description="Of all leaves of the framework.")
    next_steps: list[NextStep] = Field(
        description="Controls that would lift more than one gap if they became `FULL`, those that close most first; at"
        " most ten."
    )
    gaps: list[Gap] = Field(
        description="Every gap: `NONE` before `PARTIAL`, within that mandatory ones first, then in catalog order."
    )


@dataclass(frozen=True)
class Gaps:
    """What a database has of the gaps of a framework."""

    header: ReportHeader
    leaves: list[Any]
    candidates: list[Any]

    def wire(self) -> dict[str, Any]:
        """The members of :class:`GapReport`."""
        counts = CoverageCounter()
        for leaf in self.leaves:
            counts.add(leaf)
        gaps = [leaf for leaf in self.leaves if leaf.is_applicable and leaf.effective != "FULL"]
        # The sort is stable, and they come in catalog order.
        gaps.sort(key=lambda leaf: (COVERAGE_STATUSES.index(leaf.effective), not leaf.is_mandatory))
        suggestions = GapSuggestions({gap.id: gap.effective for gap in gaps}, self.candidates, self.header.adopted)
        return self.header.wire() | {
            "counts": counts.wire(),
            "nextSteps": list(suggestions.next_steps()),
            "gaps": [_gap(gap, suggestions) for gap in gaps],
        }


def read_gaps(transaction: Transaction, organization_id: str, framework_id: str) -> Gaps:
    """The gaps of a framework, in four statements. Raises NotFound unless the organization has adopted it."""
    return Gaps(
        read_report_header(transaction, organization_id, framework_id),
        read_leaves(transaction, organization_id, framework_id),
        read_candidates(transaction, organization_id, framework_id),
    )


def _gap(leaf: Any, suggestions: GapSuggestions) -> dict[str, Any]:
    return {
        "id": leaf.id,
        "identifier": leaf.identifier,
        "name": leaf.name,
        "parent": parent_of(leaf),
        "isMandatory": leaf.is_mandatory,
        "isAssessed": leaf.is_assessed,
        "coverageStatus": leaf.assessed,
        "coverageGap": leaf.coverage_gap,
        "effectiveCoverageStatus": leaf.effective,
        "suggestions": list(suggestions.of(leaf.id)),
    }
