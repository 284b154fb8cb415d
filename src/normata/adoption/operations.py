"""The operations of adoption: which frameworks an organization works with."""

from __future__ import annotations

from typing import Any

from normata.adoption.adoption import ADOPTION_WRITES, LEAVING_WRITES, adopt_one, leave
from normata.adoption.preview import AdoptionPreview, preview_adoption
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationQuery
from normata.frameworks.framework_list import Framework as FrameworkWire
from normata.frameworks.framework_list import one_framework
from normata.frameworks.model import Framework
from normata.frameworks.operations import FRAMEWORK_EXAMPLE
from normata.identity.organization_lookup import reached


def _put(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    organization_id = reached(unit, request.query.organization_id)
    adopt_one(unit, organization_id, request.id)
    return one_framework(unit, organization_id, request.id)


def _delete(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    organization_id = reached(unit, request.query.organization_id)
    framework = one_framework(unit, organization_id, request.id)
    leave(unit, organization_id, request.id)
    return framework | {"isAdopted": False, "frameworkAdoptions": [], "adoption": None}


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
The effective coverage is updated in the same transaction. If the framework is already adopted, nothing changes.""",
        role="admin",
        about=Framework,
        id_description=_ID,
        work=_put,
        present=lambda framework: framework,
        writes=ADOPTION_WRITES,
        query=OrganizationQuery,
        answer=FrameworkWire,
        answer_description="The framework, adopted.",
        example=FRAMEWORK_EXAMPLE,
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
What adopting a framework would change, from the existing assessments of the organization: how far the leaves of the
framework (controls without children) would be covered, which gaps would remain, and what coverage other adopted
frameworks would gain. Leaves that do not apply are counted separately. Nothing is changed.""",
        about=Framework,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: preview_adoption(transaction, request.organization_id, request.id),
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
                    "effective": {"none": 60, "partial": 35, "full": 28},
                }
            ],
        },
    ),
)
