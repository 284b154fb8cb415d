"""The gaps of a framework: its applicable requirements below FULL, worst first, each with what would close it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import COVERAGE_STATUSES, CoverageStatus
from normata.core.schema.wire import Wire
from normata.coverage.conflicts import CONFLICT_DESCRIPTION
from normata.coverage.graph import Conflict
from normata.coverage.staleness import STALE, Staleness, staleness
from normata.coverage.supporting import EVIDENCE, ControlEvidenceSummary, evidence_to_wire
from normata.frameworks.control_wire import ControlReference
from normata.reports.counts import CoverageCounter, CoverageCounts
from normata.reports.gap_suggestions import GapSuggestion, GapSuggestions, NextStep, read_candidates
from normata.reports.report_header import Report, ReportHeader, read_report_header
from normata.reports.requirements import parent_of, read_conflicts, read_requirements


class Gap(Wire):
    """An applicable requirement that is not covered in full."""

    id: str
    identifier: str
    name: str
    parent: ControlReference | None
    is_mandatory: bool
    is_assessed: bool = Field(description="Whether the organization has assessed the control.")
    coverage_status: CoverageStatus | None
    coverage_gap: str | None
    stale: list[Staleness] = Field(description=STALE)
    evidence: ControlEvidenceSummary | None = Field(description=EVIDENCE)
    effective_coverage_status: CoverageStatus = Field(
        description="What follows from assessments, matches and roll-up: the best of all paths."
    )
    suggestions: list[GapSuggestion] = Field(
        description="Controls that would close or lift the gap if they became `FULL`, the most useful first; at most"
        " three. The control's own assessment closes it, too."
    )


class ConflictingAssessment(Wire):
    """A control whose assessment is in conflict with others."""

    id: str
    identifier: str
    name: str
    parent: ControlReference | None
    is_mandatory: bool
    coverage_status: CoverageStatus | None
    coverage_gap: str | None
    stale: list[Staleness] = Field(description=STALE)
    evidence: ControlEvidenceSummary | None = Field(description=EVIDENCE)
    effective_coverage_status: CoverageStatus = Field(description="What follows, nevertheless.")
    conflict: Conflict = Field(description=CONFLICT_DESCRIPTION)


class GapReport(Report):
    """The gaps of a framework, and the next steps that would close most of them."""

    counts: CoverageCounts = Field(description="Of all requirements of the framework.")
    next_steps: list[NextStep] = Field(
        description="Controls that would lift more than one gap if they became `FULL`, those that close most first; at"
        " most ten."
    )
    gaps: list[Gap] = Field(
        description="Every gap: `NONE` before `PARTIAL`, within that mandatory ones first, then in catalog order."
    )
    conflicts: list[ConflictingAssessment] = Field(
        description="Every control whose assessment is in conflict with matches or other assessments, including"
        " categories, in catalog order."
    )


@dataclass(frozen=True)
class Gaps:
    """The data of the gaps of a framework."""

    header: ReportHeader
    moment: str
    requirements: list[Any]
    candidates: list[Any]
    conflicts: list[Any]

    def wire(self) -> dict[str, Any]:
        """The members of :class:`GapReport`."""
        counts, moment = CoverageCounter(), self.moment
        for requirement in self.requirements:
            counts.add(requirement, is_stale=bool(staleness(requirement, moment)))
        gaps = [one for one in self.requirements if one.is_applicable and one.effective != "FULL"]
        # The sort is stable, so the catalog order remains within each group.
        gaps.sort(key=lambda gap: (COVERAGE_STATUSES.index(gap.effective), not gap.is_mandatory))
        suggestions = GapSuggestions({gap.id: gap.effective for gap in gaps}, self.candidates, self.header.adopted)
        return self.header.wire() | {
            "counts": counts.wire(),
            "nextSteps": list(suggestions.next_steps()),
            "gaps": [_gap(gap, suggestions, moment) for gap in gaps],
            "conflicts": [_assessed(control, moment) | {"conflict": control.conflict} for control in self.conflicts],
        }


def read_gaps(transaction: Transaction, organization_id: str, framework_id: str) -> Gaps:
    """The gaps of a framework, in five statements. Raises NotFound unless the organization has adopted it."""
    return Gaps(
        read_report_header(transaction, organization_id, framework_id),
        transaction.time_of_reading(),
        read_requirements(transaction, organization_id, framework_id),
        read_candidates(transaction, organization_id, framework_id),
        read_conflicts(transaction, organization_id, framework_id),
    )


def _gap(gap: Any, suggestions: GapSuggestions, moment: str) -> dict[str, Any]:
    found = _assessed(gap, moment)
    found["isAssessed"] = gap.assessed is not None
    found["suggestions"] = list(suggestions.of(gap.id))
    return found


def _assessed(requirement: Any, moment: str) -> dict[str, Any]:
    return {
        "id": requirement.id,
        "identifier": requirement.identifier,
        "name": requirement.name,
        "parent": parent_of(requirement),
        "isMandatory": requirement.is_mandatory,
        "coverageStatus": requirement.assessed,
        "coverageGap": requirement.coverage_gap,
        "stale": staleness(requirement, moment),
        "evidence": evidence_to_wire(requirement.evidence_pieces, requirement.evidence_until, moment),
        "effectiveCoverageStatus": requirement.effective,
    }
