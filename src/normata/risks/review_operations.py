"""The operations of risk reviews beyond those of all records."""

from __future__ import annotations

from normata import errors
from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from normata.core.schema.paging import Page
from normata.core.schema.wire import as_wire, wire
from normata.records import examples
from normata.records.kinds import RiskReview
from normata.risks.review_model import CONFIRMED
from normata.risks.reviews import (
    FINISH_WRITES,
    OUTCOME_WRITES,
    OutcomeInput,
    ReviewedRisk,
    RiskReviewQuery,
    finish,
    list_risks,
    record_outcome,
)

_ID = "The id of the live review."
_NOTE = "The second maker delivers from January on."
_ITEM = {
    "id": "risk-single-maker-of-lidar-modules",
    "shortId": 2,
    "name": "Lidar modules come from a single maker",
    "isLive": True,
    "status": "IN_TREATMENT",
    "treatmentStrategy": "UNKNOWN",
    "inherentProbability": 4,
    "inherentImpact": 5,
    "residualProbability": 4,
    "residualImpact": 4,
    "targetProbability": 2,
    "targetImpact": 4,
    "level": "CRITICAL",
    "acceptedAt": None,
    "nextReviewAt": "2027-05-27T00:00:00.000Z",
    "outcome": CONFIRMED,
    "note": _NOTE,
    "recordedAt": "2026-11-20T09:14:03.120Z",
    "recordedById": "member-dana",
}


class ReviewedRiskPage(Page[ReviewedRisk]):
    """A page of the risks of a review."""


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path=f"/{RiskReview.path}/{{id}}/items/",
        operation_id="listRiskReviewItems",
        tag="Risks",
        summary="List the risks of a review",
        description="""\
A running review lists the risks that its `priorityFilter` selects: live ones that are not `CLOSED`, of the residual
level `LOW`, `MEDIUM`, `HIGH` or `CRITICAL`, or all of them with `ALL` and any other value. A risk whose outcome is
recorded stays listed. A finished review lists the risks whose outcomes it recorded, with their values of then. Those
with the largest residual risk come first.""",
        about=RiskReview,
        id_description="The id of the review, live or archived.",
        query=RiskReviewQuery,
        build=lambda transaction, request: list_risks(transaction, request.query, request.id),
        answer=ReviewedRiskPage,
        answer_description="A page of risks.",
        example={"items": [_ITEM], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ChangeOperation(
        http_method="POST",
        path=f"/{RiskReview.path}/{{id}}/outcomes/",
        operation_id="recordRiskReviewOutcome",
        tag="Risks",
        summary="Record the outcome of a review for a risk",
        description="""\
Records what a running review says of one of its risks, with the values of the risk as they are, in place of an earlier
outcome. `ACCEPTED` takes that the risk is accepted (`acceptedAt`), which its owner alone can do. With `nextReviewAt`
the risk's next review moves in the same transaction.""",
        about=RiskReview,
        id_description=_ID,
        body=OutcomeInput,
        body_required=True,
        has_rules=True,
        body_example={
            "riskId": _ITEM["id"],
            "outcome": CONFIRMED,
            "note": _NOTE,
            "nextReviewAt": _ITEM["nextReviewAt"],
        },
        work=lambda unit, request: record_outcome(unit, request.id, request.body),
        present=lambda item: item,
        writes=OUTCOME_WRITES,
        answer=ReviewedRisk,
        answer_description="The risk, with its outcome.",
        example=_ITEM,
        errors=(errors.Archived, errors.WrongState),
    ),
    ChangeOperation(
        http_method="POST",
        path=f"/{RiskReview.path}/{{id}}/finish/",
        operation_id="finishRiskReview",
        tag="Risks",
        summary="Finish a risk review",
        description="""\
Sets `finishedAt`, once. Risks whose outcome is open are recorded as `NOT_REVIEWED`. From then on the outcomes, and the
values that the risks had when they were recorded, stay as they are.""",
        about=RiskReview,
        id_description=_ID,
        work=lambda unit, request: finish(unit, request.id),
        present=lambda row: as_wire(RiskReview, row),
        writes=FINISH_WRITES,
        answer=wire(RiskReview),
        answer_description="The review, finished.",
        example=(examples.restored(RiskReview) or {}) | {"finishedAt": "2026-11-20T09:14:03.120Z"},
        errors=(errors.Archived, errors.WrongState),
    ),
)
