"""The start of the console: redirects to the organization, or offers a choice."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from normata.console.app.organization_request import OrganizationRequest
from normata.console.page_request import PageRequest
from normata.errors import NotFound


async def choose(page_request: PageRequest) -> Response:
    """Lead to the person's only organization, or have them choose one of several.

    Whoever has just accepted an invitation (``joined``) comes to its organization, which says so; who is ``new`` reads
    there how to sign in next time.
    """
    visitor = await page_request.required_visitor()
    joined = [one for one in visitor.memberships if one.organization_id == page_request.query.get("joined")]
    chosen = joined or visitor.memberships
    if len(chosen) == 1:
        home = f"/app/{quote(chosen[0].organization_slug, safe='')}/"
        done = "joined" if "new" in page_request.query else "member"
        return page_request.redirect(f"{home}?done={done}" if joined else home)
    return page_request.page("app/choose.html", visitor=visitor)


async def nothing(_page_request: OrganizationRequest) -> Response:
    """Show the page for an unknown address. Raises NotFound."""
    raise NotFound
