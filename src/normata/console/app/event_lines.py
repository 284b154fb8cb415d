"""Events as people read them: rows by their names, and changes in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console.app.api_calls import ApiQuery
from normata.console.app.links import LINKS, ends_in, relation_words
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import label
from normata.console.app.records.references import Called, Named, names_of
from normata.console.app.row_links import Steps, steps_to
from normata.console.differences import Piece, difference_as_read
from normata.console.filters import is_moment, rows_in_words, when, words
from normata.console.texts import counted, has_text, text
from normata.records.archive.queries import KINDS
from normata.records.fields import fields_of

# Kinds whose rows have names.
_NAMED = frozenset({*KINDS, "memberships", "users", "frameworks", "controls", "controlCoverages"})
# Kinds whose rows are named after another one: its kind, and the field with its id.
_ABOUT: Mapping[str, tuple[str, str]] = {
    "controlCoverages": ("controls", "controlId"),
    "frameworkAdoptions": ("frameworks", "frameworkId"),
}
# The kinds that reference fields name, of rows that are no records.
_TARGETS: Mapping[str, str] = {"controlId": "controls", "frameworkId": "frameworks", "ownerId": "memberships"}
# Fields that need not be shown, since each event has its own time and row.
UNSHOWN = frozenset({"id", "organizationId", "createdAt", "updatedAt", "assessedAt"})
_OF_LINKS = frozenset({"fromKind", "fromId", "toKind", "toId", "relation", "removedAt"})  # their titles say these
_EMPTY: tuple[Any, ...] = (None, "", [], {})  # not shown for a new row
_CALLED = ("name", "title", "identifier", "email")  # the fields with the name of a row, best first
_INVITATIONS = "invitations"
_NOTHING = "–"  # noqa: RUF001 - a dash, as in print
_WRITTEN = frozenset({"inserted", "updated", "retired", "returned"})  # counts of the rows of a kind
_ERASED_ROWS = "rows"
# Of the counts. The controls have their names, and what follows has a link.
_HIDDEN = frozenset({"controlIds", "signature", "contentSha256", "follows", "skipped", "source"})
_FIRST = 5  # controls that are listed
_FEW = 3  # fields shown without a click
_SHORT = 60  # longer texts are shown as a difference
_LONGEST = 20_000  # characters in all; longer texts are not compared
_TOKEN = re.compile(r"[A-Z]+(_[A-Z]+)*", re.ASCII)
_TOKENS = frozenset({"reasons", "type", "level", "matchLevel"})  # enum fields of rows that are no records


class Field(NamedTuple):
    """A changed field: its label, its values, and for a long text the ``pieces`` of the difference."""

    label: str
    before: Any
    after: Any
    pieces: Sequence[Piece]


class Title(NamedTuple):
    """The row that an event is about: its name, the steps to its page, and the id of the user that it belongs to.

    ``label`` is empty if it has no name, ``steps`` are null if it has no page, ``of`` is empty if it belongs to nobody.
    """

    label: str
    steps: Steps | None
    of: str


class Line(NamedTuple):
    """An event in readable form."""

    event: Mapping[str, Any]
    title: Title
    fields: list[Field]
    names_record: bool
    counts: list[str]

    @property
    def few(self) -> list[Field]:
        """The fields that are always visible. For a new row they are none: its name is enough."""
        return [] if self.names_record or self.event["after"] is None else self.fields[:_FEW]


async def lines_of(page_request: OrganizationRequest, events: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Events in readable form, in the same order."""
    named = await names_of(page_request, (one for event in events for one in _named(event)))
    named = {**named, **await _invitations(page_request, events)}
    return [_line(event, named) for event in events]


async def titles_of(page_request: OrganizationRequest, events: Sequence[Mapping[str, Any]]) -> list[Title]:
    """The rows that events are about, in the same order: less work than the events in full."""
    rows = [_about(event) for event in events]
    named = await names_of(page_request, [*(row for row in rows if row[0] in _NAMED), *ends_in(events)])
    named = {**named, **await _invitations(page_request, events)}
    return [_title(event, named) for event in events]


async def _invitations(page_request: OrganizationRequest, events: Sequence[Mapping[str, Any]]) -> Named:
    """The open invitations that events are about, by their addresses: these are never in an event."""
    ids = {event["recordId"] for event in events if event["kind"] == _INVITATIONS}
    if not ids or not page_request.may("auditor"):
        return {}
    found = await page_request.ask_one(ApiQuery("listInvitations", {"limit": "100"}))
    place = ("settings", "invitations")
    return {(_INVITATIONS, one["id"]): Called(one["id"], one["email"], place, "") for one in found["items"]}


