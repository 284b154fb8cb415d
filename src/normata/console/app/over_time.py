"""The pages of coverage over time: of a framework, and what has changed between two days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from starlette.responses import Response

from normata.console.app import coverage_series
from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.past import just_before, past_of
from normata.console.texts import text
from normata.core.db.types import format_timestamp, now
from normata.core.http.problems import InvalidRequest

STEPS = ("day", "week", "month")
SPANS = ("year", "all")
_USUAL = "week"
_MOST_DAYS = 900  # one by one; there can be no more than a thousand points


async def show_framework(page_request: OrganizationRequest) -> Response:
    """How the requirements of a framework were covered in a year, or since that is known, as a picture and a table."""
    framework_id = page_request.param("id")
    step, span = (page_request.query.get(name, "") for name in ("step", "span"))
    step, span = step if step in STEPS else _USUAL, span if span in SPANS else SPANS[0]
    framework, series, listed, audits = await page_request.ask(
        ApiQuery("getFramework", id=framework_id),
        ApiQuery("getCoverageHistory", {"step": step}, id=framework_id),
        ApiQuery("listBaselines", id=framework_id),
        coverage_series.AUDITS,
    )
    since = series["knownSince"]
    is_known_longer = since < series["points"][0]["at"]
    if span == "all" and is_known_longer:
        if step == "day" and since < _moment_before(series["points"][-1]["at"], _MOST_DAYS):
            step = "week"
        wanted = {"step": step, "from": since, "to": series["points"][-1]["at"]}
        series = await page_request.ask_one(ApiQuery("getCoverageHistory", wanted, id=framework_id))

    def picks(name: str, values: Sequence[str], chosen: str) -> list[tuple[str, str, bool]]:
        return [(text(f"app.over_time.{one}"), page_request.link(**{name: one}), one == chosen) for one in values]

    return page_request.page(
        "app/over_time.html",
        framework=framework,
        series=series,
        left_at=series["adoptions"][-1]["until"],
        shown=coverage_series.show(page_request, framework["name"], series, listed["baselines"], audits["items"]),
        lengths=picks("step", STEPS, step),
        spans=picks("span", SPANS, span) if is_known_longer else [],
    )


def _moment_before(moment: str, days: int) -> str:
    return format_timestamp(datetime.fromisoformat(moment) - timedelta(days=days))


async def show_changes(page_request: OrganizationRequest) -> Response:
    """The controls whose effective status differs between two days."""
    chosen = {name: page_request.query.get(name, "") for name in ("from", "to")}
    ends = {name: past_of(sent, page_request.membership.organization_id) for name, sent in chosen.items() if sent}
    wanted = {name: past.moment if past else now() for name, past in ends.items()}
    refusal = None
    try:
        found = await page_request.ask_one(ApiQuery("listCoverageChanges", wanted | page_request.place))
    except InvalidRequest as error:  # a day before the past is known, or to come
        refusal = error
        found = await page_request.ask_one(ApiQuery("listCoverageChanges", {}))
    return page_request.page(
        "app/coverage_changes.html",
        status=200 if refusal is None else 400,
        changes=found,
        chosen=chosen,
        then=lambda one, name: chosen[name] if ends.get(name) else _then(one["changedAt"], name),
        fault="" if refusal is None else "; ".join(fault.message for fault in refusal.faults),
    )


def _then(moments: Sequence[str], end: str) -> str:
    """A moment with the status at one end, where no day was chosen: before the first change, or today."""
    return just_before(moments[0]) if end == "from" and moments else ""
