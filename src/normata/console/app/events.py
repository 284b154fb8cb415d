"""Events: what was done in the organization, by whom, and what seals it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE, names_of, with_all
from normata.console.app.records.references import Named
from normata.console.app.records.references import names_of as record_names
from normata.console.app.row_links import Steps, steps_to
from normata.console.filters import is_moment, kind_words, moment
from normata.console.texts import text
from normata.core.schema.table import tables
from normata.records.archive.queries import KINDS

_LIMIT = "50"
_FILTERS = ("from", "to", "kind", "recordId", "userId", "action")
_SEAL = "getEventCheckpoint"
# Kinds of rows that have names.
_NAMED = frozenset({*KINDS, "memberships", "users", "frameworks", "controls", "controlCoverages"})
# Kinds of rows that are known by what they are about: its sort, and the field that names it.
_ABOUT: Mapping[str, tuple[str, str]] = {
    "controlCoverages": ("controls", "controlId"),
    "frameworkAdoptions": ("frameworks", "frameworkId"),
}
# What is in every event of a row, and means nothing to a reader.
UNSHOWN = frozenset({"id", "organizationId", "createdAt", "updatedAt", "assessedAt"})  # the event itself says them
_EMPTY: tuple[Any, ...] = (None, "", [], {})  # what a new row need not tell
_CALLED = ("name", "title", "identifier", "email")  # the fields that say what a row is called
_NOTHING = "–"  # noqa: RUF001 - a dash, as in print
_FEW = 3  # fields that are shown without a click
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# Proposals: events may have others.
_ACTIONS = (
    "accept",
    "adopt",
    "archive",
    "create",
    "end",
    "erase",
    "import",
    "leave",
    "load",
    "read",
    "remind",
    "remove",
    "restore",
    "revoke",
    "assess",
    "clear",
    "update",
)


class Field(NamedTuple):
    """A field that an event has changed: its name on the wire, and its values."""

    name: str
    before: Any
    after: Any


class Line(NamedTuple):
    """An event, the steps to the page of what it is about, if there is one, and what it has changed.

    ``label`` is what people call that, ``of`` the id of the user whose it is; empty where the event does not tell.
    """

    event: Mapping[str, Any]
    steps: Steps | None
    label: str
    of: str
    fields: list[Field]

    @property
    def few(self) -> list[Field]:
        """The fields that are shown at once; of something new, what it is called is enough."""
        names_record = self.event["before"] is None and any(field.name in _CALLED for field in self.fields)
        return [] if names_record else self.fields[:_FEW]


async def show(page_request: OrganizationRequest) -> Response:
    """What was done, newest first, and the checkpoint. Others than admins see the checkpoint, and the reason why."""
    if not page_request.may("admin"):
        return page_request.page("app/events.html", seal=await page_request.ask_one(ApiQuery(_SEAL)), events=None)
    chosen = {name: page_request.query.get(name, "") for name in (*_FILTERS, "page")}
    wanted = {"limit": _LIMIT} | chosen | {"to": _after(chosen["to"])}
    events, seal, people = await page_request.ask(ApiQuery("listEvents", wanted), ApiQuery(_SEAL), PEOPLE)
    names = names_of(await with_all(page_request, people))
    return page_request.page(
        "app/events.html",
        seal=seal,
        events=events,
        lines=await lines_of(page_request, events["items"]),
        names=names,
        chosen=chosen,
        is_filtered=any(chosen[name] for name in _FILTERS),
        kinds=sorted(((table.array, kind_words(table.array)) for table in tables() if table.array), key=itemgetter(1)),
        people=[(user_id, name) for user_id, name in names.items()],
        actions=_ACTIONS,
        value=partial(value_text, names),
    )


async def checkpoint_file(page_request: OrganizationRequest) -> Response:
    """The checkpoint as a file: the signed note."""
    return await page_request.file(_SEAL, "")


async def lines_of(page_request: OrganizationRequest, events: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Events as they are read."""
    named = await record_names(page_request, (about for about in map(_about, events) if about[0] in _NAMED))
    return [_line(event, named) for event in events]


def value_text(names: Mapping[str, str], raw: Any, longest: int = 0) -> str:
    """A value as people read it: a name for the id of a person, words for flags, a dash for nothing.

    Texts and documents are cut where they have more than ``longest`` characters, if that is given. A function, and no
    macro: a page has a thousand values.
    """
    if raw is None:
        return _NOTHING
    if isinstance(raw, bool):
        return text("app.yes") if raw else text("app.no")
    if isinstance(raw, list):
        return Markup(", ").join(value_text(names, one, longest) for one in raw) or _NOTHING
    if is_moment(raw):
        return moment(raw)
    if isinstance(raw, str) and raw in names:
        return names[raw]
    shown = json.dumps(raw, ensure_ascii=False) if isinstance(raw, dict) else str(raw)
    return f"{shown[: longest - 1]}…" if longest and len(shown) > longest else shown


def _known(event: Mapping[str, Any]) -> dict[str, Any]:
    """What an event says of its row."""
    return {**(event["before"] or {}), **(event["after"] or {})}


def _about(event: Mapping[str, Any]) -> tuple[str, str | None]:
    """What an event is about, by its sort and id; of what is taken back or left, that is all that there still is."""
    target, field = _ABOUT.get(event["kind"], ("", ""))
    named = _known(event).get(field)
    return (target, named) if named else (event["kind"], event["recordId"])


def _line(event: Mapping[str, Any], named: Named) -> Line:
    """An event by what its row is called now, or by what the event says of it."""
    before, after, known = event["before"] or {}, event["after"] or {}, _known(event)
    names = [name for name in known if name not in UNSHOWN and (event["before"] or known[name] not in _EMPTY)]
    fields = [Field(name, before.get(name), after.get(name)) for name in names]
    label = next((known[name] for name in _CALLED if known.get(name)), "")
    target, row_id = _about(event)
    called = named.get((target, row_id or ""))
    if called is None or event["kind"] == "memberships":
        steps = steps_to(event["kind"], event["recordId"], known)
    else:
        steps = called.steps or None  # a control whose framework was left has none
    return Line(event, steps, called.words if called else str(label), known.get("userId") or "", fields)


def _after(day: str) -> str:
    """The day after ``day``, which is the last that is wanted; another text as it is."""
    try:
        return (date.fromisoformat(day) + timedelta(days=1)).isoformat() if _DAY.fullmatch(day) else day
    except (ValueError, OverflowError):
        return day
