"""Settings: the organization itself, what it is called and how it ends."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.api_calls import Question, Refusal
from normata.console.app.organization_request import OrganizationVisit
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest


async def show(visit: OrganizationVisit) -> Response:
    """The organization, and the person's place in it."""
    return await _page(visit)


async def change(visit: OrganizationVisit) -> Response:
    """Rename the organization, or remove it, as ``step`` says. To remove it one has to type its slug."""
    visit.require("admin")
    form, organization_id = await visit.fields(), visit.place.organization_id
    step = form.get("step")
    if step == "rename":
        name = form.get("name")
        outcome = await visit.change("changeOrganization", row_id=organization_id, body={"name": name})
        if outcome.refusal is not None:
            return await _page(visit, outcome.refusal, name)
        return visit.go(visit.path("settings"), "renamed")
    if step != "remove":
        raise InvalidRequest(text("problem.form"))
    visit.require("owner")
    if form.get("slug") != visit.place.organization_slug:
        message = text("app.settings.remove.other", slug=visit.place.organization_slug)
        return await _page(visit, Refusal(400, "validation", text("app.settings.remove.title"), message))
    outcome = await visit.change("removeOrganization", row_id=organization_id)
    if outcome.refusal is not None:
        return await _page(visit, outcome.refusal)
    return visit.redirect("/app/")


async def _page(visit: OrganizationVisit, refusal: Refusal | None = None, name: str = "") -> Response:
    organization_id = visit.place.organization_id
    found = await visit.ask_one(Question("getOrganization", id=organization_id))
    return visit.page(
        "app/settings/organization.html",
        status=refusal.status if refusal else 200,
        organization=found,
        name=name or found["name"],
        refusal=refusal,
    )
