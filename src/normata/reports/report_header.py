"""The head of a report: an organization, and a framework that it has adopted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import Field
from sqlalchemy import BindParameter, bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.frameworks.baseline_model import Baseline
from normata.frameworks.baselines import BaselineReference
from normata.frameworks.choice import choose_adopted
from normata.frameworks.model import Framework, FrameworkAdoption
from normata.identity.model import Organization


class ReportOrganization(Wire):
    """The organization that a report is about."""

    id: str
    name: str
    slug: str = Field(description="A readable name for addresses.")


class ReportFramework(Wire):
    """The framework that a report is about."""

    id: str
    name: str
    identifier: str
    slug: str = Field(description="A readable name for addresses.")
    version: str | None


class Report(Wire):
    """The head of every report."""

    organization: ReportOrganization = Field(description="The organization that the report is about.")
    framework: ReportFramework = Field(description="The framework that the report is about.")
    baseline: BaselineReference | None = Field(
        description="The baseline that the organization has adopted it with; null if the whole framework applies."
    )


class ReportHeader(NamedTuple):
    """An organization and one of its frameworks as wire values, and references to all frameworks that it has adopted.

    The references are by id, in the order of lists. ``prefixes`` are what identifiers begin with in the tables of
    applicability of the adopted frameworks that have one. ``scope`` is what the organization's management system is
    about.
    """

    organization: Mapping[str, Any]
    framework: Mapping[str, Any]
    adopted: Mapping[str, Mapping[str, Any]]
    baseline: Mapping[str, Any] | None
    prefixes: Mapping[str, str]
    scope: str | None

    def wire(self) -> dict[str, Any]:
        """The members of :class:`Report`."""
        return {"organization": self.organization, "framework": self.framework, "baseline": self.baseline}


def read_report_header(transaction: Transaction, organization_id: str, framework_id: str) -> ReportHeader:
    """The head of a report, in two statements. Raises NotFound unless the organization has adopted the framework."""
    rows = transaction.rows(_ADOPTED, {"organization": organization_id})
    about = next((row for row in rows if row.id == framework_id), None)
    organization = transaction.row(_NAMED, {"organization": organization_id})
    if about is None or organization is None:
        raise NotFound
    adopted = {
        row.id: {
            "id": row.id,
            "name": row.name,
            "identifier": row.identifier,
            "identifierColor": row.identifier_color,
        }
        for row in rows
    }
    fields = ("id", "name", "identifier", "slug", "version")
    return ReportHeader(
        {field: getattr(organization, field) for field in ("id", "name", "slug")},
        {field: getattr(about, field) for field in fields},
        adopted,
        None
        if about.baseline_id is None
        else {name: getattr(about, f"baseline_{name}") for name in ("id", "identifier", "name")},
        {row.id: row.applicability_prefix for row in rows if row.applicability_prefix},
        organization.scope,
    )


def find_adopted(transaction: Transaction, organization_id: str, name: str) -> str:
    """The id of the adopted framework that ``name`` (an id, slug or identifier) names. Raises NotAdopted."""
    return choose_adopted(name, transaction.rows(_ADOPTED, {"organization": organization_id}))


_ORGANIZATION: BindParameter[str] = bindparam("organization")

_ADOPTED = (
    select(
        Framework.id,
        Framework.name,
        Framework.identifier,
        Framework.slug,
        Framework.version,
        Framework.identifier_color,
        Framework.applicability_prefix,
        Baseline.id.label("baseline_id"),
        Baseline.identifier.label("baseline_identifier"),
        Baseline.name.label("baseline_name"),
    )
    .join(FrameworkAdoption, FrameworkAdoption.framework_id == Framework.id)
    .outerjoin(Baseline, Baseline.id == FrameworkAdoption.baseline_id)
    .where(FrameworkAdoption.organization_id == _ORGANIZATION)
    .order_by(Framework.identifier_key, Framework.id)
)
_NAMED = select(Organization.id, Organization.name, Organization.slug, Organization.scope).where(
    Organization.id == _ORGANIZATION
)
