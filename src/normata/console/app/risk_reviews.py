"""The page of a risk review: its risks, with a button for each outcome, and the one that finishes it."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.references import names_of
from normata.console.app.risks import LOOKS
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.records.kinds import RiskReview
from normata.risks.review_model import OUTCOMES

_ON_PAGE = "25"


async def show(page_request: OrganizationRequest, refusal: Refusal | None = None) -> Response:
    """The risks of a review, those without an outcome first if the address says so."""
    review_id, sent = page_request.param("id"), page_request.query
    listed = {"limit": _ON_PAGE, "page": sent.get("page"), "cursor": sent.get("cursor"), "isOpen": sent.get("isOpen")}
    review, items, left, every = await page_request.ask(
        ApiQuery("getRiskReview", id=review_id),
        ApiQuery("listRiskReviewItems", {name: value for name, value in listed.items() if value}, review_id),
        ApiQuery("listRiskReviewItems", {"isOpen": "true", "limit": "5"}, review_id),
        ApiQuery("listRiskReviewItems", {"limit": "5"}, review_id),
    )
    named = [("memberships", one["recordedById"]) for one in items["items"]]
    is_running = review["finishedAt"] is None and review["archivedAt"] is None
    return page_request.page(
        "app/risk_review.html",
        review=review,
        items=items,
        left=left["total"],
        total=every["total"],
        outcomes=OUTCOMES,
        looks=LOOKS,
        views=[
            (
                text("risk_review.all"),
                page_request.link(isOpen=None, page=None),
                every["total"],
                not sent.get("isOpen"),
            ),
            (
                text("risk_review.open"),
                page_request.link(isOpen="true", page=None),
                left["total"],
                sent.get("isOpen") == "true",
            ),
        ],
        opened=next((one for one in items["items"] if one["id"] == sent.get("open")), None),
        here_with=page_request.here_with,
        can_record=is_running and page_request.may("editor"),
        names=await names_of(page_request, [*named, ("memberships", review["coordinatorId"])]),
        refusal=refusal,
        status=200 if refusal is None else refusal.status,
    )


async def change(page_request: OrganizationRequest) -> Response:
    """Record the outcome for a risk, or finish the review, as ``step`` says."""
    page_request.require("editor")
    form, review_id = await page_request.fields(), page_request.param("id")
    if form.get("step") == "finish":
        outcome = await page_request.change("finishRiskReview", row_id=review_id)
        done = "risk_review_finished"
    elif outcome_name := form.get("outcome"):
        body = {"riskId": form.get("risk", ""), "outcome": outcome_name, "note": form.get("note") or None}
        outcome = await page_request.change("recordRiskReviewOutcome", row_id=review_id, body=body)
        done = "risk_reviewed"
    else:
        raise InvalidRequest(text("problem.form"))
    if outcome.refusal is not None:
        return await show(page_request, outcome.refusal)
    return page_request.back(form, page_request.path(RiskReview.path, review_id), done)
