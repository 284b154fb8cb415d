"""The start page: it redirects to the person's organization, or lets them choose one."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from normata.console.app.organization_request import OrganizationRequest
from normata.console.page_request import PageRequest
from normata.errors import NotFound


async def choose(page_request: PageRequest) -> Response:
    """Redirect to the person's only organization, or let them choose one.

    After accepting an invitation (``joined``), the person gets to its organization, with a note. ``new`` is for a new
    account: the note then says how to sign in next time.
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
