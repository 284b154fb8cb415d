"""Working through the gaps of a framework, one control at a time: saving leads to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Refusal
from normata.console.app.assessing import assessment_from, filled_from_of
from normata.console.app.controls import Origin, control_page
from normata.console.app.notes import assessed_notice
from normata.console.app.organization_request import OrganizationRequest

_ONE = "assessments/0"


async def show(page_request: OrganizationRequest) -> Response:
    """Show the gap that the address names, or else the first one."""
    return await _page(
        page_request, await _gaps(page_request), page_request.query.get("at", ""), page_request.query.get("number", "")
    )


async def assess(page_request: OrganizationRequest) -> Response:
    """Assess the control, and go to the next gap."""
    form = await page_request.fields()
    control_id, following, number = form.get("control"), form.get("next"), form.get("number")
    assessment = assessment_from(form)
    body = {"assessments": [{"controlId": control_id, **assessment}]}
    outcome = await page_request.change("assessControls", body=body, filled_from=filled_from_of(form, control_id))
    onwards = page_request.path(
        "frameworks", page_request.param("id"), "work", query={"at": following, "number": number}
    )
    if outcome.refusal is None:
        change_id = outcome.answer["changeId"]
        return page_request.go(onwards, notice=assessed_notice(page_request, change_id, 1) if change_id else None)
    refusal = outcome.refusal.below(_ONE)
    gaps = await _gaps(page_request)
    if refusal.code == "precondition_failed" or all(gap["id"] != control_id for gap in gaps["gaps"]):
        # Somebody else assessed it, or closed the gap. Its own page shows the present values.
        return await control_page(page_request, control_id, refusal=refusal, typed=assessment, origin=Origin(onwards))
    return await _page(page_request, gaps, control_id, number, refusal=refusal, typed=assessment)


async def _gaps(page_request: OrganizationRequest) -> Mapping[str, Any]:
    report: Mapping[str, Any] = await page_request.ask_one(ApiQuery("getFrameworkGaps", id=page_request.param("id")))
    return report


async def _page(
    page_request: OrganizationRequest,
    report: Mapping[str, Any],
    control_id: str,
    number: str,
    *,
    refusal: Refusal | None = None,
    typed: dict[str, Any] | None = None,
) -> Response:
    gaps = report["gaps"]
    index = next((index for index, gap in enumerate(gaps) if gap["id"] == control_id), None)
    if index is None and gaps:
        # The gap of the address is closed. Another one has its position now; else begin again.
        wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 0
        index = wanted if wanted < len(gaps) else 0
    if index is None:
        return page_request.page("app/work.html", report=report, control=None, refusal=None)
    gap = gaps[index]
    (control,) = await page_request.ask(ApiQuery("getControl", id=gap["id"]))
    return page_request.page(
        "app/work.html",
        status=refusal.status if refusal else 200,
        report=report,
        control=control,
        gap=gap,
        number=index,
        following=gaps[(index + 1) % len(gaps)]["id"],
        before=gaps[index - 1]["id"],
        says=dict(control["coverage"]) | (typed or {}),
        refusal=refusal,
        can_assess=page_request.may("editor"),
    )
