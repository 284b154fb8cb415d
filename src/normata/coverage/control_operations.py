"""The operations that read controls with their assessments."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.http.operation import ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationQuery, Page, PastQuery
from normata.coverage import coverage_list
from normata.coverage.assessments import Assessment, assessed_to_wire, read_assessments
from normata.coverage.conflicts import CONFLICT_DESCRIPTION
from normata.coverage.covering import CoveringMatch
from normata.coverage.exclusion import EXCLUDED_BY, ExcludingGroup, excluded_by
from normata.coverage.graph import Conflict
from normata.coverage.wordings import ControlWordings, control_wordings
from normata.frameworks import control_list, control_wire
from normata.frameworks.baselines import OUTSIDE_OF_BASELINE, BaselineReference
from normata.frameworks.model import Control
from normata.frameworks.operations import CONTROL_EXAMPLE


class ControlDetails(control_wire.Control):
    """A requirement of an adopted framework, or a category of them, with all details."""

    coverage: Assessment  # type: ignore[assignment] # the list has fewer fields
    is_applicable: bool = Field(
        description="Whether the control applies: by its assessment, that of a category above it, or the baseline."
    )
    excluded_by: ExcludingGroup | None = Field(description=EXCLUDED_BY)
    is_decomposed: bool
    outside_of_baseline: BaselineReference | None = Field(description=OUTSIDE_OF_BASELINE)
    conflict: Conflict | None = Field(description=f"{CONFLICT_DESCRIPTION} Null if nothing is against it.")


def _one_control(transaction: Transaction, request: Request) -> dict[str, Any]:
    control = control_list.one_control(transaction, request.organization_id, request.id)
    rows = read_assessments(transaction, request.organization_id, [request.id])
    excluding = excluded_by(transaction, request.organization_id, rows)
    return control | assessed_to_wire(rows[0], excluding.get(request.id), transaction.time_of_reading())


class CoveredControl(ControlDetails):
    """A control with all details, and the matches that cover it."""

    covered_by: list[CoveringMatch] = Field(
        description="If it is indirectly covered: the matches that give it its status. None depends on the control"
        " itself. Otherwise empty."
    )


class CoveragePage(Page[CoveredControl]):
    """A page of controls with all details."""


_CONTROL_DETAILS = CONTROL_EXAMPLE | {
    "coverage": {
        "coverageStatus": None,
        "coverageGap": None,
        "isApplicable": None,
        "justification": None,
        "reasons": [],
        "ownerId": None,
        "note": None,
        "reviewBy": None,
        "updatedAt": None,
        "assessedAt": None,
        "stale": [],
        "lapsedStatus": None,
        "lapsedAt": None,
    },
    "isApplicable": True,
    "excludedBy": None,
    "isDecomposed": False,
    "outsideOfBaseline": None,
    "conflict": None,
}


OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/controls/{id}/",
        operation_id="getControl",
        tag="Frameworks",
        summary="Get a control",
        description="""\
One control of a framework that the organization has adopted, with the same fields as in the list of controls: its
framework, its parent and children, the organization's assessment, the matches that lead to it, and its effective
coverage.""",
        about=Control,
        id_description="The id of the control.",
        query=PastQuery,
        build=_one_control,
        answer=ControlDetails,
        answer_description="The control.",
        example=_CONTROL_DETAILS,
    ),
    ReadOperation(
        path="/controls/{id}/wordings/",
        operation_id="getWordings",
        tag="Frameworks",
        summary="Get the earlier wordings of a control",
        description="""\
The wording of a control of an adopted framework, and those that it had before imports changed them: its identifier,
name and description. A difference of white space or letter case is no other wording.

An assessment that was made on an earlier wording is stale, with the reason `WORDING_CHANGED`, unless every change since
was editorial or the control has the same wording again. `isAssessed` marks the wording that it was made on.""",
        about=Control,
        id_description="The id of the control.",
        query=OrganizationQuery,
        build=lambda transaction, request: control_wordings(transaction, request.organization_id, request.id),
        answer=ControlWordings,
        answer_description="The wording of the control, and the earlier ones.",
        example={
            "id": "iso-27001-2022:A.5.11",
            "identifier": "A.5.11",
            "name": "Return of assets",
            "description": "Everybody gives back what belongs to the organization, and signs for it.",
            "isStale": True,
            "earlier": [
                {
                    "identifier": "A.5.11",
                    "name": "Return of assets",
                    "description": "Everybody gives back what belongs to the organization.",
                    "version": "1",
                    "replacedAt": "2026-11-20T09:14:03.120Z",
                    "isEditorial": False,
                    "isAssessed": True,
                }
            ],
        },
    ),
    ListOperation(
        path="/coverage/",
        operation_id="listCoverage",
        tag="Coverage",
        summary="List controls by their coverage",
        description="""\
The controls of the frameworks that the organization has adopted, as the list of controls has them, each with the whole
assessment (whether the control applies, why, and when it was last assessed) and with what covers it. They can be
filtered by their assessments and by their effective coverage.""",
        query=coverage_list.CoverageQuery,
        build=lambda transaction, request: coverage_list.list_coverage(transaction, request.query),
        answer=CoveragePage,
        answer_description="A page of controls.",
        example={
            "items": [
                _CONTROL_DETAILS
                | {
                    "coveredBy": [
                        match | {"effectiveCoverageStatus": "FULL"} for match in CONTROL_EXAMPLE["sourceMatches"]
                    ]
                }
            ],
            "total": 402,
            "totalIsExact": True,
            "page": 1,
            "limit": 5,
        },
    ),
)
