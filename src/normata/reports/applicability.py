"""The statement of applicability (ISO/IEC 27001, 6.1.3 d): every leaf of a framework, and what auditors ask of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import aliased

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import REASONS, CoverageStatus
from normata.core.schema.wire import Wire
from normata.coverage.coverage_list import CoveringMatch
from normata.frameworks.control_wire import ControlReference
from normata.frameworks.model import Control, ControlMatch, EffectiveCoverage
from normata.frameworks.visibility import match_visible_to
from normata.reports.counts import CoverageCounter, CoverageCounts
from normata.reports.leaves import FRAMEWORK, ORGANIZATION, parent_of, read_leaves
from normata.reports.report_header import Report, ReportHeader, read_report_header
from normata.reports.supporting_matches import SupportingMatches, read_lifted_children, read_matches_that_lift

# What the standard would object to: 6.1.3 d asks for the necessary controls with the justification for including
# them and whether they are implemented, and for the justification for excluding others.
EXCLUDED_WITHOUT_JUSTIFICATION = "EXCLUDED_WITHOUT_JUSTIFICATION"
INCLUDED_WITHOUT_JUSTIFICATION = "INCLUDED_WITHOUT_JUSTIFICATION"
APPLICABLE_WITHOUT_STATUS = "APPLICABLE_WITHOUT_STATUS"
OBJECTIONS = (EXCLUDED_WITHOUT_JUSTIFICATION, INCLUDED_WITHOUT_JUSTIFICATION, APPLICABLE_WITHOUT_STATUS)


class ApplicabilityEntry(Wire):
    """A control without children: whether it applies and why, how far it is covered and by what."""

    id: str
    identifier: str
    name: str
    parent: ControlReference | None
    is_mandatory: bool
    is_applicable: bool
    reasons: list[Annotated[str, Field(json_schema_extra={"x-extensible-enum": list(REASONS)})]]
    justification: str | None
    is_assessed: bool = Field(description="Whether the organization has said anything of the control.")
    coverage_status: CoverageStatus
    coverage_gap: str | None
    effective_coverage_status: CoverageStatus = Field(
        description="What follows from statements, matches and roll-up: the best of all paths."
    )
    is_indirectly_covered: bool = Field(
        description="Whether matches lift the control above what statements and roll-up alone would give."
    )
    covered_by: list[CoveringMatch] = Field(
        description="Where it is indirectly covered: the matches of the shortest proofs, in catalog order. Else empty."
    )
    objections: list[Annotated[str, Field(json_schema_extra={"x-extensible-enum": list(OBJECTIONS)})]] = Field(
        description="What ISO/IEC 27001, 6.1.3 d, would object to."
    )


class ObjectionCounts(Wire):
    """How many controls there is each objection to."""

    excluded_without_justification: int = Field(description="How many do not apply, and nothing says why.")
    included_without_justification: int = Field(
        description="How many apply, and neither reasons nor a justification say why."
    )
    applicable_without_status: int = Field(description="How many apply, and the organization has made no statement.")


class StatementOfApplicability(Report):
    """Every control of a framework that has no children, with whether it applies and how far it is covered."""

    counts: CoverageCounts = Field(description="Of all leaves of the framework.")
    objections: ObjectionCounts = Field(description="The objections to all controls, counted.")
    controls: list[ApplicabilityEntry] = Field(description="Every control without children, in catalog order.")


@dataclass(frozen=True)
class Applicability:
    """What a database has for a statement of applicability."""

    header: ReportHeader
    leaves: list[Any]
    sources: list[Any]
    lifting: list[Any]
    children: list[Any]

    def wire(self) -> dict[str, Any]:
        """The members of :class:`StatementOfApplicability`."""
        counts, objections = CoverageCounter(), Counter[str]()
        covering = _covering(
            self.leaves, self.sources, SupportingMatches(self.lifting, self.children), self.header.adopted
        )
        controls = []
        for leaf in self.leaves:
            counts.add(leaf)
            controls.append(_entry(leaf, covering.get(leaf.id, [])))
            objections.update(controls[-1]["objections"])
        return self.header.wire() | {
            "counts": counts.wire(),
            "objections": {
                "excludedWithoutJustification": objections[EXCLUDED_WITHOUT_JUSTIFICATION],
                "includedWithoutJustification": objections[INCLUDED_WITHOUT_JUSTIFICATION],
                "applicableWithoutStatus": objections[APPLICABLE_WITHOUT_STATUS],
            },
            "controls": controls,
        }


def read_applicability(transaction: Transaction, organization_id: str, framework_id: str) -> Applicability:
    """What is said of a framework's leaves, in six statements. Raises NotFound unless it is adopted."""
    return Applicability(
        read_report_header(transaction, organization_id, framework_id),
        read_leaves(transaction, organization_id, framework_id),
        transaction.rows(_SOURCES, {"organization": organization_id, "framework": framework_id}),
        read_matches_that_lift(transaction, organization_id),
        read_lifted_children(transaction, organization_id),
    )


