"""How many leaves of a framework are covered how far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from normata.core.schema.fields import COVERAGE_STATUSES, CoverageStatus
from normata.core.schema.wire import Wire


class StatusCounts(Wire):
    """How many applicable leaves have each status."""

    none: int = Field(description="How many are at `NONE`.")
    partial: int = Field(description="How many are at `PARTIAL`.")
    full: int = Field(description="How many are at `FULL`.")


class CoverageCounts(Wire):
    """How many leaves (controls without children) there are, and how far the applicable ones are covered."""

    leaves: int = Field(description="How many leaves there are: `applicable` and `notApplicable` together.")
    applicable: int = Field(description="How many apply to the organization. The other counts are of these.")
    not_applicable: int = Field(description="How many do not apply to the organization.")
    without_assessment: int = Field(description="Of how many the organization has said nothing.")
    indirectly_covered: int = Field(
        description="How many are lifted by matches above what statements and roll-up alone would give."
    )
    assessed: StatusCounts = Field(description="By what the organization says; nothing said is `NONE`.")
    effective: StatusCounts = Field(description="By what follows from statements, matches and roll-up.")


def _zeros() -> dict[CoverageStatus, int]:
    return dict.fromkeys(COVERAGE_STATUSES, 0)


@dataclass(slots=True)
class CoverageCounter:
    """Counts leaves as they come."""

    applicable: int = 0
    not_applicable: int = 0
    without_assessment: int = 0
    indirectly_covered: int = 0
    assessed: dict[CoverageStatus, int] = field(default_factory=_zeros)
    effective: dict[CoverageStatus, int] = field(default_factory=_zeros)

    def add(self, leaf: Any, count: int = 1) -> None:
        """Count so many leaves like ``leaf``: a row with is_applicable, is_assessed, stated, effective, is_indirect."""
        if not leaf.is_applicable:
            self.not_applicable += count
            return
        self.applicable += count
        self.without_assessment += 0 if leaf.is_assessed else count
        self.indirectly_covered += count if leaf.is_indirect else 0
        self.assessed[leaf.assessed] += count
        self.effective[leaf.effective] += count

    def wire(self) -> dict[str, Any]:
        """The members of :class:`CoverageCounts`."""
        return {
            "leaves": self.applicable + self.not_applicable,
            "applicable": self.applicable,
            "notApplicable": self.not_applicable,
            "withoutAssessment": self.without_assessment,
            "indirectlyCovered": self.indirectly_covered,
            "assessed": {status.lower(): count for status, count in self.assessed.items()},
            "effective": {status.lower(): count for status, count in self.effective.items()},
        }
