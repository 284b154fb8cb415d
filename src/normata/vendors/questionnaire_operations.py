"""The operations of questionnaires."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import VisibleName
from normata.core.schema.paging import OrganizationId, OrganizationQuery, Page, PageQuery
from normata.core.schema.wire import Input, wire
from normata.errors import WrongState
from normata.vendors import questionnaires
from normata.vendors.model import Parts, Questionnaire

_TAG = "Vendors"
_ID = "The id of the questionnaire."
_LIMIT = 2**20  # bytes


class UsedQuestionnaire(wire(Questionnaire)):  # type: ignore[misc] # made at run time
    """A questionnaire, and how often it is used."""

    assessments: int = Field(description="How many assessments have it, drafts and archived ones among them.")
    is_fixed: bool = Field(description="Whether an assessment was sent with it, so that it cannot be changed.")


class QuestionnairePage(Page[UsedQuestionnaire]):
    """A page of questionnaires."""


class QuestionnaireCreation(Input):
    """A questionnaire to create."""

    organization_id: OrganizationId
    name: VisibleName = Field(description="The name.")
    parts: Parts | None = Field(
        default=None, description="Its parts; left out or null, those of the questionnaire of the service."
    )


class QuestionnairePatch(Input):
    """Changes of a questionnaire."""

    name: VisibleName = Field(default_factory=lambda: "", description="The name.")
    parts: Parts = Field(default_factory=list, description="All its parts, in place of those that are there.")


def _create(unit: UnitOfWork, request: Request) -> Any:
    body: QuestionnaireCreation = request.body
    parts = None if body.parts is None else [part.model_dump(by_alias=True) for part in body.parts]
    return _used(unit, questionnaires.create(unit, body.organization_id, body.name, parts))


def _change(unit: UnitOfWork, request: Request) -> Any:
    values = request.body.model_dump(by_alias=True, exclude_unset=True)
    if "parts" in values:  # with the defaults of questions
        values["parts"] = [part.model_dump(by_alias=True) for part in request.body.parts]
    row = questionnaires.change(
        unit, request.id, values, require_current=lambda before: request.require_current(_used(unit, before))
    )
    return _used(unit, row)


def _used(unit: UnitOfWork, row: Any) -> dict[str, Any]:
    [found] = questionnaires.with_uses(unit, row.organization_id, [row])
    return found


_PARTS: list[dict[str, Any]] = [
    {
        "name": "Network",
        "questions": [
            {
                "id": "net-ways",
                "text": "Does each of your sites have two separate ways to the network?",
                "kind": "YES_NO",
                "weight": 2,
                "choices": [],
            },
            {
                "id": "net-outages",
                "text": "How long was your longest outage of the last year?",
                "kind": "CHOICE",
                "weight": 1,
                "choices": [{"text": "Less than an hour", "score": 100}, {"text": "Longer", "score": 30}],
            },
        ],
    }
]
_QUESTIONNAIRE: dict[str, Any] = {
    "id": "01a2033c-19a0-7c51-93a4-0f4b8b7c9d43",
    "organizationId": "org-harbourlight",
    "name": "Network operators",
    "edition": None,
    "parts": _PARTS,
    "createdAt": "2026-11-20T09:14:03.120Z",
    "updatedAt": "2026-11-20T09:14:03.120Z",
    "assessments": 0,
    "isFixed": False,
}

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/questionnaires/",
        operation_id="listQuestionnaires",
        tag=_TAG,
        summary="List questionnaires",
        description="The questionnaires of the organization, by name. That of the service is among them once it was"
        " used. Each says how many assessments have it.",
        query=PageQuery,
        build=lambda transaction, request: questionnaires.list_questionnaires(transaction, request.query),
        answer=QuestionnairePage,
        answer_description="A page of questionnaires.",
        example={"items": [_QUESTIONNAIRE], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/questionnaires/{id}/",
        operation_id="getQuestionnaire",
        tag=_TAG,
        summary="Get a questionnaire",
        description="A questionnaire with its parts and questions. Once an assessment was sent with it, it stays.",
        about=Questionnaire,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: questionnaires.one_questionnaire(
            transaction, request.organization_id, request.id
        ),
        answer=UsedQuestionnaire,
        answer_description="The questionnaire.",
        example=_QUESTIONNAIRE,
    ),
    ChangeOperation(
        http_method="POST",
        path="/questionnaires/",
        operation_id="createQuestionnaire",
        tag=_TAG,
        summary="Create a questionnaire",
        description="""\
Creates a questionnaire of the organization's own, of at most 20 parts with at most 200 questions. Without `parts` it
begins with the 30 questions of the service, which can then be changed.""",
        work=_create,
        present=lambda questionnaire: questionnaire,
        writes=questionnaires.CREATION_WRITES,
        body=QuestionnaireCreation,
        body_required=True,
        body_limit=_LIMIT,
        has_rules=True,
        body_example={name: _QUESTIONNAIRE[name] for name in ("organizationId", "name", "parts")},
        creates=True,
        answer=UsedQuestionnaire,
        answer_description="The questionnaire.",
        example=_QUESTIONNAIRE,
    ),
    ChangeOperation(
        http_method="PATCH",
        path="/questionnaires/{id}/",
        operation_id="changeQuestionnaire",
        tag=_TAG,
        summary="Change a questionnaire",
        description="""\
Changes the name, or all parts, of a questionnaire. Once an assessment was sent with it, it stays as it is: the response
is 409 `wrong_state`.""",
        about=Questionnaire,
        id_description=_ID,
        work=_change,
        present=lambda questionnaire: questionnaire,
        writes=questionnaires.CHANGE_WRITES,
        body=QuestionnairePatch,
        body_required=True,
        body_limit=_LIMIT,
        has_rules=True,
        body_example={"name": "Operators of networks"},
        is_conditional=True,
        errors=(WrongState,),
        answer=UsedQuestionnaire,
        answer_description="The questionnaire as it is now.",
        example=_QUESTIONNAIRE | {"name": "Operators of networks"},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/questionnaires/{id}/",
        operation_id="deleteQuestionnaire",
        tag=_TAG,
        summary="Remove a questionnaire",
        description="Removes a questionnaire that no assessment has, not even a draft or an archived one: else the"
        " response is 409 `wrong_state`.",
        about=Questionnaire,
        id_description=_ID,
        work=lambda unit, request: questionnaires.remove(unit, request.id),
        present=as_null,
        writes=questionnaires.REMOVAL_WRITES,
        errors=(WrongState,),
        answer=None,
        answer_description="`null`: the questionnaire was removed.",
        example=None,
    ),
)
