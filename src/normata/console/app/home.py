"""Home: where the organization stands, what is due, and what has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import Question
from normata.console.app.events import lines_of as events_in_lines
from normata.console.app.inbox import lines_of as notifications_in_lines
from normata.console.app.organization_request import OrganizationVisit
from normata.console.app.people import PEOPLE, names_of

_MOST = "10"


async def show(visit: OrganizationVisit) -> Response:
    """The adopted frameworks with their coverage, what the person has to do, and what was done since they were here."""
    questions = {
        "frameworks": Question("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
        "due": Question("listDue", {"mine": "true", "within": "30d", "limit": _MOST}),
        "notifications": Question("listNotifications", {"unreadOnly": "true", "limit": _MOST}),
        "sessions": Question("listOwnSessions"),
    }
    found = dict(zip(questions, await visit.ask(*questions.values()), strict=True))
    since = _last_here(found["sessions"]["items"], visit.person.signed_in_at)
    more = [Question("getFrameworkCoverage", id=one["id"]) for one in found["frameworks"]["items"]]
    if visit.may("admin"):
        more += [Question("listEvents", {"limit": _MOST, "from": since}), PEOPLE]
    answers = await visit.ask(*more)
    events, people = answers[-2:] if visit.may("admin") else (None, None)
    return visit.page(
        "app/home.html",
        summaries=answers[:-2] if visit.may("admin") else answers,
        due=found["due"],
        told=await notifications_in_lines(visit, found["notifications"]["items"]),
        events=events,
        lines=await events_in_lines(visit, events["items"]) if events else [],
        names=names_of(people),
        since=since,
    )


def _last_here(sessions: Sequence[Mapping[str, Any]], signed_in_at: str) -> str:
    """When the person last used another session than this one, before it began; empty where that is not known."""
    return max((one["lastUsedAt"] for one in sessions if one["lastUsedAt"] < signed_in_at), default="")