def _entry(leaf: Any, covered_by: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": leaf.id,
        "identifier": leaf.identifier,
        "name": leaf.name,
        "parent": parent_of(leaf),
        "isMandatory": leaf.is_mandatory,
        "isApplicable": leaf.is_applicable,
        "reasons": leaf.reasons or [],
        "justification": leaf.justification,
        "isAssessed": leaf.is_assessed,
        "coverageStatus": leaf.assessed,
        "coverageGap": leaf.coverage_gap,
        "effectiveCoverageStatus": leaf.effective,
        "isIndirectlyCovered": leaf.is_indirect,
        "coveredBy": covered_by,
        "objections": list(_objections(leaf)),
    }


def _objections(leaf: Any) -> Iterator[str]:
    is_justified = bool((leaf.justification or "").strip())
    if not leaf.is_applicable:
        if not is_justified:
            yield EXCLUDED_WITHOUT_JUSTIFICATION
        return
    if not (leaf.reasons or is_justified):
        yield INCLUDED_WITHOUT_JUSTIFICATION
    if not leaf.is_assessed:
        yield APPLICABLE_WITHOUT_STATUS


def _covering(
    leaves: Sequence[Any],
    sources: Sequence[Any],
    supporting_matches: SupportingMatches,
    adopted: Mapping[str, Mapping[str, Any]],
) -> Mapping[str, list[dict[str, Any]]]:
    """The members of :class:`CoveringMatch` of each leaf that is covered indirectly, in the frameworks' order."""
    rank = {framework_id: number for number, framework_id in enumerate(adopted)}
    carrying = {
        match_id for leaf in leaves if leaf.is_indirect for match_id in supporting_matches.of(leaf.id, leaf.effective)
    }
    covering: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(
        (row for row in sources if row.match_id in carrying),
        key=lambda row: (rank[row.framework_id], row.position, row.match_id),
    ):
        matched = {
            "id": row.id,
            "identifier": row.identifier,
            "name": row.name,
            "slug": row.slug,
            "framework": adopted[row.framework_id],
        }
        covering[row.target_id].append(
            {
                "id": row.match_id,
                "matchLevel": row.match_level,
                "matchedControl": matched,
                "effectiveCoverageStatus": row.effective,
            }
        )
    return covering


_target = aliased(Control, name="target")
_of_target = aliased(EffectiveCoverage, name="of_target")
_SOURCES = (
    select(
        _target.id.label("target_id"),
        ControlMatch.id.label("match_id"),
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
    .join(_of_target, (_of_target.control_id == _target.id) & (_of_target.organization_id == ORGANIZATION))
    .join(ControlMatch, ControlMatch.target_control_id == _target.id)
    .join(Control, Control.id == ControlMatch.source_control_id)
    .join(
        EffectiveCoverage,
        (EffectiveCoverage.control_id == Control.id) & (EffectiveCoverage.organization_id == ORGANIZATION),
    )
    .where(
        _target.framework_id == FRAMEWORK,
        _of_target.is_indirect,
        EffectiveCoverage.status != "NONE",
        match_visible_to(ORGANIZATION),
    )
)
