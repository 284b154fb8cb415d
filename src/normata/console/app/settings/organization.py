"""Settings: the name and the scope of the organization, how long it keeps files, and its removal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.identity.mail_choices import MAIL_CHOICES


async def show(page_request: OrganizationRequest) -> Response:
    """Show the organization, and the person's role in it."""
    return await _page(page_request)


async def change(page_request: OrganizationRequest) -> Response:
    """Change the organization, or remove it, as ``step`` says. To remove it, the form must contain its slug."""
    page_request.require("admin")
    form, organization_id = await page_request.fields(), page_request.membership.organization_id
    step = form.get("step")
    if step == "change":
        entered: dict[str, Any] = {name: form.get(name) for name in ("name", "scope", "mail", "keepReplacedFilesDays")}
        entered |= {name: form.has(name) for name in ("verifiesFindings", "allowsSelfApproval")}
        days = entered["keepReplacedFilesDays"].strip()
        is_number = re.fullmatch(r"[0-9]{1,18}", days) is not None
        body = entered | {"keepReplacedFilesDays": int(days) if is_number else days or None}
        outcome = await page_request.change("changeOrganization", row_id=organization_id, body=body)
        if outcome.refusal is not None:
            return await _page(page_request, outcome.refusal, entered)
        return page_request.go(page_request.path("settings"), "organization_changed")
    if step != "remove":
        raise InvalidRequest(text("problem.form"))
    page_request.require("owner")
    if form.get("slug") != page_request.membership.organization_slug:
        message = text("app.settings.remove.other", slug=page_request.membership.organization_slug)
        return await _page(page_request, Refusal(400, "validation", text("app.settings.remove.title"), message))
    outcome = await page_request.change("removeOrganization", row_id=organization_id)
    if outcome.refusal is not None:
        return await _page(page_request, outcome.refusal)
    return page_request.redirect("/app/")


async def _page(
    page_request: OrganizationRequest, refusal: Refusal | None = None, entered: Mapping[str, Any] | None = None
) -> Response:
    organization_id = page_request.membership.organization_id
    found = await page_request.ask_one(ApiQuery("getOrganization", id=organization_id))
    return page_request.page(
        "app/settings/organization.html",
        status=refusal.status if refusal else 200,
        organization=found,
        entered=entered or found,
        refusal=refusal,
        mail_choices=MAIL_CHOICES,
    )
