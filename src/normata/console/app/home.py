"""The overview: coverage, what is due, and recent changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.coverage_series import change_of, line, readiness_in_rows
from normata.console.app.event_lines import titles_of
from normata.console.app.feed import Day, days_of
from normata.console.app.inbox import lines_of as notifications_in_lines
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE, names_of
from normata.console.app.records.kinds import label
from normata.console.app.row_links import steps_to
from normata.console.filters import as_local, percent
from normata.core.db.types import now

_MOST_EVENTS, _MOST_DUE = "60", "100"
_WEEKS = 4
_NO_HISTORY: Mapping[str, Any] = {"frameworks": []}
_ENOUGH_ASSESSED = 10  # controls; after that, people know how to go on


class CalendarDay(NamedTuple):
    """A day of the calendar with what is due; ``is_mine`` if some of it is the reader's."""

    date: date
    is_today: bool
    due: list[Mapping[str, Any]]
    is_mine: bool


class Step(NamedTuple):
    """A step of the checklist. Its text is ``home.step.<key>``; ``steps`` lead to the page for it, if not null."""

    key: str
    steps: tuple[str, ...] | None
    is_done: bool


async def show(page_request: OrganizationRequest) -> Response:
    """The adopted frameworks with their coverage, the person's work, and recent changes."""
    api_queries = {
        "frameworks": ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
        "mine": ApiQuery("listDue", {"mine": "true", "within": "90d", "limit": _MOST_DUE}),
        "due": ApiQuery("listDue", {"within": "30d", "limit": _MOST_DUE}),
        "audits": ApiQuery("listAudits", {"sortColumn": "started", "sortDirection": "desc"}),
        "notifications": ApiQuery("listNotifications", {"unreadOnly": "true", "limit": "10"}),
    }
    if page_request.may("auditor"):
        api_queries |= {"events": ApiQuery("listEvents", {"limit": _MOST_EVENTS}), "people": PEOPLE}
    found = dict(zip(api_queries, await page_request.ask(*api_queries.values()), strict=True))
    adopted, people = found["frameworks"]["items"], found.get("people")
    more = [ApiQuery("getCoverageHistories", {"step": "month"})]
    more += [ApiQuery("getFrameworkCoverage", id=one["id"]) for one in adopted]
    history, *summaries = await page_request.ask(*more) if adopted else [_NO_HISTORY]
    series = {one["frameworkId"]: one for one in history["frameworks"]}
    moment = now()
    days = await _changes(page_request, found["events"]["items"], names_of(people), moment) if people else []
    return page_request.page(
        "app/home.html",
        today=as_local(moment).date(),
        summaries=[{**one, "ready": _ready(one["counts"])} for one in summaries],
        series=series,
        readiness=readiness_in_rows([series.get(one["framework"]["id"]) for one in summaries]),
        change_of=change_of,
        line=line,
        gaps=sum(one["counts"]["effective"]["partial"] + one["counts"]["effective"]["none"] for one in summaries),
        mine=found["mine"],
        overdue=[one for one in found["due"]["items"] if one["overdue"]],
        due_total=found["due"]["total"],
        next_audit=_next_audit(found["audits"]["items"], moment),
        weeks=_weeks(found["due"]["items"], found["mine"]["items"], moment),
        days=days,
        notifications=[] if days else await notifications_in_lines(page_request, found["notifications"]["items"]),
        checklist=_checklist(page_request, await _knows_frameworks(page_request, adopted), summaries, people),
        days_until=lambda at: _days_between(moment, at),
        steps_to=steps_to,
        label=label,
    )


async def _changes(
    page_request: OrganizationRequest, events: Sequence[Mapping[str, Any]], names: Mapping[str, str], moment: str
) -> list[Day]:
    """What has changed, by day. Only a change of a single row is shown with its name, so only these are asked for."""
    days = days_of(events, names, moment)
    alone = [sentence for day in days for sentence in day.sentences if sentence.count == 1]
    for sentence, title in zip(alone, await titles_of(page_request, [one.event for one in alone]), strict=True):
        sentence.entitle(title, names)
    return days


async def _knows_frameworks(page_request: OrganizationRequest, adopted: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are frameworks to adopt, or adopted ones."""
    if adopted or not page_request.may("admin"):
        return bool(adopted)
    found = await page_request.ask_one(ApiQuery("listFrameworks", {"limit": "5"}))
    return bool(found["items"])


def _ready(counts: Mapping[str, Any]) -> str:
    return percent(counts["effective"]["full"], counts["applicable"])


def _next_audit(audits: Sequence[Mapping[str, Any]], moment: str) -> Mapping[str, Any] | None:
    """The audit that starts next; null if none is planned."""
    return min(
        (one for one in audits if (one["started"] or "") >= moment), key=lambda one: one["started"], default=None
    )


def _days_between(moment: str, at: str) -> int:
    return (as_local(at).date() - as_local(moment).date()).days


def _weeks(due: Sequence[Mapping[str, Any]], mine: Sequence[Mapping[str, Any]], moment: str) -> list[list[CalendarDay]]:
    """The next weeks of the calendar, beginning with the present one; a week begins on Monday."""
    today = as_local(moment).date()
    monday = today - timedelta(days=today.weekday())
    own = {(one["kind"], one["id"]) for one in mine}
    due_on: defaultdict[date, list[Mapping[str, Any]]] = defaultdict(list)
    for one in due:
        due_on[as_local(one["at"]).date()].append(one)

    def on(day: date) -> CalendarDay:
        found = due_on[day]
        return CalendarDay(day, day == today, found, any((one["kind"], one["id"]) in own for one in found))

    return [[on(monday + timedelta(days=7 * week + number)) for number in range(7)] for week in range(_WEEKS)]


def _checklist(
    page_request: OrganizationRequest,
    knows_frameworks: bool,
    summaries: Sequence[Mapping[str, Any]],
    people: Mapping[str, Any] | None,
) -> list[Step]:
    """What a new organization does first, for admins; empty for others, and once everything is done."""
    if people is None or not page_request.may("admin"):
        return []
    assessed = sum(one["counts"]["applicable"] - one["counts"]["withoutAssessment"] for one in summaries)
    members = [one for one in people["items"] if not one["removedAt"] and not one["isServiceAccount"]]
    steps = [
        Step("name", None, "@" not in page_request.person.user_name),
        Step("choose", ("upload",), knows_frameworks),
        Step("adopt", ("frameworks",), bool(summaries)),
        Step("invite", ("settings", "invitations"), len(members) > 1),
        Step("assess", ("controls",), assessed >= _ENOUGH_ASSESSED),
    ]
    return [] if all(step.is_done for step in steps) else steps
