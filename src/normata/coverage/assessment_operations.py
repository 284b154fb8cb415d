"""The operations of assessments: what an organization records of controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from normata.core.changes.source import Row, pointer
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.types import now
from normata.core.http.operation import ChangeOperation, Operation
from normata.core.http.request import Request
from normata.core.schema.fields import CoverageStatus, Identifier, ShortText, Timestamp
from normata.core.schema.paging import OrganizationId, OrganizationQuery
from normata.core.schema.wire import Input, Wire
from normata.coverage.assessments import (
    ASSESSMENT_WRITES,
    MAX_AT_ONCE,
    Assessment,
    AssessmentFields,
    AssessmentInput,
    assess,
    assessment_to_wire,
    clear_assessments,
)
from normata.coverage.confirmation import confirm_assessment
from normata.coverage.exclusion import RetainedControls, retained_controls
from normata.errors import InUse, NotAssessed
from normata.frameworks.control_wire import ControlReference, FrameworkReference, reference_to_wire
from normata.frameworks.model import Control
from normata.identity.organization_lookup import reached


class AssessmentPut(AssessmentFields):
    """The whole assessment of a control. Omitted fields are reset to their defaults."""

    organization_id: OrganizationId


class AssessmentConfirmation(Input):
    """The confirmation that the assessment of a control still holds."""

    organization_id: OrganizationId
    review_by: Annotated[
        Timestamp | None,
        Field(description="When it must be reviewed next; as it is if omitted or null. Required if that has passed."),
    ] = None


class AssessmentPatch(AssessmentFields):
    """The assessment of one of many controls. Omitted fields stay as they are."""

    control_id: Annotated[Identifier | None, Field(description="The id of the control.")] = None
    identifier: Annotated[ShortText | None, Field(description="The identifier of the control, instead of its id.")] = (
        None
    )
    framework: Annotated[
        ShortText | None,
        Field(description="The framework, by id, slug or identifier, if several frameworks have the identifier."),
    ] = None

    @model_validator(mode="after")
    def _names_one_control(self) -> Self:
        if (self.control_id is None) == (self.identifier is None):
            raise ValueError("must name the control either by controlId or by identifier")
        return self


class AssessmentsPatch(Input):
    """The assessments of many controls: either all of them are stored or none."""

    organization_id: OrganizationId
    assessments: Annotated[
        list[AssessmentPatch],
        Field(min_length=1, max_length=MAX_AT_ONCE, description="The assessments, each of a different control."),
    ]


class AssessedControl(Wire):
    """A control with its assessment and its effective coverage."""

    control: ControlReference = Field(description="The control.")
    framework: FrameworkReference = Field(description="The framework that the control belongs to.")
    coverage: Assessment = Field(description="The assessment of the control.")
    effective_coverage_status: CoverageStatus = Field(
        description="The status that follows from assessments, matches and roll-up: the best of all paths."
    )
    is_indirectly_covered: bool = Field(
        description="Whether matches lift the control above the status that assessments and roll-up alone would give."
    )


_RETAINED = (
    "The mandatory requirements below what the assessment excludes: these apply nevertheless. None, unless it excludes"
    " a category or a decomposed control."
)


class ChangedAssessment(AssessedControl):
    """A control with its new assessment, and the controls that this does not exclude."""

    mandatory_retained: RetainedControls = Field(description=_RETAINED)


class AssessedControls(Wire):
    """The controls of a request, in its order."""

    items: list[AssessedControl] = Field(description="The controls, in the order of the request.")
    mandatory_retained: RetainedControls = Field(description=_RETAINED.replace("the assessment", "the assessments"))
    change_id: str | None = Field(
        description="What `POST /controls/coverage/undo/` undoes this change by; null if nothing was changed."
    )


def _put(unit: UnitOfWork, request: Request) -> Any:
    body: AssessmentPut = request.body
    organization_id = reached(unit, body.organization_id)
    row = Row("controlCoverages", "body", "", {})
    assessment = AssessmentInput(row, body.values_by_column(), control_id=request.id, whole=True)
    rows = assess(unit, organization_id, [assessment])
    return rows[0], retained_controls(unit, organization_id, rows)


def _delete(unit: UnitOfWork, request: Request) -> Any:
    return clear_assessments(unit, reached(unit, request.query.organization_id), [request.id])[0]


def _confirm(unit: UnitOfWork, request: Request) -> Any:
    body: AssessmentConfirmation = request.body
    return confirm_assessment(unit, reached(unit, body.organization_id), request.id, body.review_by)


def _patch(unit: UnitOfWork, request: Request) -> Any:
    body: AssessmentsPatch = request.body
    assessments = [
        AssessmentInput(
            Row("controlCoverages", "body", pointer("assessments", number), {}),
            one.values_by_column(),
            control_id=one.control_id,
            identifier=one.identifier,
            framework=one.framework,
        )
        for number, one in enumerate(body.assessments)
    ]
    organization_id = reached(unit, body.organization_id)
    rows = assess(unit, organization_id, assessments)
    return rows, retained_controls(unit, organization_id, rows), unit.change_id if unit.published else None


def assessed_controls(
    rows: Sequence[Any], mandatory_retained: Mapping[str, Any], change_id: str | None = None
) -> dict[str, Any]:
    """The answer with several controls."""
    return {"items": [_as_wire(row) for row in rows], "mandatoryRetained": mandatory_retained, "changeId": change_id}


def _changed_assessment(row: Any, mandatory_retained: Mapping[str, Any]) -> dict[str, Any]:
    return _as_wire(row) | {"mandatoryRetained": mandatory_retained}


def _as_wire(row: Any) -> dict[str, Any]:
    return {
        "control": reference_to_wire(row),
        "framework": {
            "id": row.framework_id,
            "name": row.framework_name,
            "identifier": row.framework_identifier,
            "identifierColor": row.framework_color,
        },
        "coverage": assessment_to_wire(row, now()),
        "effectiveCoverageStatus": row.effective,
        "isIndirectlyCovered": row.is_indirect,
    }


_ASSESSMENT = {
    "coverageStatus": "PARTIAL",
    "coverageGap": "Contractors hand their badges back late.",
    "isApplicable": True,
    "justification": None,
    "reasons": ["RISK_TREATMENT"],
    "ownerId": None,
    "note": "The front desk collects badges and keys on the last day.",
    "reviewBy": "2027-05-20T00:00:00.000Z",
}
ASSESSED = {
    "control": {"id": "iso-27001-2022:A.5.11", "identifier": "A.5.11", "name": "Return of assets"},
    "framework": {
        "id": "iso-27001-2022",
        "name": "ISO/IEC 27001:2022",
        "identifier": "ISO-27001",
        "identifierColor": "#0B6E4F",
    },
    "coverage": {
        **_ASSESSMENT,
        "updatedAt": "2026-11-20T09:14:03.120Z",
        "assessedAt": "2026-11-20T09:14:03.120Z",
        "stale": [],
        "lapsedStatus": None,
        "lapsedAt": None,
    },
    "effectiveCoverageStatus": "PARTIAL",
    "isIndirectlyCovered": False,
}
NONE_RETAINED: dict[str, Any] = {"count": 0, "items": []}
_NOT_ASSESSED: dict[str, Any] = {
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
}
_ID = "The id of a control of a framework that the organization has adopted."

OPERATIONS: tuple[Operation, ...] = (
    ChangeOperation(
        http_method="PUT",
        path="/controls/{id}/coverage/",
        operation_id="assessControl",
        tag="Coverage",
        summary="Assess a control",
        description="""\
