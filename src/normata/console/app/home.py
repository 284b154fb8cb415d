"""Home: where the organization stands, what is due, and what has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.events import lines_of as events_in_lines
from normata.console.app.inbox import lines_of as notifications_in_lines
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE, names_of

_MOST = "10"


async def show(page_request: OrganizationRequest) -> Response:
    """The adopted frameworks with their coverage, what the person has to do, and what was done since they were here."""
    api_queries = {
        "frameworks": ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
        "due": ApiQuery("listDue", {"mine": "true", "within": "30d", "limit": _MOST}),
        "notifications": ApiQuery("listNotifications", {"unreadOnly": "true", "limit": _MOST}),
        "sessions": ApiQuery("listOwnSessions"),
    }
    found = dict(zip(api_queries, await page_request.ask(*api_queries.values()), strict=True))
    since = _last_here(found["sessions"]["items"], page_request.person.signed_in_at)
    more = [ApiQuery("getFrameworkCoverage", id=one["id"]) for one in found["frameworks"]["items"]]
    if page_request.may("admin"):
        more += [ApiQuery("listEvents", {"limit": _MOST, "from": since}), PEOPLE]
    answers = await page_request.ask(*more)
    events, people = answers[-2:] if page_request.may("admin") else (None, None)
    return page_request.page(
        "app/home.html",
        summaries=answers[:-2] if page_request.may("admin") else answers,
        due=found["due"],
        notifications=await notifications_in_lines(page_request, found["notifications"]["items"]),
        events=events,
        lines=await events_in_lines(page_request, events["items"]) if events else [],
        names=names_of(people),
        since=since,
    )


def _last_here(sessions: Sequence[Mapping[str, Any]], signed_in_at: str) -> str:
    """When the person last used another session than this one, before it began; empty where that is not known."""
    return max((one["lastUsedAt"] for one in sessions if one["lastUsedAt"] < signed_in_at), default="")
