"""Resolving a conflict: setting a match aside, or counting it again."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.controls import SettingAside, control_page
from normata.console.app.organization_request import OrganizationRequest


async def set_aside(page_request: OrganizationRequest) -> Response:
    """Set a match to a control aside, or count it again if ``step`` is ``take_up``."""
    form, control_id = await page_request.fields(), page_request.param("id")
    match_id, page = form.get("match"), page_request.path("controls", control_id)
    if form.get("step") == "take_up":
        outcome, done = await page_request.change("takeMatchUp", row_id=match_id), "taken_up"
    else:
        body = {"justification": form.get("justification")}
        outcome, done = await page_request.change("setMatchAside", row_id=match_id, body=body), "set_aside"
    if outcome.refusal is not None:
        typed = SettingAside(match_id, form.get("justification"), outcome.refusal)
        return await control_page(page_request, control_id, setting_aside=typed)
    return page_request.go(page, done)
