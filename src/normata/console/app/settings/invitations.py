"""Settings: open invitations, and inviting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE, names_of, with_all
from normata.console.app.settings.members import roles_within
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest

_UNTYPED: Mapping[str, str] = {"email": "", "role": "editor", "expiresAt": ""}
_MOST_AT_ONCE = 50  # addresses


async def show(page_request: OrganizationRequest) -> Response:
    """List the open invitations."""
    return await _page(page_request)


async def change(page_request: OrganizationRequest) -> Response:
    """Invite people and show their links, this once; or withdraw an invitation. ``step`` says which."""
    page_request.require("admin")
    form = await page_request.fields()
    if form.get("step") == "withdraw":
        outcome = await page_request.change("revokeInvitation", row_id=form.get("invitation"))
        if outcome.refusal is not None:
            return await _page(page_request, outcome.refusal)
        return page_request.go(page_request.path("settings", "invitations"), "withdrawn")
    if form.get("step") != "invite":
        raise InvalidRequest(text("problem.form"))
    return await _invite(page_request, form)


async def _invite(page_request: OrganizationRequest, form: Fields) -> Response:
    """Invite everybody whose address the form has. Those who cannot be invited remain in it."""
    role, key, ends = form.get("role"), form.get("key"), form.get("ends")
    addresses = list(dict.fromkeys(filter(None, map(str.strip, re.split("[,;]", form.get("email")))))) or [""]
    if len(addresses) > _MOST_AT_ONCE:
        raise InvalidRequest(text("app.invitations.too_many", count=_MOST_AT_ONCE))
    made, left, refusals = [], [], []
    for address in addresses:
        body = {"email": address, "role": role} | ({"expiresAt": ends} if ends else {})
        outcome = await page_request.change("createInvitation", body=body, key=f"{key} {address}" if key else "")
        if outcome.refusal is None:
            made.append(outcome.answer)
        else:
            left.append(address)
            refusals.append(outcome.refusal)
    typed = {"email": ", ".join(left), "role": role, "expiresAt": ends}
    return await _page(page_request, _together(left, refusals), typed if left else _UNTYPED, made)


def _together(addresses: Sequence[str], refusals: Sequence[Refusal]) -> Refusal | None:
    """The refusals of several addresses as one, with each address in front of what is wrong with it."""
    if len(refusals) < 2:
        return refusals[0] if refusals else None
    reasons = " ".join(
        f"{address}: {one.faults.get('email') or one.detail}" for address, one in zip(addresses, refusals, strict=True)
    )
    return replace(refusals[0], faults={**refusals[0].faults, "email": reasons})


async def _page(
    page_request: OrganizationRequest,
    refusal: Refusal | None = None,
    typed: Mapping[str, str] = _UNTYPED,
    made: Sequence[Mapping[str, Any]] = (),
) -> Response:
    invitations, people = await page_request.ask(ApiQuery("listInvitations", page_request.place), PEOPLE)
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
