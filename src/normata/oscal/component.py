"""How an organization implements a framework, as an OSCAL component definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import CoverageStatus
from normata.frameworks.model import Control, ControlCoverage
from normata.oscal.catalog import FrameworkContent, read_framework
from normata.oscal.names import (
    Document,
    catalog_uuid,
    left_out,
    line,
    metadata,
    prop,
    uuid_of,
    without_empty,
)
from normata.reports.applicability import read_planned
from normata.reports.report_header import ReportHeader, read_report_header
from normata.reports.requirements import FRAMEWORK, ORGANIZATION, read_with_owners

NOT_ASSESSED = "NOT_ASSESSED"

# What a requirement says of itself where nobody has written how it is implemented, and what OSCAL calls that.
_DESCRIPTIONS: Mapping[CoverageStatus | None, str] = {
    "FULL": "Implemented in full.",
    "PARTIAL": "Implemented in part.",
    "NONE": "Not implemented.",
    None: "Not assessed.",
}
_STATUSES: Mapping[CoverageStatus | None, str] = {"FULL": "implemented", "PARTIAL": "partial"}


@dataclass(frozen=True)
class Assessed:
    """A framework that an organization has adopted, with what it says of the requirements, as rows.

    ``planned`` has the earliest deadlines of the open tasks about assessments, by assessment. ``as_of`` is the moment
    of the past that was read, null for now; tasks have no past, so nothing is planned then.
    """

    header: ReportHeader
    content: FrameworkContent
    requirements: Sequence[Any]
    planned: Mapping[str, str]
    assessed_at: str | None
    as_of: str | None

    @property
    def modified(self) -> str:
        """When the framework or an assessment of it was last changed."""
        return max(self.content.modified, self.assessed_at or "")

    @property
    def identity(self) -> tuple[str, str]:
        """The ids of the organization and the framework."""
        return self.header.organization["id"], self.header.framework["id"]

    @property
    def title(self) -> str:
        """Organization and framework."""
        return f"{self.header.organization['name']}: {self.header.framework['name']}"

    def about(self) -> Iterator[Document]:
        """The properties that every document about it has."""
        organization, framework = self.header.organization, self.header.framework
        yield prop("organization-id", line(organization["id"]))
        yield prop("framework-id", line(framework["id"]))
        if self.header.baseline is not None:
            yield prop("baseline-id", line(self.header.baseline["id"]))
        if self.as_of is not None:
            yield prop("as-of", self.as_of)
            yield left_out("tasks", "What was planned is not known of the past.")


def read_assessed(transaction: Transaction, organization_id: str, framework_id: str, as_of: str | None) -> Assessed:
    """A framework with what the organization says of it. Raises NotFound unless the organization has adopted it."""
    header = read_report_header(transaction, organization_id, framework_id)
    requirements = read_with_owners(transaction, organization_id, [framework_id])
    open_ones = [one for one in requirements if one.assessment_id is not None and one.assessed != "FULL"]
    key = {"organization": organization_id, "framework": framework_id}
    return Assessed(
        header,
        read_framework(transaction, organization_id, framework_id),
        requirements,
        read_planned(transaction, organization_id, open_ones) if as_of is None else {},
        transaction.scalar(_LAST_ASSESSED, key),
        as_of,
    )


@dataclass(frozen=True)
class Component:
    """The data of a component definition."""

    assessed: Assessed

    def present(self) -> Document:
        """The document."""
        about, names = self.assessed, self.assessed.content.names()
        organization = about.header.organization
        title = line(organization["name"]) or "untitled"
        owners = sorted({one.owner_id for one in about.requirements if one.owner_id is not None})
        implementation = {
            "uuid": uuid_of("implementation", *about.identity),
            "source": f"urn:uuid:{catalog_uuid(about.header.framework['id'])}",
            "description": f"How {title} implements {line(about.header.framework['name'])}.",
            "implemented-requirements": [self._requirement(one, names[one.id]) for one in about.requirements],
        }
        component = {
            "uuid": uuid_of("component", organization["id"]),
            "type": "process-procedure",
            "title": title,
            "description": about.header.scope or f"The management system of {title}.",
            "control-implementations": [implementation] if about.requirements else [],
        }
        return {
            "component-definition": {
                "uuid": uuid_of("component-definition", *about.identity),
                "metadata": metadata(
                    about.title,
                    about.modified,
                    about.modified,
                    [*about.about(), *_LEFT_OUT],
                    roles=owners and [{"id": _OWNER, "title": "Responsible for the implementation"}],
                    parties=[_party(owner) for owner in owners],
                ),
                "components": [without_empty(component)],
            }
        }

    def _requirement(self, one: Any, name: str) -> Document:
        return without_empty(
            {
                "uuid": uuid_of("implemented-requirement", self.assessed.identity[0], one.id),
                "control-id": name,
                "description": one.note or (_DESCRIPTIONS[one.assessed] if one.is_applicable else "Does not apply."),
                "props": [*self._properties(one)],
                "responsible-roles": one.owner_id
                and [{"role-id": _OWNER, "party-uuids": [uuid_of("member", one.owner_id)]}],
                "remarks": "\n\n".join(filter(None, (one.coverage_gap, one.justification))),
            }
        )

    def _properties(self, one: Any) -> Iterator[Document]:
        planned = self.assessed.planned.get(one.assessment_id)
        status = _STATUSES.get(one.assessed, planned and one.assessed and "planned")
        if not one.is_applicable:
            status = "not-applicable"
        if status:
            yield prop("implementation-status", status)
        yield prop("coverage-status", one.assessed or NOT_ASSESSED)
        if one.is_applicable:
            yield prop("effective-coverage-status", one.effective, _INDIRECTLY if one.is_indirect else None)
            if planned:
                yield prop("planned-by", planned)
        if one.coverage_gap:
            yield prop("remark", "gap")
        if one.justification:
            yield prop("remark", "justification")
        for reason in one.reasons or ():
            yield prop("reason", reason)
        if one.conflict is not None:
            yield prop("conflict", one.conflict)


_OWNER = "owner"
_INDIRECTLY = "It follows from matches with controls of other frameworks, which this document does not have."
_LEFT_OUT = (
    left_out("matches", "OSCAL has no coverage that follows from the controls of other catalogs."),
    left_out("names", "Whoever is responsible is named by the id of the membership only."),
)


def _party(member_id: str) -> Document:
    return {"uuid": uuid_of("member", member_id), "type": "person", "props": [prop("member-id", line(member_id))]}


_LAST_ASSESSED = (
    select(func.max(ControlCoverage.updated_at, type_=ControlCoverage.updated_at.type))
    .join(Control, Control.id == ControlCoverage.control_id)
    .where(Control.framework_id == FRAMEWORK, ControlCoverage.organization_id == ORGANIZATION)
)
