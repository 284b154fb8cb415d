"""Events in readable form: the name of each row, and the changes in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import label
from normata.console.app.records.references import Named, names_of
from normata.console.app.row_links import Steps, steps_to
from normata.console.differences import Piece, difference
from normata.console.filters import is_moment, when, words
from normata.console.texts import has_text, text
from normata.records.archive.queries import KINDS
from normata.records.fields import fields_of

# Kinds of rows that have names.
_NAMED = frozenset({*KINDS, "memberships", "users", "frameworks", "controls", "controlCoverages"})
# Kinds of rows that are known by what they are about: its sort, and the field that names it.
_ABOUT: Mapping[str, tuple[str, str]] = {
    "controlCoverages": ("controls", "controlId"),
    "frameworkAdoptions": ("frameworks", "frameworkId"),
}
# What the fields of rows besides records name.
_TARGETS: Mapping[str, str] = {"controlId": "controls", "frameworkId": "frameworks", "ownerId": "memberships"}
# What is in every event of a row, and means nothing to a reader.
UNSHOWN = frozenset({"id", "organizationId", "createdAt", "updatedAt", "assessedAt"})  # the event itself says them
_EMPTY: tuple[Any, ...] = (None, "", [], {})  # what a new row need not tell
_CALLED = ("name", "title", "identifier", "email")  # the fields that say what a row is called
_NOTHING = "–"  # noqa: RUF001 - a dash, as in print
_FEW = 3  # fields that are shown without a click
_SHORT = 60  # characters of a text whose changes are seen at once
_LONGEST = 20_000  # characters of texts that are compared
_TOKEN = re.compile(r"[A-Z]+(_[A-Z]+)*", re.ASCII)
_TOKENS = frozenset({"reasons", "type", "level", "matchLevel"})  # fields of rows besides records with values of a set


class Field(NamedTuple):
    """A field that an event has changed: what it is called, its values, and of a long text what has become of it."""

    label: str
    before: Any
    after: Any
    pieces: Sequence[Piece]


class Line(NamedTuple):
    """An event, the steps to the page of what it is about, if there is one, and what it has changed.

    ``label`` is what people call that, ``of`` the id of the user whose it is; empty if the event does not tell.
    """

    event: Mapping[str, Any]
    steps: Steps | None
    label: str
    of: str
    fields: list[Field]
    names_record: bool

    @property
    def few(self) -> list[Field]:
        """The fields that are shown at once; of something new, what it is called is enough."""
        return [] if self.names_record or self.event["after"] is None else self.fields[:_FEW]


async def lines_of(page_request: OrganizationRequest, events: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Events as they are read."""
    named = await names_of(page_request, (one for event in events for one in _named(event)))
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
        return when(raw)
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


def _named(event: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """What an event is about, and what its fields name."""
    about = _about(event)
    if about[0] in _NAMED:
        yield about
    targets = _targets(event["kind"])
    for values in (event["before"] or {}, event["after"] or {}):
        for name, value in values.items():
            if isinstance(value, str) and targets.get(name) in _NAMED:
                yield targets[name], value


def _targets(kind: str) -> Mapping[str, str]:
    """The sorts of rows that fields of a kind name."""
    found = KINDS.get(kind)
    return _TARGETS if found is None else {field.name: field.target for field in fields_of(found) if field.target}


def _line(event: Mapping[str, Any], named: Named) -> Line:
    """An event by what its row is called now, or by what the event says of it."""
    before, after, known = event["before"] or {}, event["after"] or {}, _known(event)
    unshown = {*UNSHOWN, _ABOUT.get(event["kind"], ("", ""))[1]}  # what it is about is in its sentence
    names = [name for name in known if name not in unshown and (event["before"] or known[name] not in _EMPTY)]
    fields = [_field(event["kind"], name, before.get(name), after.get(name), named) for name in names]
    called_so = next((known[name] for name in _CALLED if known.get(name)), "")
    target, row_id = _about(event)
    called = named.get((target, row_id or ""))
    if called is None or event["kind"] == "memberships":
        steps = steps_to(event["kind"], event["recordId"], known)
    else:
        steps = called.steps or None  # a control whose framework was left has none
    names_record = event["before"] is None and any(name in _CALLED for name in names)
    shown = called.words if called else str(called_so)
    return Line(event, steps, shown, known.get("userId") or "", fields, names_record)


def _field(kind: str, name: str, before: Any, after: Any, named: Named) -> Field:
    """A change in words; of a text that was long before the pieces."""
    pieces: Sequence[Piece] = ()
    if isinstance(before, str) and isinstance(after, str) and _SHORT < len(before) + len(after) < _LONGEST:
        pieces = difference(before, after)
    old, new = (_in_words(kind, name, value, named) for value in (before, after))
    return Field(field_label(name), old, new, pieces)


def field_label(name: str) -> str:
    """What people call a field of a row, by its name on the wire."""
    return text(f"field.{name}") if has_text(f"field.{name}") else label(name)


def _in_words(kind: str, name: str, value: Any, named: Named) -> Any:
    """A value without what programs call it: the name of what it refers to, the words of a token."""
    if isinstance(value, list):
        return [_in_words(kind, name, one, named) for one in value]
    if not isinstance(value, str) or not value:
        return value
    called = named.get((_targets(kind).get(name, ""), value))
    if called is not None:
        return called.words
    for key in (f"status.{value}", f"{name}.{value}"):
        if name in ("coverageStatus", "role", "scope") and has_text(key):
            return text(key)
    record = KINDS.get(kind)
    tokens = _TOKENS if record is None else {field.name for field in fields_of(record) if field.sort == "token"}
    return words(value) if name in tokens and _TOKEN.fullmatch(value) else value
