"""The members of the organization: their names for events and lists, and as choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from normata.console.app.api_calls import ApiQuery

if TYPE_CHECKING:
    from normata.console.app.organization_request import OrganizationRequest

PEOPLE = ApiQuery("listMembers", {"removed": "include"})
_MAX_PAGES = 20  # of a hundred members each; nobody chooses among more


def names_of(members: Mapping[str, Any] | None) -> Mapping[str, str]:
    """The names of members by user id; empty if ``members`` is null."""
    return {} if members is None else {one["userId"]: one["name"] for one in members["items"]}


async def with_all(
    page_request: OrganizationRequest, first: Mapping[str, Any], *, removed: str = "include"
) -> dict[str, Any]:
    """The list of members with all its pages; ``first`` is the first one."""
    pages = min(-(-first["total"] // first["limit"]), _MAX_PAGES)
    more = [ApiQuery("listMembers", {"removed": removed, "page": str(number)}) for number in range(2, pages + 1)]
    answers = await page_request.ask(*more) if more else []
    return {**first, "items": [*first["items"], *(one for answer in answers for one in answer["items"])]}
