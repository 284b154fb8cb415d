"""Settings: invitations that are open, and inviting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import Question, Refusal
from normata.console.app.organization_request import OrganizationVisit
from normata.console.app.people import PEOPLE, names_of, with_all
from normata.console.app.settings.members import roles_within
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest

_UNTYPED: Mapping[str, str] = {"email": "", "role": "editor"}


async def show(visit: OrganizationVisit) -> Response:
    """The invitations that can still be accepted."""
    return await _page(visit)


async def change(visit: OrganizationVisit) -> Response:
    """Invite somebody, and show the link this once; or withdraw an invitation. ``step`` says which."""
    form = await visit.fields()
    if form.get("step") == "withdraw":
        outcome = await visit.change("revokeInvitation", row_id=form.get("invitation"))
        if outcome.refusal is not None:
            return await _page(visit, outcome.refusal)
        return visit.go(visit.path("settings", "invitations"), "withdrawn")
    if form.get("step") != "invite":
        raise InvalidRequest(text("problem.form"))
    typed = {"email": form.get("email"), "role": form.get("role")}
    outcome = await visit.change("createInvitation", body=typed, key=form.get("key"))
    if outcome.refusal is not None:
        return await _page(visit, outcome.refusal, typed)
    return await _page(visit, made=outcome.answer)


async def _page(
    visit: OrganizationVisit,
    refusal: Refusal | None = None,
    typed: Mapping[str, str] = _UNTYPED,
    made: Mapping[str, Any] | None = None,
) -> Response:
    invitations, people = await visit.ask(Question("listInvitations", {"page": visit.query.get("page", "")}), PEOPLE)
    return visit.page(
        "app/settings/invitations.html",
        status=refusal.status if refusal else 200,
        invitations=invitations,
        names=names_of(await with_all(visit, people)),
        roles=roles_within(visit.place.role),
        typed=typed,
        made=made,
        key=visit.new_key(),
        refusal=refusal,
    )
