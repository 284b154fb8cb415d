"""The statement of applicability (ISO/IEC 27001, 6.1.3 d): necessary controls, with what auditors require of each.

Its table has the controls of the framework's table of applicability, such as Annex A of ISO/IEC 27001, then the
necessary ones of further frameworks that the organization names (6.1.3 b, c). Where a framework has no such table, all
its requirements are in it. Mandatory requirements, such as the clauses, cannot be excluded, and have a section of their
own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlalchemy import BindParameter, bindparam, func, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.fields import REASONS, CoverageStatus, Timestamp
from normata.core.schema.wire import Wire
from normata.coverage.covering import CoveringMatch, covering_matches
from normata.coverage.exclusion import excluding_groups
from normata.coverage.staleness import STALE, Staleness, staleness
from normata.coverage.supporting import EVIDENCE, ControlEvidenceSummary, evidence_to_wire
from normata.errors import CommandError
from normata.frameworks.baselines import OUTSIDE_OF_BASELINE, BaselineReference, outside_to_wire
from normata.frameworks.control_wire import ControlReference, reference_to_wire
from normata.records.kinds import Task
from normata.reports.counts import CoverageCounter, CoverageCounts
from normata.reports.objections import OBJECTIONS, ObjectionCounts, objection_counts, objections_to
from normata.reports.report_header import ReportHeader, read_report_header
from normata.reports.requirements import parent_of, read_with_owners
from normata.reports.statement_head import NamedMember, StatementHead, read_log

Implemented = Literal["YES", "PARTLY", "NO", "NOT_ASSESSED"]

_IMPLEMENTED: Mapping[CoverageStatus | None, Implemented] = {
    "FULL": "YES",
    "PARTIAL": "PARTLY",
    "NONE": "NO",
    None: "NOT_ASSESSED",
}


class OtherNotAdopted(CommandError):
    """The organization has not adopted a further framework of a statement."""


class ApplicabilityEntry(Wire):
    """A requirement: whether it applies and why, whether it is implemented, and what else covers it."""

    id: str
    framework_id: str = Field(description="The framework of the requirement: the statement's, or a further one.")
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
    implemented: Implemented | None = Field(
        description="Whether it is implemented, by the organization's own assessment alone: `YES` if that is `FULL`,"
        " `PARTLY` if it is `PARTIAL`, `NO` if it is `NONE`, and `NOT_ASSESSED` if there is none or it has lapsed. Null"
        " if the requirement does not apply."
    )
    planned_by: Timestamp | None = Field(
        description="Of what is not implemented: the earliest deadline of an open task about its assessment; null if"
        " there is none."
    )
    owner: NamedMember | None = Field(description="The member who is responsible for it.")
    note: str | None = Field(description="How the organization does what it asks for.")
    is_assessed: bool = Field(description="Whether the organization has assessed the control.")
    coverage_status: CoverageStatus | None
    coverage_gap: str | None
    stale: list[Staleness] = Field(description=STALE)
    evidence: ControlEvidenceSummary | None = Field(description=EVIDENCE)
    effective_coverage_status: CoverageStatus = Field(
        description="What follows from statements, matches and roll-up: the best of all paths."
    )
    is_indirectly_covered: bool = Field(
        description="Whether matches lift the control above what statements and roll-up alone would give."
    )
    covered_by: list[CoveringMatch] = Field(
        description="Where it is indirectly covered: the matches that give it its status and do not rest on it, in"
        " catalog order. Else empty."
    )
    objections: list[Annotated[str, Field(json_schema_extra={"x-extensible-enum": list(OBJECTIONS)})]] = Field(
        description="What ISO/IEC 27001, 6.1.3 d, would object to."
    )


class MandatoryRequirements(Wire):
    """The mandatory requirements, such as the clauses of ISO/IEC 27001: they apply to everybody."""

    counts: CoverageCounts = Field(description="Of these.")
    requirements: list[ApplicabilityEntry] = Field(
        description="Every mandatory requirement of the framework, and then of the further ones, in catalog order."
        " Their only objections are `MANDATORY_EXCLUDED` and `CONFLICTING`."
    )


class OtherRequirements(Wire):
    """The requirements outside of a table of applicability that are not mandatory: the statement is not about these."""

    counts: CoverageCounts = Field(description="Of all of them.")


class StatementOfApplicability(StatementHead):
    """The necessary controls of an organization: whether they apply and why, and whether they are implemented."""

    applicability_prefix: str | None = Field(
        description="What identifiers begin with in the framework's table of applicability (`A.`); null if it has no"
        " such table, and the statement is about all requirements."
    )
    counts: CoverageCounts = Field(description="Of the requirements in `controls`.")
    objections: ObjectionCounts = Field(description="The objections to all that the statement has.")
    controls: list[ApplicabilityEntry] = Field(
        description="Every requirement of the table of applicability, or of the framework, but for the mandatory ones,"
        " in catalog order; then those of the further frameworks that apply."
    )
    mandatory: MandatoryRequirements = Field(description="The mandatory requirements, in a section of their own.")
    other_requirements: OtherRequirements | None = Field(
        description="The requirements of the framework outside of its table that are not mandatory; null if there are"
        " none."
    )


@dataclass(frozen=True)
class _Sections:
    """Requirements by the section of the statement that they belong to."""

    prefix: str | None
    table: Sequence[Any]
    mandatory: Sequence[Any]
    outside: Sequence[Any]


@dataclass(frozen=True)
class Applicability:
    """The data of a statement of applicability at a moment.

    That of a version has its title, its number and its approver.
    """

    header: ReportHeader
    others: Sequence[str]  # the ids of further frameworks
    log: Mapping[str, Any] | None
    moment: str
    requirements: Sequence[Any]
    planned: Mapping[str, str]  # the earliest deadlines of open tasks, by assessment
    covering: Mapping[str, Sequence[dict[str, Any]]]  # the matches that cover requirements, by requirement
    excluding: Mapping[str, Any]  # the groups that exclude requirements, by requirement
    title: str | None = None
    version: int | None = None
    approver: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """The members of :class:`StatementOfApplicability`."""
        sections = self._sections()
        controls, mandatory = ([self._entry(one) for one in part] for part in (sections.table, sections.mandatory))
        return self.header.wire() | {
            "title": self.title,
            "scope": self.header.scope,
            "version": self.version,
            "date": self.moment[: len("2026-11-20")],
            "approver": self.approver,
            "otherFrameworks": [self.header.adopted[one] for one in self.others],
            "log": self.log,
            "applicabilityPrefix": sections.prefix,
            "counts": self._counts(sections.table),
            "objections": objection_counts([*controls, *mandatory]),
            "controls": controls,
            "mandatory": {"counts": self._counts(sections.mandatory), "requirements": mandatory},
            "otherRequirements": {"counts": self._counts(sections.outside)} if sections.outside else None,
        }

    def _sections(self) -> _Sections:
        """The requirements by section. Of further frameworks, only what applies is necessary."""
        by_framework: defaultdict[str, list[Any]] = defaultdict(list)
        for one in self.requirements:
            by_framework[one.framework_id].append(one)
        framework_id = self.header.framework["id"]
        prefix, table, outside = self._divided(framework_id, by_framework[framework_id])
        for other in self.others:
            _, necessary, _ = self._divided(other, by_framework[other])
            table += [one for one in necessary if one.is_applicable]
        return _Sections(prefix, table, [one for one in self.requirements if one.is_mandatory], outside)

    def _divided(self, framework_id: str, requirements: Sequence[Any]) -> tuple[str | None, list[Any], list[Any]]:
        """The prefix of a table of applicability, and the requirements in it and outside of it but mandatory ones.

        A table without any requirement is none: the statement would be empty.
        """
        prefix = self.header.prefixes.get(framework_id)
        free = [one for one in requirements if not one.is_mandatory]
        inside = [one for one in free if prefix and one.identifier.startswith(prefix)]
        if prefix is None or not inside:
            return None, free, []
        return prefix, inside, [one for one in free if not one.identifier.startswith(prefix)]

    def _counts(self, requirements: Sequence[Any]) -> dict[str, Any]:
        counter = CoverageCounter()
        for requirement in requirements:
            counter.add(requirement, is_stale=bool(staleness(requirement, self.moment)))
        return counter.wire()

    def _entry(self, requirement: Any) -> dict[str, Any]:
        excluding = self.excluding.get(requirement.id)
        justification, reasons = requirement.justification, requirement.reasons
        if excluding is not None:
            justification = justification if (justification or "").strip() else excluding.justification
            reasons = reasons or excluding.reasons
        is_justified = bool((justification or "").strip())
        return {
            "id": requirement.id,
            "frameworkId": requirement.framework_id,
            "identifier": requirement.identifier,
            "name": requirement.name,
            "parent": parent_of(requirement),
            "isMandatory": requirement.is_mandatory,
            "isApplicable": requirement.is_applicable,
            "reasons": reasons or [],
            "justification": justification,
            "excludedBy": excluding and reference_to_wire(excluding),
            "outsideOfBaseline": outside_to_wire(requirement),
            "implemented": _IMPLEMENTED[requirement.assessed] if requirement.is_applicable else None,
            "plannedBy": self.planned.get(requirement.assessment_id) if requirement.is_applicable else None,
            "owner": requirement.owner_id and {"memberId": requirement.owner_id, "name": requirement.owner_name or ""},
            "note": requirement.note,
            "isAssessed": requirement.assessed is not None,
            "coverageStatus": requirement.assessed,
            "coverageGap": requirement.coverage_gap,
            "stale": staleness(requirement, self.moment),
            "evidence": evidence_to_wire(requirement.evidence_pieces, requirement.evidence_until, self.moment),
            "effectiveCoverageStatus": requirement.effective,
            "isIndirectlyCovered": requirement.is_indirect,
            "coveredBy": [*self.covering.get(requirement.id, ())],
            "objections": list(objections_to(requirement, is_justified=is_justified)),
        }


def read_applicability(
    transaction: Transaction, organization_id: str, framework_id: str, others: Sequence[str] = ()
) -> Applicability:
    """Read what the statement of a framework has, in six statements; ``others`` are the ids of further frameworks.

    Raises NotFound unless it is adopted, and OtherNotAdopted unless these are.

    It takes two more where groups are excluded, and one for what covers requirements indirectly.
    """
    header = read_report_header(transaction, organization_id, framework_id)
    for other in others:
        if other not in header.adopted:
            raise OtherNotAdopted(f"{other} is not the id of a framework that the organization has adopted")
    further = [one for one in dict.fromkeys(others) if one != framework_id]
    requirements = read_with_owners(transaction, organization_id, [framework_id, *further])
    inherited = [one.id for one in requirements if not one.is_applicable and one.decision is None]
    return Applicability(
        header,
        further,
        read_log(transaction, organization_id),
        transaction.time_of_reading(),
        requirements,
        read_planned(transaction, organization_id, [one for one in requirements if one.assessed == "NONE"]),
        covering_matches(transaction, organization_id, [one.id for one in requirements if one.is_indirect]),
        excluding_groups(transaction, organization_id, inherited) if inherited else {},
    )


def read_planned(transaction: Transaction, organization_id: str, requirements: Sequence[Any]) -> Mapping[str, str]:
    """The earliest deadlines of the open tasks about these assessments, in one statement, by assessment."""
    planned: dict[str, str] = {}
    for batch in batches([one.assessment_id for one in requirements]):
        rows = transaction.rows(_PLANNED, {"organization": organization_id, "ids": batch})
        planned |= {row.control_coverage_id: row.deadline for row in rows}
    return planned


_TASK = Task.sql()
_ORGANIZATION: BindParameter[str] = bindparam("organization")
# What the index of open dates stands on, written otherwise: the few tasks of an assessment are to be looked up by it.
_PLANNED = (
    select(_TASK.c.control_coverage_id, func.min(_TASK.c.deadline, type_=_TASK.c.deadline.type).label("deadline"))
    .where(
        _TASK.c.organization_id == _ORGANIZATION,
        _TASK.c.control_coverage_id.in_(bindparam("ids", expanding=True)),
        _TASK.c.archived_at.is_(None),
        _TASK.c.status.not_in(_TASK.c.deadline.info["due"].at),
        _TASK.c.deadline.is_not(None),
    )
    .group_by(_TASK.c.control_coverage_id)
)
