"""The statement of applicability (ISO/IEC 27001, 6.1.3 d): controls, with what auditors require of each.

It is about the requirements of the framework's table of applicability, such as Annex A of ISO/IEC 27001. What is
outside of the table, such as the clauses, is only counted. Where a framework has no such table, it is about all
requirements.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction, batches
from normata.core.db.types import now
from normata.core.schema.fields import REASONS, CoverageStatus
from normata.core.schema.wire import Wire
from normata.coverage.coverage_list import CoveringMatch
from normata.coverage.exclusion import excluding_groups
from normata.coverage.staleness import STALE, Staleness, staleness
from normata.frameworks.baselines import OUTSIDE_OF_BASELINE, BaselineReference, outside_to_wire
from normata.frameworks.control_wire import ControlReference, reference_to_wire
from normata.frameworks.model import Control, ControlMatch, EffectiveCoverage
from normata.reports.counts import CoverageCounter, CoverageCounts
from normata.reports.report_header import Report, ReportHeader, read_report_header
from normata.reports.requirements import EFFECTIVE, EFFECTIVE_OF_CONTROL, parent_of, read_requirements
from normata.reports.supporting_matches import read_supporting_matches

# What ISO/IEC 27001, 6.1.3 d, demands and is missing: a justification for each included and each excluded control, and
# whether it is implemented.
EXCLUDED_WITHOUT_JUSTIFICATION = "EXCLUDED_WITHOUT_JUSTIFICATION"
INCLUDED_WITHOUT_JUSTIFICATION = "INCLUDED_WITHOUT_JUSTIFICATION"
APPLICABLE_WITHOUT_STATUS = "APPLICABLE_WITHOUT_STATUS"
MANDATORY_EXCLUDED = "MANDATORY_EXCLUDED"
CONFLICTING = "CONFLICTING"
OBJECTIONS = (
    *(EXCLUDED_WITHOUT_JUSTIFICATION, INCLUDED_WITHOUT_JUSTIFICATION, APPLICABLE_WITHOUT_STATUS),
    *(MANDATORY_EXCLUDED, CONFLICTING),
)


class ApplicabilityEntry(Wire):
    """A requirement: whether it applies and why, how far it is covered and by what."""

    id: str
    identifier: str
    name: str
    parent: ControlReference | None
    is_mandatory: bool
    is_applicable: bool
    reasons: list[Annotated[str, Field(json_schema_extra={"x-extensible-enum": list(REASONS)})]]
    justification: str | None
    excluded_by: ControlReference | None = Field(
        description="The category above that does not apply, and excludes the requirement; if the requirement has no"
        " justification or reasons of its own, these are the category's. Otherwise null."
    )
    outside_of_baseline: BaselineReference | None = Field(description=OUTSIDE_OF_BASELINE)
    is_assessed: bool = Field(description="Whether the organization has assessed the control.")
    coverage_status: CoverageStatus | None
    coverage_gap: str | None
    stale: list[Staleness] = Field(description=STALE)
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
    """The number of controls with each objection."""

    excluded_without_justification: int = Field(description="How many do not apply, and nothing says why.")
    included_without_justification: int = Field(
        description="How many apply, and neither reasons nor a justification say why."
    )
    applicable_without_status: int = Field(description="How many apply and are not assessed.")
    mandatory_excluded: int = Field(description="How many are mandatory and excluded nevertheless.")
    conflicting: int = Field(description="How many have an assessment in conflict with their effective coverage.")


class OtherRequirements(Wire):
    """The requirements outside of a table of applicability: the statement is not about these."""

    mandatory: int = Field(description="How many of them are mandatory.")
    counts: CoverageCounts = Field(description="Of all of them.")
    excluded: list[ApplicabilityEntry] = Field(
        description="The mandatory ones that are excluded nevertheless, in catalog order: an auditor would object."
    )


class StatementOfApplicability(Report):
    """The requirements of a framework's table of applicability: whether they apply and how far they are covered."""

    applicability_prefix: str | None = Field(
        description="What identifiers begin with in the framework's table of applicability (`A.`); null if it has no"
        " such table, and the statement is about all requirements."
    )
    counts: CoverageCounts = Field(description="Of the requirements that the statement is about.")
    objections: ObjectionCounts = Field(
        description="The objections to these, and to mandatory requirements outside of the table that are excluded."
    )
    controls: list[ApplicabilityEntry] = Field(
        description="Every requirement of the table of applicability, or of the framework, in catalog order."
    )
    other_requirements: OtherRequirements | None = Field(
        description="The requirements outside of the table, such as the clauses of ISO/IEC 27001; null without a table."
    )


