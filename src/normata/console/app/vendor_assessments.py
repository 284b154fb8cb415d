"""The steps of an assessment of a vendor, its link, and the page with its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records import details
from normata.console.app.records.kinds import kind_names
from normata.console.app.records.references import names_of
from normata.console.texts import text
from normata.console.vendor.pages import options_of
from normata.core.http.problems import InvalidRequest
from normata.records.assurance import VendorAssessment
from normata.vendors.rules import SENT

_STEPS = {
    "send": "sendVendorAssessment",
    "submit": "submitVendorAssessment",
    "reopen": "reopenVendorAssessment",
    "review": "reviewVendorAssessment",
    "revoke": "revokeVendorLink",
}
_RATINGS = ("inherentProbability", "inherentImpact", "residualProbability", "residualImpact")
_WORDS = ("inherentReason", "residualReason", "nextAssessmentAt")


async def take_step(page_request: OrganizationRequest) -> Response:
    """Take the step of an assessment that ``step`` names."""
    page_request.require("editor")
    form, assessment_id = await page_request.fields(), page_request.param("id")
    step = form.get("step")
    if step not in _STEPS:
        raise InvalidRequest(text("problem.form"))
    body: dict[str, Any] | None = None
    if step == "reopen":
        body = {"reason": form.get("reason")}
    elif step == "review":
        body = _review(form)
    outcome = await page_request.change(_STEPS[step], row_id=assessment_id, body=body)
    if outcome.refusal is not None:
        return await details.show_one(page_request, outcome.refusal, kind=VendorAssessment)
    return page_request.go(page_request.path("records", VendorAssessment.path, assessment_id), f"vendor_{step}")


def _review(form: Fields) -> dict[str, Any]:
    ratings = {name: form.get(name) for name in _RATINGS}
    if any(re.fullmatch("[1-5]?", value) is None for value in ratings.values()):
        raise InvalidRequest(text("problem.form"))
    return {name: int(value) if value else None for name, value in ratings.items()} | {
        name: form.get(name).strip() or None for name in _WORDS
    }


async def make_link(page_request: OrganizationRequest) -> Response:
    """Make a link for the vendor, and show it, this once."""
    page_request.require("editor")
    form, assessment_id = await page_request.fields(), page_request.param("id")
    days = form.get("days")
    if re.fullmatch(r"[0-9]{1,3}", days) is None:
        raise InvalidRequest(text("problem.form"))
    body = {"days": int(days), "mails": form.has("mails")}
    outcome = await page_request.change("createVendorLink", row_id=assessment_id, body=body)
    if outcome.refusal is not None:
        return await details.show_one(page_request, outcome.refusal, kind=VendorAssessment)
    assessment = await page_request.ask_one(ApiQuery("getVendorAssessment", id=assessment_id))
    return page_request.page(
        "app/vendor_link.html", kind=kind_names(VendorAssessment), assessment=assessment, made=outcome.answer
    )


async def show_answers(page_request: OrganizationRequest, refusal: Refusal | None = None) -> Response:
    """The questions with their answers, part by part; one part as a form, if the address says so."""
    assessment_id = page_request.param("id")
    assessment, answers = await page_request.ask(
        ApiQuery("getVendorAssessment", id=assessment_id), ApiQuery("getVendorAnswers", id=assessment_id)
    )
    named = [("memberships", question["answeredById"]) for part in answers["parts"] for question in part["questions"]]
    can_answer = page_request.may("editor") and assessment["status"] == SENT and assessment["archivedAt"] is None
    return page_request.page(
        "app/vendor_answers.html",
        status=200 if refusal is None else refusal.status,
        kind=kind_names(VendorAssessment),
        assessment=assessment,
        answers=answers,
        can_answer=can_answer,
        current=_number(page_request, answers) if can_answer else 0,
        options=options_of,
        names=await names_of(page_request, named),
        refusal=refusal,
    )


async def save_answers(page_request: OrganizationRequest) -> Response:
    """Answer the questions of a part for the vendor."""
    page_request.require("editor")
    form, assessment_id = await page_request.fields(), page_request.param("id")
    answers = await page_request.ask_one(ApiQuery("getVendorAnswers", id=assessment_id))
    number = _number(page_request, answers)
    if not number:
        raise InvalidRequest(text("problem.form"))
    body = {
        "answers": [
            {"question": question["id"]}
            | {name: form.get(f"{name}.{question['id']}").strip() or None for name in ("value", "remark")}
            for question in answers["parts"][number - 1]["questions"]
        ]
    }
    outcome = await page_request.change("putVendorAnswers", row_id=assessment_id, body=body)
    if outcome.refusal is not None:
        return await show_answers(page_request, outcome.refusal)
    return page_request.go(page_request.path(VendorAssessment.path, assessment_id, "answers"), "vendor_answered")


def _number(page_request: OrganizationRequest, answers: Mapping[str, Any]) -> int:
    """The number of the part in the address, from 1; 0 if it names none."""
    wanted = page_request.query.get("part", "")
    number = int(wanted) if re.fullmatch("[0-9]{1,3}", wanted) else 0
    return number if number <= len(answers["parts"]) else 0
