"""Events: who did what in the organization, and the checkpoint that seals them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial
from operator import itemgetter

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.downloads import download_report
from normata.console.app.event_lines import lines_of, value_text
from normata.console.app.feed import happenings_of
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE, names_of, with_all
from normata.console.filters import action_words, kind_words
from normata.console.texts import text
from normata.core.db.types import now
from normata.core.schema.table import tables

_LIMIT = "50"
# The filters, with the keys of their labels.
_FILTERS: Mapping[str, str] = {
    "from": "app.events.from",
    "to": "app.events.to",
    "kind": "app.events.kind",
    "userId": "field.who",
    "action": "app.events.action",
    "recordId": "app.events.record",
}
_SEAL = "getEventCheckpoint"
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# The actions to choose from. Events may have others.
_ACTIONS = (
    "accept",
    "acknowledge",
    "adopt",
    "approve",
    "archive",
    "create",
    "end",
    "erase",
    "finalize",
    "expire",
    "import",
    "leave",
    "load",
    "publish",
    "read",
    "reject",
    "remind",
    "remove",
    "restore",
    "retire",
    "review",
    "repeat",
    "revoke",
    "submit",
    "assess",
    "clear",
    "update",
    "verify",
)


async def show(page_request: OrganizationRequest) -> Response:
    """The events, newest first, and the checkpoint. Viewers and editors see the checkpoint only, and why."""
    if not page_request.may("auditor"):
        return page_request.page("app/events.html", seal=await page_request.ask_one(ApiQuery(_SEAL)), events=None)
    chosen = {name: page_request.query.get(name, "") for name in (*_FILTERS, "page", "cursor")}
    wanted = {"limit": _LIMIT} | chosen | {"to": _after(chosen["to"])}
    events, seal, people = await page_request.ask(ApiQuery("listEvents", wanted), ApiQuery(_SEAL), PEOPLE)
    names = names_of(await with_all(page_request, people))
    kinds = sorted(((table.array, kind_words(table.array)) for table in tables() if table.array), key=itemgetter(1))
    called = {"kind": dict(kinds), "userId": names, "action": {one: action_words(one) for one in _ACTIONS}}
    lines = await lines_of(page_request, events["items"])
    return page_request.page(
        "app/events.html",
        seal=seal,
        events=events,
        days=happenings_of(lines, names, now()),
        names=names,
        chosen=chosen,
        chips=[
            (
                text(key),
                called.get(name, {}).get(chosen[name], chosen[name]),
                page_request.link(**{name: None, "page": None}),
            )
            for name, key in _FILTERS.items()
            if chosen[name]
        ],
        kinds=kinds,
        people=list(names.items()),
        actions=_ACTIONS,
        value=partial(value_text, names),
    )


async def checkpoint_file(page_request: OrganizationRequest) -> Response:
    """The checkpoint as a file to download: a signed note."""
    return await download_report(page_request, _SEAL, "")


def _after(day: str) -> str:
    """The day after ``day``, since the filter includes its last day; any other text unchanged."""
    try:
        return (date.fromisoformat(day) + timedelta(days=1)).isoformat() if _DAY.fullmatch(day) else day
    except (ValueError, OverflowError):
        return day
