"""Settings: open invitations, and inviting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE, names_of, with_all
from normata.console.app.settings.members import roles_within
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest

_UNTYPED: Mapping[str, str] = {"email": "", "role": "editor"}


async def show(page_request: OrganizationRequest) -> Response:
    """List the open invitations."""
    return await _page(page_request)


async def change(page_request: OrganizationRequest) -> Response:
    """Invite somebody and show the link, this once; or withdraw an invitation. ``step`` says which."""
    form = await page_request.fields()
    if form.get("step") == "withdraw":
        outcome = await page_request.change("revokeInvitation", row_id=form.get("invitation"))
        if outcome.refusal is not None:
            return await _page(page_request, outcome.refusal)
        return page_request.go(page_request.path("settings", "invitations"), "withdrawn")
    if form.get("step") != "invite":
        raise InvalidRequest(text("problem.form"))
    typed = {"email": form.get("email"), "role": form.get("role")}
    outcome = await page_request.change("createInvitation", body=typed, key=form.get("key"))
    if outcome.refusal is not None:
        return await _page(page_request, outcome.refusal, typed)
    return await _page(page_request, made=outcome.answer)


async def _page(
    page_request: OrganizationRequest,
    refusal: Refusal | None = None,
    typed: Mapping[str, str] = _UNTYPED,
    made: Mapping[str, Any] | None = None,
) -> Response:
    invitations, people = await page_request.ask(
        ApiQuery("listInvitations", {"page": page_request.query.get("page", "")}), PEOPLE
    )
    return page_request.page(
        "app/settings/invitations.html",
        status=refusal.status if refusal else 200,
        invitations=invitations,
        names=names_of(await with_all(page_request, people)),
        roles=roles_within(page_request.membership.role),
        typed=typed,
        made=made,
        key=page_request.new_key(),
        refusal=refusal,
    )
