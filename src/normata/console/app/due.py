"""What is due: of the person, or of everybody."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import label
from normata.console.app.row_links import steps_to

PERIODS = ("7d", "30d", "90d", "365d")
_USUAL = "30d"


async def show(page_request: OrganizationRequest) -> Response:
    """What is overdue, and what is due within some days, soonest first."""
    wanted = {name: page_request.query.get(name, "") for name in ("within", "mine", "page", "limit")}
    found = await page_request.ask_one(ApiQuery("listDue", wanted))
    return page_request.page(
        "app/due.html",
        due=found,
        within=wanted["within"] or _USUAL,
        is_mine=wanted["mine"] == "true",
        periods=PERIODS,
        steps_to=steps_to,
        label=label,
    )
