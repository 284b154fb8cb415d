"""Settings: the access tokens that reach the organization, whoever's they are."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.api_calls import Question, Refusal
from normata.console.app.organization_request import OrganizationVisit
from normata.console.app.people import PEOPLE, names_of, with_all


async def show(visit: OrganizationVisit) -> Response:
    """The tokens that are good now; all that there ever were, where that is asked for."""
    return await _page(visit)


async def revoke(visit: OrganizationVisit) -> Response:
    """End a token of the organization."""
    form = await visit.fields()
    outcome = await visit.change("revokeToken", row_id=form.get("token"))
    if outcome.refusal is not None:
        return await _page(visit, outcome.refusal)
    return visit.back(form, visit.path("settings", "tokens"), "token_revoked")


async def _page(visit: OrganizationVisit, refusal: Refusal | None = None) -> Response:
    is_all = visit.query.get("all") == "true"
    wanted = {"activeOnly": "" if is_all else "true", "page": visit.query.get("page", "")}
    tokens, people = await visit.ask(Question("listTokens", wanted), PEOPLE)
    return visit.page(
        "app/settings/tokens.html",
        status=refusal.status if refusal else 200,
        tokens=tokens,
        names=names_of(await with_all(visit, people)),
        is_all=is_all,
        refusal=refusal,
    )
