"""Working through the gaps of a framework: one control at a time, saved on the way to the next."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.console.app.asking import Question, Refusal
from normata.console.app.stating import statement_of
from normata.console.app.visiting import OrganizationVisit

_ONE = "statements/0"


async def show(visit: OrganizationVisit) -> Response:
    """The gap that the address names, or the first one."""
    return await _page(visit, visit.query.get("at", ""), visit.query.get("number", ""))


async def state(visit: OrganizationVisit) -> Response:
    """State coverage of the control that is shown, and go on to the next gap."""
    form = await visit.fields()
    control_id, following, number = form.get("control"), form.get("next"), form.get("number")
    said = statement_of(form)
    outcome = await visit.change("stateManyCoverages", body={"statements": [{"controlId": control_id, **said}]})
    if outcome.refusal is not None:
        return await _page(visit, control_id, number, outcome.refusal.below(_ONE), said)
    query = {"at": following, "number": number}
    return visit.redirect(visit.path("frameworks", visit.param("id"), "work", query=query))


async def _page(
    visit: OrganizationVisit,
    control_id: str,
    number: str,
    refusal: Refusal | None = None,
    typed: dict[str, Any] | None = None,
) -> Response:
    framework_id = visit.param("id")
    report = await visit.ask_one(Question("getFrameworkGaps", id=framework_id))
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
