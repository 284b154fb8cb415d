"""Forms that state coverage: of one control, or of all that were selected, with what follows told before."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import Fields, Question, Seen, tag_of
from normata.console.app.controls import control_page
from normata.console.app.organization_request import OrganizationVisit

_ONE = "statements/0"


async def state_one(visit: OrganizationVisit) -> Response:
    """State, or take back, what the organization says of one control.

    What the form leaves out stays as it is. ``step`` is ``take_back`` where the statement is to go.
    """
    form, control_id = await visit.fields(), visit.param("id")
    seen = seen_of(form, control_id)
    if form.get("step") == "take_back":
        outcome = await visit.change("unstateCoverage", row_id=control_id, seen=seen)
        said: dict[str, Any] = {}
    else:
        said = statement_of(form)
        body = {"statements": [{"controlId": control_id, **said}]}
        outcome = await visit.change("stateManyCoverages", body=body, seen=seen)
    if outcome.refusal is not None:
        refusal, return_to = outcome.refusal.below(_ONE), form.get("return_to")
        return await control_page(visit, control_id, refusal=refusal, typed=said, return_to=return_to)
    return visit.back(form, visit.path("controls", control_id), "stated")


async def state_many(visit: OrganizationVisit) -> Response:
    """State the same of all selected controls: first tell what would follow, then do it."""
    form = await visit.fields()
    said, ids = statement_of(form), list(dict.fromkeys(form.all("selected")))
    if not ids:
        return visit.back(form, visit.path("controls"), "none_selected")
    body = {"statements": [{"controlId": one, **said} for one in ids]}
    if form.get("step") == "do":
        outcome = await visit.change("stateManyCoverages", body=body)
        if outcome.refusal is None:
            return visit.back(form, visit.path("controls"), "stated_many")
    adopted = (await visit.ask_one(Question("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"})))[
        "items"
    ]
    summaries = [Question("getFrameworkCoverage", id=framework["id"]) for framework in adopted]
    now = await visit.ask(*summaries)
    outcome = await visit.foresee("stateManyCoverages", summaries, body=body)
    stated, then = outcome.answer or (None, [])
    return visit.page(
        "app/stating.html",
        status=outcome.refusal.status if outcome.refusal else 200,
        refusal=outcome.refusal,
        stated=stated,
        frameworks=list(zip(now, then, strict=False)),
        said=said,
        ids=ids,
        return_to=form.get("return_to"),
    )


def seen_of(form: Fields, control_id: str) -> Seen | None:
    """The statement that a form was filled with, which its moment tells; null where the form does not have that."""
    if not form.has("stated_at"):
        return None
    question = Question("getControl", id=control_id)
    return Seen(question, lambda control: control["coverage"]["updatedAt"], tag_of(form.get("stated_at") or None))


def statement_of(form: Fields) -> dict[str, Any]:
    """What a form says of a control, as the interface takes it; what it does not have is left out."""
    said: dict[str, Any] = {}
    if form.get("coverageStatus"):
        said["coverageStatus"] = form.get("coverageStatus")
    for name in ("coverageGap", "justification"):
        if form.has(name) and (form.get(name) or not form.has("onlyGiven")):
            said[name] = form.get(name).replace("\r\n", "\n") or None
    if form.get("applies") or form.has("hasApplies"):  # a box that is not ticked sends nothing
        said["isApplicable"] = form.get("applies") == "true"
    if form.has("hasReasons"):
        said["reasons"] = form.all("reasons")
    return said
