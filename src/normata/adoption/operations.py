"""The operations of adoption: which frameworks an organization works with."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata.adoption.adoption import (
    ADOPTION_WRITES,
    LEAVING_WRITES,
    UNCHANGED,
    NoSuchBaseline,
    adopt_one,
    leave,
)
from normata.adoption.preview import AdoptionPreview, preview_adoption
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Input
from normata.frameworks.baselines import (
    BaselineReference,
    FrameworkBaselines,
    baseline_of_adoption,
    framework_baselines,
)
from normata.frameworks.framework_list import Framework as FrameworkWire
from normata.frameworks.framework_list import one_framework
from normata.frameworks.model import Framework
from normata.frameworks.operations import FRAMEWORK_EXAMPLE
from normata.identity.organization_lookup import reached


class AdoptionInput(Input):
    """How an organization adopts a framework."""

    baseline: Identifier | None = Field(
        None,
        description="The id, slug or identifier of a baseline of the framework; null for the whole framework. If left"
        " out, an adoption keeps its baseline.",
    )


class AdoptedFramework(FrameworkWire):
    """A framework, with the baseline of its adoption."""

    baseline: BaselineReference | None = Field(
        description="The baseline of the adoption; null if the whole framework applies."
    )


class AdoptionPreviewQuery(OrganizationQuery):
    """The query of the preview of an adoption."""

    baseline: Annotated[
        str | None,
        Field(
            description="The id, slug or identifier of the baseline to adopt; empty for the whole framework. If left"
            " out, an adoption keeps its baseline.",
            max_length=255,
        ),
    ] = None


def _put(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    organization_id = reached(unit, request.query.organization_id)
    body: AdoptionInput | None = request.body
    is_named = body is not None and "baseline" in body.model_fields_set
    adopt_one(unit, organization_id, request.id, body.baseline if body is not None and is_named else UNCHANGED)
    return _adopted(unit, organization_id, request.id)


def _adopted(transaction: Transaction, organization_id: str, framework_id: str) -> dict[str, Any]:
    baseline = baseline_of_adoption(transaction, organization_id, framework_id)
    return one_framework(transaction, organization_id, framework_id) | {"baseline": baseline}


def _delete(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    organization_id = reached(unit, request.query.organization_id)
    framework = one_framework(unit, organization_id, request.id)
    leave(unit, organization_id, request.id)
    return framework | {"isAdopted": False, "frameworkAdoptions": [], "adoption": None}


def _preview(transaction: Transaction, request: Request) -> dict[str, Any]:
    query: AdoptionPreviewQuery = request.query
    baseline = UNCHANGED if query.baseline is None else query.baseline.strip() or None
    try:
        return preview_adoption(transaction, request.organization_id, request.id, baseline)
    except NoSuchBaseline as error:
        fault = FieldFault(in_="query", name="baseline", code="unknown", message=str(error), allowed=None)
        raise InvalidRequest.of([fault]) from None


_ID = "The id of a framework that the organization can see."
_PATH = "/frameworks/{id}/adoption/"

OPERATIONS: tuple[Operation, ...] = (
    ChangeOperation(
        http_method="PUT",
        path=_PATH,
        operation_id="adoptFramework",
        is_long=True,
        tag="Frameworks",
        summary="Adopt a framework",
        description="""\
Adopts a framework for the organization: its controls appear in the lists and count for the coverage of other controls.
The effective coverage is updated in the same transaction.

