"""A person's calendar: what is due for them as iCalendar (RFC 5545), at a secret address.

Calendar programs send no token and follow no sign-in, so the secret is in the address. Logs and spans do not have it,
see :func:`normata.core.http.routing.loggable`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from normata.console.app.records.kinds import label
from normata.console.app.row_links import steps_to
from normata.console.filters import kind_word
from normata.console.page_request import PageRequest
from normata.console.site import Site
from normata.console.texts import text
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import is_plain, now
from normata.core.http.content import Content
from normata.core.http.context import context_of
from normata.core.http.problems import TooManyRequests
from normata.core.http.rate_limit import network_of
from normata.core.http.routing import CALENDARS
from normata.errors import NotFound
from normata.identity.calendar import CALENDAR_LOOKUP, Reader, reader
from normata.identity.last_use import CalendarUse
from normata.identity.secrets import digest_of, is_secret
from normata.records.due.queries import own_dates

PATH = f"{CALENDARS}{{name}}/"
MOST = 1_000  # dates of an organization
_REFRESH = timedelta(hours=1)
_HEADERS = ((b"referrer-policy", b"no-referrer"), (b"x-robots-tag", b"noindex"))
_ENDING = ".ics"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")  # a text of iCalendar has none (RFC 5545, section 3.1)


class Entry(NamedTuple):
    """One date of a calendar. ``steps`` lead to the page of what is due, below its organization."""

    organization: Any
    date: Any
    steps: Sequence[str]


async def show_calendar(page_request: PageRequest) -> Response:
    """The calendar at an address; HEAD, ``If-None-Match`` and compression work as for every read.

    Raises NotFound for an address that there is not, or whose person is a member nowhere any more, and TooManyRequests
    for a network that has asked for too many of these.
    """
    name: str = page_request.request.path_params["name"]
    found = await _reader(page_request, name.removesuffix(_ENDING))
    if found is None:
        _count_unknown(page_request)
        raise NotFound
    console = page_request.console
    console.services.means[CalendarUse].note(found.address_id, found.user_id, found.last_used_at, now())
    organizations = tuple(row.organization_id for row in found.organizations)
    entries = await console.services.database.read(
        lambda transaction: _entries(transaction, found), TenantScope(readable=organizations, users=(found.user_id,))
    )
    body = await asyncio.to_thread(written, entries, console.site, are_several=len(organizations) > 1)
    return _Calendar(Content(body, b"text/calendar; charset=utf-8", vary=b"accept-encoding"))


class _Calendar(Response):
    """Sends a calendar, or 304."""

    def __init__(self, content: Content) -> None:
        super().__init__()
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        await self._content.send(context_of(scope).headers, send, *_HEADERS)


async def _reader(page_request: PageRequest, secret: str) -> Reader | None:
    # The database compares digests, so how long that takes says nothing about the secret.
    if not is_secret(secret):
        return None
    found = await page_request.console.services.database.look_up(CALENDAR_LOOKUP, digest_of(secret))
    return reader(found, now())


def _count_unknown(page_request: PageRequest) -> None:
    """Count an unknown address like a bad token. Raises TooManyRequests."""
    limit = page_request.console.services.bad_tokens_by_address
    wait = limit.seconds_to_wait(network_of(page_request.address), page_request.context.response_headers)
    if wait:
        raise TooManyRequests(wait=wait, reason="bad_tokens")


def _entries(transaction: Transaction, found: Reader) -> list[Entry]:
    """The dates of all organizations of a calendar; one statement for each."""
    return [
        Entry(organization, date, steps_to(date.kind, date.id, {"controlId": date.control_id}) or ())
        for organization in found.organizations
        for date in own_dates(transaction, organization.organization_id, found.user_id, MOST)
    ]


def written(entries: Sequence[Entry], site: Site, *, are_several: bool) -> bytes:
    """The calendar of these entries. The same entries are the same bytes, at any time.

    It has nothing but what the list of what is due has. ``are_several`` is true if it is about several organizations,
    which it then names.
    """
    # Importing it takes a while, and most processes write no calendar.
    from icalendar import Calendar, Event  # noqa: PLC0415

    calendar = Calendar()
    for name, value in {
        "prodid": "-//Normata//Due dates//EN",
        "version": "2.0",
        "name": text("calendar.name"),  # RFC 7986; the next one is for programs that are older
        "x-wr-calname": text("calendar.name"),
    }.items():
        calendar.add(name, value)
    calendar.add("refresh-interval", _REFRESH, {"VALUE": "DURATION"})
    calendar.add("x-published-ttl", "PT1H")
    for entry in entries:
        calendar.add_component(_event(Event, entry, site, is_named=are_several))
    return bytes(calendar.to_ical())


def _event(new: Callable[[], Any], entry: Entry, site: Site, *, is_named: bool) -> Any:
    organization, date = entry.organization, entry.date
    event = new()
    changed = _seconds(date.changed_at or date.at)
    event.add("uid", f"{date.kind}/{quote(date.id, safe='')}/{date.what}@{site.host}")
    # Without METHOD, this is when the event was last changed (RFC 5545, section 3.8.7.2).
    event.add("dtstamp", changed)
    event.add("last-modified", changed)
    at = _seconds(date.at)
    event.add("dtstart", at.date() if is_plain(date.at) else at)
    summary = text("calendar.summary", label=date.label, kind=kind_word(date.kind), what=label(date.what))
    event.add("summary", " ".join(_CONTROLS.sub(" ", summary).split()))
    event.add("transp", "TRANSPARENT")  # a deadline does not make its person busy
    if is_named:
        event.add("categories", [organization.organization_name])
    if entry.steps:
        steps = ("app", organization.organization_slug, *entry.steps)
        event.add("url", site.url("".join(f"/{quote(step, safe='')}" for step in steps) + "/"))
    return event


def _seconds(moment: str) -> datetime:
    """A moment in wire form, in UTC, to the second, as calendars have them."""
    return datetime.fromisoformat(moment).astimezone(UTC).replace(microsecond=0)
