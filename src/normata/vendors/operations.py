"""The operations of assessments of vendors beyond those of all records."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.http.roles import Role
from normata.core.schema.fields import NOT_BLANK, Rating, Text, Timestamp
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Input, Wire, as_wire, wire
from normata.errors import Archived, WrongState
from normata.records import examples
from normata.records.assurance import VendorAssessment
from normata.vendors import steps
from normata.vendors.answers import ANSWER_WRITES, Answer, read_answers, write_answers
from normata.vendors.questions import KEY, MAX_QUESTIONS, AnswerKind, Choice

MAX_ANSWER = 5_000  # characters
_TAG = "Vendors"
_ID = "The id of the live assessment."


class AnsweredQuestion(Wire):
    """A question with its answer."""

    id: str = Field(description="The id of the question in its questionnaire.")
    text: str = Field(description="The question.")
    kind: AnswerKind = Field(description="How it is answered.")
    weight: int = Field(description="How much it counts in the score of its part.")
    choices: list[Choice] = Field(description="What a `CHOICE` offers; else none.")
    value: str | None = Field(
        description="The answer: `YES`, `PARTLY`, `NO` or `NOT_APPLICABLE`, the text of a choice, or a text; null while"
        " there is none."
    )
    remark: str | None = Field(description="What else there is to say; null for nothing.")
    answered_at: Timestamp | None = Field(description="When it was answered last.")
    answered_by_id: str | None = Field(description="The member who answered last; null if that was no member.")
    is_by_link: bool = Field(description="Whether the vendor answered last, by a link.")


class _Scored(Wire):
    score: int | None = Field(
        description="The mean of the scores of the answers, weighted, from 0 to 100: `YES` has 100, `PARTLY` 50,"
        " `NO` 0, and a choice its own. What is not applicable, not answered or a text is left out; null if nothing"
        " is left."
    )
    answered: int = Field(description="How many questions are answered.")
    unanswered: int = Field(description="How many are not.")
    not_applicable: int = Field(description="How many of the answers are `NOT_APPLICABLE`.")


class AnsweredPart(_Scored):
    """A part of a questionnaire with its answers."""

    name: str = Field(description="The name of the part.")
    questions: list[AnsweredQuestion] = Field(description="Its questions.")


class VendorAnswers(_Scored):
    """The questions of an assessment, with their answers and scores."""

    assessment_id: str = Field(description="The id of the assessment.")
    status: str = Field(description="The status of the assessment.")
    questionnaire_id: str | None = Field(
        description="The id of the questionnaire; null while that is to be the one of the service."
    )
    questionnaire_name: str = Field(description="The name of the questionnaire.")
    parts: list[AnsweredPart] = Field(description="Its parts.")


_Words = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ANSWER, pattern=NOT_BLANK)]


class AnswerInput(Input):
    """An answer to a question."""

    question: Annotated[str, StringConstraints(pattern=KEY)] = Field(description="The id of the question.")
    value: _Words | None = Field(default=None, description="The answer; left out or null if there is none.")
    remark: _Words | None = Field(default=None, description="What else there is to say.")


class AnswersInput(Input):
    """Answers to some questions; those that are left out stay as they are."""

    answers: Annotated[list[AnswerInput], Field(max_length=MAX_QUESTIONS)] = Field(
        description="The answers. One without value and remark is taken back."
    )


class VendorReopening(Input):
    """Why answers may be changed again."""

    reason: Annotated[
        Text, StringConstraints(strip_whitespace=True, min_length=1), Field(description="What is to be answered anew.")
    ]


class VendorReview(Input):
    """What the answers mean: the risk of relying on the vendor, and when to assess it again."""

    inherent_probability: Rating | None = Field(
        default=None, description="The probability of harm without what the vendor does against it, from 1 to 5."
    )
    inherent_impact: Rating | None = Field(default=None, description="The impact of such harm, from 1 to 5.")
    inherent_reason: Text | None = Field(default=None, description="Why both are so.")
    residual_probability: Rating | None = Field(default=None, description="The probability as it is, from 1 to 5.")
    residual_impact: Rating | None = Field(default=None, description="The impact as it is, from 1 to 5.")
    residual_reason: Text | None = Field(default=None, description="Why both are so.")
    next_assessment_at: Timestamp | None = Field(default=None, description="When to assess the vendor again.")


@cache
def assessment_example() -> dict[str, Any]:
    """An assessment of the demo, for OpenAPI."""
    return examples.restored(VendorAssessment) or {}


def _step(
    name: str,
    summary: str,
    description: str,
    work: Callable[[UnitOfWork, Request, Callable[[Any], None]], Any],
    *,
    role: Role = "editor",
    **more: Any,
) -> ChangeOperation:
    def run(unit: UnitOfWork, request: Request) -> Any:
        return work(unit, request, lambda row: request.require_current(as_wire(VendorAssessment, row)))

    return ChangeOperation(
        http_method="POST",
        path=f"/{VendorAssessment.path}/{{id}}/{name}/",
        operation_id=f"{name}VendorAssessment",
        tag=_TAG,
        summary=summary,
        description=description,
        about=VendorAssessment,
        id_description=_ID,
        work=run,
        present=lambda row: as_wire(VendorAssessment, row),
        role=role,
        is_conditional=True,
        errors=(Archived, WrongState),
        answer=wire(VendorAssessment),
        answer_description="The assessment as it is now.",
        example=assessment_example(),
        **more,
    )


def _write(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    answers = [Answer(one.question, one.value, one.remark) for one in request.body.answers]
    return write_answers(unit, request.id, answers, require_current=request.require_current)


_REMARK = "Of the telephones, half."
_ANSWERS: dict[str, Any] = {
    "assessmentId": "vendor-assessment-polder-2026",
    "status": "SENT",
    "questionnaireId": "questionnaire-security-of-vendors",
    "questionnaireName": "Security of vendors",
    "score": 50,
    "answered": 1,
    "unanswered": 0,
    "notApplicable": 0,
    "parts": [
        {
            "name": "Access",
            "score": 50,
            "answered": 1,
            "unanswered": 0,
            "notApplicable": 0,
            "questions": [
                {
                    "id": "access-devices",
                    "text": "Are the devices that reach our data encrypted, patched and centrally managed?",
                    "kind": "YES_NO",
                    "weight": 1,
                    "choices": [],
                    "value": "PARTLY",
                    "remark": _REMARK,
                    "answeredAt": "2026-11-20T09:14:03.120Z",
                    "answeredById": None,
                    "isByLink": True,
                }
            ],
        }
    ],
}
_VALUES = {"inherentProbability": 3, "inherentImpact": 4, "residualProbability": 2, "residualImpact": 3}
_REVIEW = {
    **_VALUES,
    "residualReason": "Two networks, and a tested switch.",
    "nextAssessmentAt": "2027-11-20T00:00:00.000Z",
}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path=f"/{VendorAssessment.path}/{{id}}/answers/",
        operation_id="getVendorAnswers",
        tag=_TAG,
        summary="Get the answers of an assessment",
        description="""\
