"""Settings: the access tokens of all users that reach the organization."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE, names_of, with_all


async def show(page_request: OrganizationRequest) -> Response:
    """List the valid tokens; expired and revoked ones, too, if the address asks for them."""
    return await _page(page_request)


async def revoke(page_request: OrganizationRequest) -> Response:
    """Revoke a token."""
    page_request.require("admin")
    form = await page_request.fields()
    outcome = await page_request.change("revokeToken", row_id=form.get("token"))
    if outcome.refusal is not None:
        return await _page(page_request, outcome.refusal)
    return page_request.back(form, page_request.path("settings", "tokens"), "token_revoked")


async def _page(page_request: OrganizationRequest, refusal: Refusal | None = None) -> Response:
    is_all = page_request.query.get("all") == "true"
    wanted = {"activeOnly": "" if is_all else "true", **page_request.place}
    tokens, people = await page_request.ask(ApiQuery("listTokens", wanted), PEOPLE)
    return page_request.page(
        "app/settings/tokens.html",
        status=refusal.status if refusal else 200,
        tokens=tokens,
        names=names_of(await with_all(page_request, people)),
        is_all=is_all,
        refusal=refusal,
    )