Records how far the organization covers a control, what is missing, whether the control applies to it at all, who
answers for it, how it is done, and by when that is reviewed.

The assessment replaces the previous one: omitted fields are reset to null. Without a `coverageStatus` the control is
not assessed, whatever else is recorded of it. A control that does not apply needs a `justification`. A category that
does not apply takes the requirements below it with it, except for the mandatory ones: `mandatoryRetained` lists these.

The effective coverage of other controls, of all adopted frameworks, is updated in the same transaction, so the next
response of any list includes it.""",
        about=Control,
        id_description=_ID,
        work=_put,
        present=lambda result: _changed_assessment(*result),
        writes=ASSESSMENT_WRITES,
        body=AssessmentPut,
        body_required=True,
        body_limit=2**20,
        has_rules=True,
        body_example={"organizationId": "org-harbourlight", **_ASSESSMENT},
        answer=ChangedAssessment,
        answer_description="The control with its assessment and its effective coverage.",
        example=ASSESSED | {"mandatoryRetained": NONE_RETAINED},
    ),
    ChangeOperation(
        http_method="POST",
        path="/controls/{id}/coverage/confirm/",
        operation_id="confirmAssessment",
        tag="Coverage",
        summary="Confirm the assessment of a control",
        description="""\
Records that the assessment of a control still holds. It is then no longer stale, and counts again if it had lapsed. If
its `reviewBy` has passed, the request must set a later one. If the organization records nothing of the control, the
response is 409 `not_assessed`.""",
        about=Control,
        id_description=_ID,
        work=_confirm,
        present=_as_wire,
        writes=ASSESSMENT_WRITES,
        body=AssessmentConfirmation,
        body_required=True,
        has_rules=True,
        body_example={"organizationId": "org-harbourlight", "reviewBy": "2027-11-20T00:00:00.000Z"},
        errors=(NotAssessed,),
        answer=AssessedControl,
        answer_description="The control with its assessment and its effective coverage.",
        example=ASSESSED,
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/controls/{id}/coverage/",
        operation_id="clearAssessment",
        tag="Coverage",
        summary="Clear the assessment of a control",
        description="""\