@dataclass(frozen=True)
class Applicability:
    """The data of a statement of applicability."""

    header: ReportHeader
    requirements: list[Any]
    covering: Mapping[str, Sequence[Any]]  # the matches that cover requirements, by requirement
    excluding: Mapping[str, Any]  # the groups that exclude requirements, by requirement

    def wire(self) -> dict[str, Any]:
        """The members of :class:`StatementOfApplicability`."""
        moment = now()
        prefix, about, others = self._divided()
        controls = [self._entry(one, self._covered_by(one), moment) for one in about]
        excluded = [self._entry(one, [], moment) for one in others if one.is_mandatory and not one.is_applicable]
        objections = Counter(objection for entry in controls for objection in entry["objections"])
        objections[MANDATORY_EXCLUDED] += len(excluded)
        return self.header.wire() | {
            "applicabilityPrefix": prefix,
            "counts": _counts(about, moment),
            "objections": {
                "excludedWithoutJustification": objections[EXCLUDED_WITHOUT_JUSTIFICATION],
                "includedWithoutJustification": objections[INCLUDED_WITHOUT_JUSTIFICATION],
                "applicableWithoutStatus": objections[APPLICABLE_WITHOUT_STATUS],
                "mandatoryExcluded": objections[MANDATORY_EXCLUDED],
                "conflicting": objections[CONFLICTING],
            },
            "controls": controls,
            "otherRequirements": None
            if prefix is None
            else {
                "mandatory": sum(one.is_mandatory for one in others),
                "counts": _counts(others, moment),
                "excluded": excluded,
            },
        }

    def _divided(self) -> tuple[str | None, list[Any], list[Any]]:
        """The prefix of the table of applicability, and the requirements in it and outside of it.

        A table without any requirement is none: the statement would be empty.
        """
        prefix = self.header.applicability_prefix
        about = [one for one in self.requirements if prefix and one.identifier.startswith(prefix)]
        if prefix is None or not about:
            return None, self.requirements, []
        return prefix, about, [one for one in self.requirements if not one.identifier.startswith(prefix)]

    def _covered_by(self, requirement: Any) -> list[dict[str, Any]]:
        """The members of :class:`CoveringMatch` of a requirement, in the frameworks' order."""
        adopted = self.header.adopted
        rank = {framework_id: number for number, framework_id in enumerate(adopted)}
        return [
            {
                "id": row.match_id,
                "matchLevel": row.match_level,
                "matchedControl": {
                    "id": row.id,
                    "identifier": row.identifier,
                    "name": row.name,
                    "slug": row.slug,
                    "framework": adopted[row.framework_id],
                },
                "effectiveCoverageStatus": row.effective,
            }
            for row in sorted(
                self.covering.get(requirement.id, ()),
                key=lambda row: (rank[row.framework_id], row.position, row.match_id),
            )
        ]

    def _entry(self, requirement: Any, covered_by: list[dict[str, Any]], moment: str) -> dict[str, Any]:
        return _entry(requirement, covered_by, self.excluding.get(requirement.id), moment)


