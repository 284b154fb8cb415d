"""Working through the gaps of a framework: one control at a time, saved on the way to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import Question, Refusal
from normata.console.app.assessing import seen_of, statement_of
from normata.console.app.controls import control_page
from normata.console.app.organization_request import OrganizationVisit

_ONE = "statements/0"


async def show(visit: OrganizationVisit) -> Response:
    """The gap that the address names, or the first one."""
    return await _page(visit, await _gaps(visit), visit.query.get("at", ""), visit.query.get("number", ""))


async def state(visit: OrganizationVisit) -> Response:
    """State coverage of the control that is shown, and go on to the next gap."""
    form = await visit.fields()
    control_id, following, number = form.get("control"), form.get("next"), form.get("number")
    said = statement_of(form)
    body = {"statements": [{"controlId": control_id, **said}]}
    outcome = await visit.change("stateManyCoverages", body=body, seen=seen_of(form, control_id))
    onwards = visit.path("frameworks", visit.param("id"), "work", query={"at": following, "number": number})
    if outcome.refusal is None:
        return visit.redirect(onwards)
    refusal = outcome.refusal.below(_ONE)
    gaps = await _gaps(visit)
    if refusal.code == "precondition_failed" or all(gap["id"] != control_id for gap in gaps["gaps"]):
        # Somebody else has stated something of it, or has closed the gap: its own page tells what is there now.
        return await control_page(visit, control_id, refusal=refusal, typed=said, return_to=onwards)
    return await _page(visit, gaps, control_id, number, refusal=refusal, typed=said)


async def _gaps(visit: OrganizationVisit) -> Mapping[str, Any]:
    report: Mapping[str, Any] = await visit.ask_one(Question("getFrameworkGaps", id=visit.param("id")))
    return report


async def _page(
    visit: OrganizationVisit,
    report: Mapping[str, Any],
    control_id: str,
    number: str,
    *,
    refusal: Refusal | None = None,
    typed: dict[str, Any] | None = None,
) -> Response:
    gaps = report["gaps"]
    place = next((place for place, gap in enumerate(gaps) if gap["id"] == control_id), None)
    if place is None and gaps:
        # What was to come next is no gap any more: what has taken its place is, or else the first one.
        wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 0
        place = wanted if wanted < len(gaps) else 0
    if place is None:
        return visit.page("app/work.html", report=report, control=None, refusal=None)
    gap = gaps[place]
    (control,) = await visit.ask(Question("getControl", id=gap["id"]))
    return visit.page(
        "app/work.html",
        status=refusal.status if refusal else 200,
        report=report,
        control=control,
        gap=gap,
        number=place,
        following=gaps[(place + 1) % len(gaps)]["id"],
        before=gaps[place - 1]["id"],
        says=dict(control["coverage"]) | (typed or {}),
        refusal=refusal,
        can_state=visit.may("editor"),
    )
