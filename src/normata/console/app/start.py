"""The way into the console: to the organization, or to the choice of one."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from normata.console.app.organization_request import OrganizationRequest
from normata.console.page_request import PageRequest
from normata.errors import NotFound


async def choose(page_request: PageRequest) -> Response:
    """Lead to the person's only organization, or have them choose one of several."""
    visitor = await page_request.required_visitor()
    if len(visitor.memberships) == 1:
        return page_request.redirect(f"/app/{quote(visitor.memberships[0].organization_slug, safe='')}/")
    return page_request.page("app/choose.html", visitor=visitor)


async def nothing(_page_request: OrganizationRequest) -> Response:
    """Tell, with a page, that there is nothing at this address. Raises NotFound."""
    raise NotFound
