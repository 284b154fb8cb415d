"""Counts of a framework's requirements by coverage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from normata.core.schema.fields import COVERAGE_STATUSES, CoverageStatus
from normata.core.schema.wire import Wire


class StatusCounts(Wire):
    """The number of applicable requirements with each status."""

    none: int = Field(description="How many are at `NONE`.")
    partial: int = Field(description="How many are at `PARTIAL`.")
    full: int = Field(description="How many are at `FULL`.")


class CoverageCounts(Wire):
    """The number of requirements, and the coverage of the applicable ones.

    A requirement is a control of type `CONTROL` that is not decomposed into its children.
    """

    requirements: int = Field(description="How many requirements there are: `applicable` and `notApplicable` together.")
    applicable: int = Field(description="How many apply to the organization. The other counts are of these.")
    not_applicable: int = Field(description="How many do not apply to the organization.")
    without_assessment: int = Field(description="How many are not assessed: they have no status of their own.")
    conflicts: int = Field(description="How many have an assessment in conflict with matches or other assessments.")
    stale: int = Field(description="How many have an assessment that is stale.")
    indirectly_covered: int = Field(
        description="How many are lifted by matches above what assessments and roll-up alone would give."
    )
    assessed: StatusCounts = Field(description="The assessed ones by what the organization says.")
    effective: StatusCounts = Field(description="By what follows from assessments, matches and roll-up.")


def _zeros() -> dict[CoverageStatus, int]:
    return dict.fromkeys(COVERAGE_STATUSES, 0)


@dataclass(slots=True)
class CoverageCounter:
    """Counts requirements, row by row."""

    applicable: int = 0
    not_applicable: int = 0
    without_assessment: int = 0
    conflicts: int = 0
    stale: int = 0
    indirectly_covered: int = 0
    assessed: dict[CoverageStatus, int] = field(default_factory=_zeros)
    effective: dict[CoverageStatus, int] = field(default_factory=_zeros)

    def add(self, requirement: Any, count: int = 1, *, is_stale: bool) -> None:
        """Count requirements with these values: is_applicable, assessed, effective, is_indirect, conflict."""
        if not requirement.is_applicable:
            self.not_applicable += count
            return
        self.applicable += count
        self.indirectly_covered += count if requirement.is_indirect else 0
        self.conflicts += count if requirement.conflict else 0
        self.stale += count if is_stale else 0
        self.effective[requirement.effective] += count
        if requirement.assessed is None:
            self.without_assessment += count
        else:
            self.assessed[requirement.assessed] += count

    def wire(self) -> dict[str, Any]:
        """The members of :class:`CoverageCounts`."""
        return {
            "requirements": self.applicable + self.not_applicable,
            "applicable": self.applicable,
            "notApplicable": self.not_applicable,
            "withoutAssessment": self.without_assessment,
            "conflicts": self.conflicts,
            "stale": self.stale,
            "indirectlyCovered": self.indirectly_covered,
            "assessed": {status.lower(): count for status, count in self.assessed.items()},
            "effective": {status.lower(): count for status, count in self.effective.items()},
        }
