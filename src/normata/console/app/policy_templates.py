"""The templates of policies: which there are, what one says, and the policy that begins with it."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import kind_names
from normata.console.markdown import markdown
from normata.records.kinds import Policy


async def show_list(page_request: OrganizationRequest) -> Response:
    """The templates, each with the controls that it helps with."""
    templates = await page_request.ask_one(ApiQuery("listPolicyTemplates"))
    return page_request.page("app/policy_templates.html", kind=kind_names(Policy), templates=templates["items"])


async def show_one(page_request: OrganizationRequest) -> Response:
    """The text of a template, and the form of the policy that begins with it."""
    return await _page(page_request)


async def create(page_request: OrganizationRequest) -> Response:
    """Create the policy, once, however often the form is sent."""
    form, template_id = await page_request.fields(), page_request.param("id")
    outcome = await page_request.change(
        "createPolicyFromTemplate",
        row_id=template_id,
        body={"title": form.get("title")},
        key=form.get("key") or page_request.new_key(),
    )
    if outcome.refusal is not None:
        return await _page(page_request, form, outcome.refusal)
    return page_request.go(page_request.path("records", Policy.path, outcome.answer["id"]), "policy_from_template")


async def _page(
    page_request: OrganizationRequest, form: Fields | None = None, refusal: Refusal | None = None
) -> Response:
    chosen = await page_request.ask_one(ApiQuery("getPolicyTemplate", id=page_request.param("id")))
    return page_request.page(
        "app/policy_template.html",
        status=refusal.status if refusal else 200,
        kind=kind_names(Policy),
        chosen=chosen,
        written=await asyncio.to_thread(markdown, chosen["content"]),
        title=form.get("title") if form else chosen["title"],
        key=page_request.new_key(),
        refusal=refusal,
    )