Removes the organization's assessment of a control. If there is none, nothing changes. The effective coverage is updated
in the same transaction. An assessment that a task refers to cannot be removed: the response is 409 `in_use`, with the
id of the task.""",
        about=Control,
        id_description=_ID,
        work=_delete,
        present=_as_wire,
        writes=ASSESSMENT_WRITES,
        query=OrganizationQuery,
        errors=(InUse,),
        answer=AssessedControl,
        answer_description="The control without assessment, and its effective coverage.",
        example=ASSESSED | {"coverage": _NOT_ASSESSED, "effectiveCoverageStatus": "NONE"},
    ),
    ChangeOperation(
        http_method="PATCH",
        path="/controls/coverage/",
        operation_id="assessControls",
        is_long=True,
        tag="Coverage",
        summary="Assess many controls",
        description=f"""\
Records how far the organization covers up to {MAX_AT_ONCE} controls, in one transaction: either everything is stored or
nothing. Then every fault is reported with its place, such as `assessments/3/justification`.
`POST /controls/coverage/undo/` undoes it by its `changeId`.

A control is named by its id, or by its identifier and, where several adopted frameworks have the same identifier, its
framework. In each assessment, omitted fields stay as they are, and null removes what is recorded. If categories are
excluded, `mandatoryRetained` has the mandatory requirements below them, which still apply.""",
        work=_patch,
        present=lambda result: assessed_controls(*result),
        writes=ASSESSMENT_WRITES,
        body=AssessmentsPatch,
        body_required=True,
        body_limit=2 * 2**20,
        has_rules=True,
        body_example={
            "organizationId": "org-harbourlight",
            "assessments": [{"controlId": "iso-27001-2022:A.5.11", **_ASSESSMENT}],
        },
        answer=AssessedControls,
        answer_description="The controls with their assessments and their effective coverage.",
        example={
            "items": [ASSESSED],
            "mandatoryRetained": NONE_RETAINED,
            "changeId": "2026-11-20T09:14:03.120Z_01a1f87c-691d-7204-a6da-d46c39e191fb",
        },
    ),
)
