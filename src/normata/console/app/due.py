"""What is due, for one person or for everyone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import label
from normata.console.app.row_links import steps_to
from normata.console.filters import as_local
from normata.core.db.types import now

PERIODS = ("7d", "30d", "90d", "365d")
_USUAL = "30d"


async def show(page_request: OrganizationRequest) -> Response:
    """The page of what is overdue or due within a period, by date."""
    wanted = {name: page_request.query.get(name, "") for name in ("within", "mine", "page", "cursor", "limit")}
    found = await page_request.ask_one(ApiQuery("listDue", wanted))
    groups = _groups(found["items"])
    return page_request.page(
        "app/due.html",
        due=found,
        groups=list(groups.items()),
        late=len(groups.get("late", ())),
        within=wanted["within"] or _USUAL,
        is_mine=wanted["mine"] == "true",
        periods=PERIODS,
        steps_to=steps_to,
        label=label,
    )


def _groups(due: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """What is due, by urgency: ``late``, within a ``week``, or ``later``. Each group is sorted by date."""
    in_a_week = as_local(now()).date() + timedelta(days=7)
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for one in due:
        soon = "week" if as_local(one["at"]).date() <= in_a_week else "later"
        groups.setdefault("late" if one["overdue"] else soon, []).append(one)
    return groups