With a `baseline`, the requirements outside of it do not apply, unless their assessment takes them in (`isApplicable`
true, with a justification). Mandatory requirements are in every baseline. Another baseline, or null for the whole
framework, replaces the one of an adoption; assessments stay. Without a body, an existing adoption stays as it is.""",
        role="admin",
        about=Framework,
        id_description=_ID,
        work=_put,
        present=lambda framework: framework,
        writes=ADOPTION_WRITES,
        query=OrganizationQuery,
        body=AdoptionInput,
        body_required=False,
        body_example={"baseline": None},
        has_rules=True,
        answer=AdoptedFramework,
        answer_description="The framework, adopted.",
        example=FRAMEWORK_EXAMPLE | {"baseline": None},
    ),
    ChangeOperation(
        http_method="DELETE",
        path=_PATH,
        operation_id="leaveFramework",
        is_long=True,
        tag="Frameworks",
        summary="Leave a framework",
        description="""\
Ends the adoption of a framework: its controls disappear from the lists and no longer affect other coverage. The
assessments of its controls remain stored, and apply again if the organization adopts the framework again. If the
framework is not adopted, nothing changes.""",
        role="admin",
        about=Framework,
        id_description=_ID,
        work=_delete,
        present=lambda framework: framework,
        writes=LEAVING_WRITES,
        query=OrganizationQuery,
        answer=FrameworkWire,
        answer_description="The framework, no longer adopted.",
        example=FRAMEWORK_EXAMPLE | {"isAdopted": False, "frameworkAdoptions": [], "adoption": None},
    ),
    ReadOperation(
        path="/frameworks/{id}/adoption/preview/",
        operation_id="previewAdoption",
        is_long=True,
        tag="Frameworks",
        summary="Preview the adoption of a framework",
        description="""\
What adopting a framework would change, from the existing assessments of the organization: how far the requirements of
the framework would be covered, which gaps would remain, and what coverage other adopted frameworks would gain or lose.
Requirements that do not apply are counted separately. For a framework that is adopted already, it shows what another
`baseline` would change. Nothing is changed.""",
        about=Framework,
        id_description=_ID,
        query=AdoptionPreviewQuery,
        build=_preview,
        answer=AdoptionPreview,
        answer_description="What the adoption would change.",
        example={
            "framework": {
                "id": "nist-csf-2.0",
                "name": "NIST Cybersecurity Framework 2.0",
                "identifier": "NIST-CSF-2.0",
                "identifierColor": "#1D4F91",
            },
            "isAdopted": False,
            "baseline": None,
            "applicable": 106,
            "notApplicable": 0,
            "effective": {"none": 104, "partial": 1, "full": 1},
            "gaps": [
                {
                    "id": "nist-csf-2.0:GV.OC-01",
                    "identifier": "GV.OC-01",
                    "name": "Mission is understood",
                    "effectiveCoverageStatus": "NONE",
                }
            ],
            "others": [
                {
                    "framework": {
                        "id": "iso-27001-2022",
                        "name": "ISO/IEC 27001:2022",
                        "identifier": "ISO-27001",
                        "identifierColor": "#0B6E4F",
                    },
                    "gained": 2,
                    "lost": 0,
                    "effective": {"none": 60, "partial": 35, "full": 28},
                }
            ],
        },
    ),
    ReadOperation(
        path="/frameworks/{id}/baselines/",
        operation_id="listBaselines",
        tag="Frameworks",
        summary="List the baselines of a framework",
        description="""\
The selections of its controls that the publisher of a framework has made, such as implementation groups, levels, and
OSCAL profiles, and those that the organization has imported for itself (`isOwn`), with the number of requirements in
each. An organization adopts a framework with one of them, or as a whole.""",
        about=Framework,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: framework_baselines(transaction, request.organization_id, request.id),
        answer=FrameworkBaselines,
        answer_description="The baselines.",
        example={
            "frameworkId": "nist-csf-2.0",
            "requirements": 106,
            "baseline": None,
            "baselines": [
                {
                    "id": "nist-csf-2.0:core",
                    "identifier": "CORE",
                    "name": "Core outcomes",
                    "slug": "core",
                    "version": None,
                    "description": None,
                    "requirements": 40,
                    "isOwn": False,
                    "isAdopted": False,
                }
            ],
            "original": None,
        },
    ),
)