def value_text(names: Mapping[str, str], raw: Any, longest: int = 0) -> str:
    """A value as people read it: the name for a person's id, a word for a flag, a dash for nothing.

    A text or document longer than ``longest`` is cut; 0 means no limit. This is a function because a macro would be too
    slow for the thousand values of a page.
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
    """All fields of the row that an event contains, with their latest values."""
    return {**(event["before"] or {}), **(event["after"] or {})}


def _about(event: Mapping[str, Any]) -> tuple[str, str | None]:
    """The kind and id of the row that an event is about; for an assessment or adoption, of its control or framework."""
    target, field = _ABOUT.get(event["kind"], ("", ""))
    named = _known(event).get(field)
    return (target, named) if named else (event["kind"], event["recordId"])


def _named(event: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """All rows that an event names, as pairs of kind and id."""
    about = _about(event)
    if about[0] in _NAMED:
        yield about
    for control_id in _controls(event)[:_FIRST]:
        yield "controls", control_id
    yield from ends_in([event])
    targets = _targets(event["kind"])
    for values in (event["before"] or {}, event["after"] or {}):
        for name, value in values.items():
            if isinstance(value, str) and targets.get(name) in _NAMED:
                yield targets[name], value


def _controls(event: Mapping[str, Any]) -> Sequence[str]:
    """The controls that the counts of an event list."""
    found: Sequence[str] = (event["counts"] or {}).get("controlIds", ())
    return found


def _counts(event: Mapping[str, Any], named: Named) -> list[str]:
    """The counts of an event in words, with the names of the first controls."""
    phrases: list[str] = []
    for name, count in (event["counts"] or {}).items():
        if isinstance(count, Mapping):  # by kind; those of an erasure by how much it was
            rows = name == _ERASED_ROWS
            phrases += (
                [rows_in_words(kind, number) for kind, number in count.items()] if rows else _written(name, count)
            )
        elif name in _WRITTEN:
            phrases += _written(event["kind"], {name: count})
        elif name == "version":
            phrases.append(text("events.version", number=count))
        elif name == "externalId":
            phrases.append(text("events.external_id", source=event["counts"]["source"], id=count))
        elif name == "frequency":
            phrases.append(text(f"recurrence.{count}") if count else text("recurrence.none"))
        elif name not in _HIDDEN and count:
            phrases.append(counted(f"events.count.{name}", len(count) if isinstance(count, list) else int(count)))
    controls = _controls(event)
    if controls:
        names = [called.words if (called := named.get(("controls", one))) else one for one in controls[:_FIRST]]
        names += ["…"] if len(controls) > _FIRST else []
        phrases.append(f"{text('app.section.controls')}: {', '.join(names)}")
    return phrases


def _written(kind: str, counts: Mapping[str, int]) -> list[str]:
    """How many rows of a kind were added and changed: what an import or a load has of each kind."""
    return [text(f"events.count.{name}", things=rows_in_words(kind, count)) for name, count in counts.items() if count]


def _targets(kind: str) -> Mapping[str, str]:
    """The kinds that the reference fields of a kind refer to, by field."""
    found = KINDS.get(kind)
    return _TARGETS if found is None else {field.name: field.target for field in fields_of(found) if field.target}


def _line(event: Mapping[str, Any], named: Named) -> Line:
    """An event with the names of its rows, and its changes in words."""
    before, after, known = event["before"] or {}, event["after"] or {}, _known(event)
    unshown = {
        *UNSHOWN,
        _ABOUT.get(event["kind"], ("", ""))[1],
        *(_OF_LINKS if event["kind"] == LINKS else ()),
    }  # the sentence names the control or framework already
    names = [name for name in known if name not in unshown and (event["before"] or known[name] not in _EMPTY)]
    fields = [_field(event["kind"], name, before.get(name), after.get(name), named) for name in names]
    names_record = event["before"] is None and any(name in _CALLED for name in names)
    return Line(event, _title(event, named), fields, names_record, _counts(event, named))


def _title(event: Mapping[str, Any], named: Named) -> Title:
    """The row that an event is about, with its present name, or else with the name in the event."""
    known = _known(event)
    called_so = next((known[name] for name in _CALLED if known.get(name)), "")
    target, row_id = _about(event)
    called = named.get((target, row_id or ""))
    if event["kind"] == LINKS:
        return _link_title(event, named)
    if called is None or event["kind"] == "memberships":
        steps = steps_to(event["kind"], event["recordId"], known)
    else:
        steps = called.steps or None  # a control of a framework that is no longer adopted has no page
    return Title(called.words if called else str(called_so), steps, known.get("userId") or "")


def _link_title(event: Mapping[str, Any], named: Named) -> Title:
    """What a link leads from and to, and the page of the first."""
    ends = [named.get((kind, row_id or "")) for kind, row_id in ends_in([event])]
    start, end = ends if len(ends) == 2 else (None, None)
    if start is None or end is None:
        return Title("", None, "")
    relation = relation_words(str(_known(event).get("relation"))).lower()
    return Title(text("link.between", start=start.words, relation=relation, end=end.words), start.steps or None, "")


def _field(kind: str, name: str, before: Any, after: Any, named: Named) -> Field:
    """A change in words. Long texts also get the difference as pieces."""
    pieces: Sequence[Piece] = ()
    if isinstance(before, str) and isinstance(after, str) and _SHORT < len(before) + len(after) < _LONGEST:
        pieces = difference_as_read(before, after)
    old, new = (_in_words(kind, name, value, named) for value in (before, after))
    return Field(field_label(name), old, new, pieces)


def field_label(name: str) -> str:
    """The label of a field, by its name on the wire."""
    return text(f"field.{name}") if has_text(f"field.{name}") else label(name)


def _in_words(kind: str, name: str, value: Any, named: Named) -> Any:
    """A value for people: names in place of ids, words in place of tokens."""
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