The questions of the assessment, part by part, with what was answered, by whom and when, and the scores. Those of a
draft are the questions with which it would be sent.""",
        about=VendorAssessment,
        id_description="The id of the assessment, live or archived.",
        query=OrganizationQuery,
        build=lambda transaction, request: read_answers(transaction, request.organization_id, request.id),
        answer=VendorAnswers,
        answer_description="The questions with their answers.",
        example=_ANSWERS,
    ),
    ChangeOperation(
        http_method="PUT",
        path=f"/{VendorAssessment.path}/{{id}}/answers/",
        operation_id="putVendorAnswers",
        tag=_TAG,
        summary="Answer questions of an assessment",
        description="""\
Answers questions of an assessment that is `SENT`; the others stay as they are. An answer without value and remark is
taken back. In any other state it is 409 `wrong_state`.""",
        about=VendorAssessment,
        id_description=_ID,
        work=_write,
        present=lambda answers: answers,
        writes=ANSWER_WRITES,
        body=AnswersInput,
        body_required=True,
        body_limit=4 * 2**20,
        has_rules=True,
        body_example={"answers": [{"question": "access-devices", "value": "PARTLY", "remark": _REMARK}]},
        is_conditional=True,
        errors=(Archived, WrongState),
        answer=VendorAnswers,
        answer_description="The questions with their answers.",
        example=_ANSWERS,
    ),
    _step(
        "send",
        "Send an assessment",
        """\
Fixes the questions of a `DRAFT`, which becomes `SENT` and can be answered: by members, and by the vendor with a link.
Without a questionnaire it gets the one of the service. From then on the questionnaire cannot be changed.""",
        lambda unit, request, known: steps.send(unit, request.id, require_current=known),
        writes=steps.SEND_WRITES,
    ),
    _step(
        "submit",
        "Submit the answers of an assessment",
        """\
Says that the answers are complete, also if some questions have none: the assessment is `SUBMITTED`, its `score` is set,
and the answers stay as they are.""",
        lambda unit, request, known: steps.submit(unit, request.id, require_current=known),
        writes=steps.SUBMIT_WRITES,
    ),
    _step(
        "reopen",
        "Reopen the answers of an assessment",
        "Lets submitted answers be changed again, for a reason, which the event has as well: it is `SENT` again,"
        " and its score is gone.",
        lambda unit, request, known: steps.reopen(unit, request.id, request.body.reason, require_current=known),
        role="admin",
        writes=steps.REOPEN_WRITES,
        body=VendorReopening,
        body_required=True,
        body_example={"reason": "The answers on subcontractors are those of the year before."},
    ),
    _step(
        "review",
        "Review the answers of an assessment",
        """\
Records what submitted answers mean: the inherent and the residual risk with reasons, and when to assess the vendor
again. The vendor gets the values and the assessment as `lastAssessmentId`, and an earlier reviewed one becomes
`SUPERSEDED`, all at once. A service account reviews nothing.""",
        lambda unit, request, known: steps.review(unit, request.id, request.body.model_dump(), require_current=known),
        writes=steps.REVIEW_WRITES,
        body=VendorReview,
        body_required=True,
        body_example=_REVIEW,
    ),
)
