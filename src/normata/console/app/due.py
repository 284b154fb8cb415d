"""What is due: of the person, or of everybody."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.api_calls import Question
from normata.console.app.organization_request import OrganizationVisit
from normata.console.app.records.kinds import label
from normata.console.app.row_links import steps_to

PERIODS = ("7d", "30d", "90d", "365d")
_USUAL = "30d"


async def show(visit: OrganizationVisit) -> Response:
    """What is overdue, and what is due within some days, soonest first."""
    wanted = {name: visit.query.get(name, "") for name in ("within", "mine", "page", "limit")}
    found = await visit.ask_one(Question("listDue", wanted))
    return visit.page(
        "app/due.html",
        due=found,
        within=wanted["within"] or _USUAL,
        is_mine=wanted["mine"] == "true",
        periods=PERIODS,
        steps_to=steps_to,
        label=label,
    )