def read_applicability(transaction: Transaction, organization_id: str, framework_id: str) -> Applicability:
    """Read the assessments and coverage of a framework's requirements, in three statements.

    Raises NotFound unless it is adopted.

    It takes two more where groups are excluded, and some more for what covers requirements indirectly.
    """
    header = read_report_header(transaction, organization_id, framework_id)
    requirements = read_requirements(transaction, organization_id, framework_id)
    inherited = [one.id for one in requirements if not one.is_applicable and one.decision is None]
    return Applicability(
        header,
        requirements,
        _read_covering(transaction, organization_id, [one for one in requirements if one.is_indirect]),
        excluding_groups(transaction, organization_id, inherited) if inherited else {},
    )


def _read_covering(
    transaction: Transaction, organization_id: str, requirements: Sequence[Any]
) -> Mapping[str, Sequence[Any]]:
    """The matches that cover these requirements, which are covered indirectly, with their sources."""
    supporting = read_supporting_matches(transaction, organization_id, [one.id for one in requirements])
    matches = sorted({match for one in requirements for match in supporting.of(one.id, one.effective)})
    covering: defaultdict[str, list[Any]] = defaultdict(list)
    for batch in batches(matches):
        for row in transaction.rows(_SOURCES, {"organization": organization_id, "ids": batch}):
            covering[row.target_id].append(row)
    return covering


def _counts(requirements: Sequence[Any], moment: str) -> dict[str, Any]:
    counter = CoverageCounter()
    for requirement in requirements:
        counter.add(requirement, is_stale=bool(staleness(requirement, moment)))
    return counter.wire()


def _entry(requirement: Any, covered_by: list[dict[str, Any]], excluding: Any, moment: str) -> dict[str, Any]:
    justification, reasons = requirement.justification, requirement.reasons
    if excluding is not None:
        justification = justification if (justification or "").strip() else excluding.justification
        reasons = reasons or excluding.reasons
    is_justified = bool((justification or "").strip())
    return {
        "id": requirement.id,
        "identifier": requirement.identifier,
        "name": requirement.name,
        "parent": parent_of(requirement),
        "isMandatory": requirement.is_mandatory,
        "isApplicable": requirement.is_applicable,
        "reasons": reasons or [],
        "justification": justification,
        "excludedBy": excluding and reference_to_wire(excluding),
        "outsideOfBaseline": outside_to_wire(requirement),
        "isAssessed": requirement.assessed is not None,
        "coverageStatus": requirement.assessed,
        "coverageGap": requirement.coverage_gap,
        "stale": staleness(requirement, moment),
        "effectiveCoverageStatus": requirement.effective,
        "isIndirectlyCovered": requirement.is_indirect,
        "coveredBy": covered_by,
        "objections": list(_objections(requirement, is_justified=is_justified)),
    }


def _is_left_out(requirement: Any) -> bool:
    """Whether the baseline, and not an assessment, excludes a requirement: that is its justification."""
    return requirement.outside_id is not None and requirement.decision is None


def _objections(requirement: Any, *, is_justified: bool) -> Iterator[str]:
    if not requirement.is_applicable:
        if requirement.is_mandatory:
            yield MANDATORY_EXCLUDED
        if not (is_justified or _is_left_out(requirement)):
            yield EXCLUDED_WITHOUT_JUSTIFICATION
        return
    if requirement.conflict:
        yield CONFLICTING
    if not (requirement.reasons or is_justified):
        yield INCLUDED_WITHOUT_JUSTIFICATION
    if requirement.assessed is None:
        yield APPLICABLE_WITHOUT_STATUS


_SOURCES = (
    select(
        ControlMatch.id.label("match_id"),
        ControlMatch.target_control_id.label("target_id"),
        ControlMatch.match_level,
        Control.id,
        Control.framework_id,
        Control.position,
        Control.identifier,
        Control.name,
        Control.slug,
        EFFECTIVE.label("effective"),
    )
    .join(Control, Control.id == ControlMatch.source_control_id)
    .outerjoin(EffectiveCoverage, EFFECTIVE_OF_CONTROL)
    .where(ControlMatch.id.in_(bindparam("ids", expanding=True)))
)
