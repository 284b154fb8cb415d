"""Home: where the organization stands, what is due, and what has changed."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.asking import Question
from normata.console.app.visiting import OrganizationVisit

_MOST = "10"


async def show(visit: OrganizationVisit) -> Response:
    """The adopted frameworks with their coverage, what the person has to do, and what was done last."""
    questions = {
        "frameworks": Question("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
        "due": Question("listDue", {"mine": "true", "within": "30d", "limit": _MOST}),
        "notifications": Question("listNotifications", {"unreadOnly": "true", "limit": _MOST}),
    }
    if visit.may("admin"):
        questions["events"] = Question("listEvents", {"limit": _MOST})
    found = dict(zip(questions, await visit.ask(*questions.values()), strict=True))
    adopted = found["frameworks"]["items"]
    summaries = await visit.ask(*(Question("getFrameworkCoverage", id=one["id"]) for one in adopted))
    return visit.page(
        "app/home.html",
        summaries=summaries,
        due=found["due"],
        notifications=found["notifications"],
        events=found.get("events"),
    )
