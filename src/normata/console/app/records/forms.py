"""The form of a record: how values are written into it, and read from it.

The form contains a hash of each field's first value, its mark. So a change sends only the fields that the person has
changed, and after a conflict the page can show which fields others have changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from math import isfinite
from typing import Any, NamedTuple

import orjson

from normata.console.app.api_calls import Fields, tag_of
from normata.console.app.records.kinds import Kind
from normata.console.filters import day_of, zone_of
from normata.console.texts import text
from normata.core.changes.merge_patch import is_same, merge_patch, patch_between
from normata.core.db.types import format_timestamp
from normata.core.schema.fields import parse_timestamp
from normata.records.fields import Field, fields_of

_LONG = ("prose", "document")
_BROWSER_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?", re.ASCII)
AS_TEXT, AS_JSON = "text", "json"  # how a document is written


class Entry(NamedTuple):
    """A field of a form with its content. ``written`` says of a document whether it is text or JSON."""

    field: Field
    shown: str
    written: str = ""


class Started(NamedTuple):
    """What a form began with: entity tag and marks of the record, or the idempotency key for a new one.

    ``zone`` is the name of the time zone of its times.
    """

    tag: str = ""
    marks: str = ""
    key: str = ""
    zone: str = ""


class Read(NamedTuple):
    """The values to send, by field, and the faults of those that cannot be sent."""

    values: Mapping[str, Any]
    faults: Mapping[str, str]


def form_fields(kind: Kind) -> Sequence[Field]:
    """The fields that people can fill in."""
    return [field for field in fields_of(kind) if field.is_typed]


def entry_of(field: Field, value: Any, zone: str) -> Entry:
    """A value as content of the form; times are in the zone of this name."""
    match field.sort:
        case "flag":
            return Entry(field, "true" if value else "")
        case "moment":
            return Entry(field, _local(field, value, zone_of(zone)) if value else "")
        case "document":
            if value is None or isinstance(value, str):
                return Entry(field, value or "", AS_TEXT)
            return Entry(field, json.dumps(value, ensure_ascii=False, indent=2), AS_JSON)
    return Entry(field, "" if value is None else str(value))


def typed_entry(field: Field, form: Fields) -> Entry | None:
    """What the person has entered for a field; null if the form does not contain the field."""
    name = field.name
    if field.sort == "flag":
        return Entry(field, "true" if form.has(name) else "") if name in form.all("flags") else None
    if not form.has(name):
        return None
    if field.sort == "token":
        return Entry(field, form.get(name) or _as_token(form.get(f"other.{name}")))
    if field.sort in _LONG:
        written = form.get(f"as.{name}", AS_TEXT) if field.sort == "document" else ""
        return Entry(field, _lines(form.all(name)[-1]), written)
    return Entry(field, form.get(name))


def started_with(record: Mapping[str, Any], entries: Sequence[Entry], zone: str) -> Started:
    """What a form begins with that shows these entries of a record."""
    return Started(tag_of(record), marks_of(entries), zone=zone)


def marks_of(entries: Sequence[Entry]) -> str:
    """The marks of the entries, as the value of a form field."""
    return json.dumps({entry.field.name: _mark(entry) for entry in entries}, separators=(",", ":"))


def known_marks(form: Fields) -> Mapping[str, str]:
    """The marks that a form has sent back; none if they are missing or not readable."""
    try:
        found = orjson.loads(form.get("marks"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def is_marked(entry: Entry, marks: Mapping[str, str]) -> bool:
    """Whether the content is what the form was filled with."""
    return marks.get(entry.field.name) == _mark(entry)


def read(entries: Sequence[Entry], zone: str, record: Mapping[str, Any] | None = None) -> Read:
    """The values to send for these entries. For a new record, where ``record`` is null, empty ones are left out."""
    values: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for entry in entries:
        field = entry.field
        if record is None and not entry.shown and not field.is_title and field.sort != "flag":
            continue
        try:
            values[field.name] = _value(entry, zone_of(zone), None if record is None else record[field.name])
        except ValueError as error:
            faults[field.name] = str(error)
    return Read(values, faults)


def _value(entry: Entry, zone: tzinfo, before: Any) -> Any:
    """The value of a field to send. Raises ValueError with a message for the person.

    Text that is no number or time is sent unchanged, because the operation explains what is wrong.
    """
    field, shown = entry.field, entry.shown
    if field.sort == "flag":
        return bool(shown)
    if not shown:
        return None if field.may_be_null else ""
    if field.sort == "document":
        return _document(entry, before)
    if field.sort == "moment":
        return _moment(shown, zone)
    return _PARSERS.get(field.sort, _as_it_is)(shown)


def _document(entry: Entry, before: Any) -> Any:
    """The merge patch (RFC 7396) from the document before to the one in the form. Raises ValueError."""
    if entry.written != AS_JSON:
        return entry.shown
    try:
        document = orjson.loads(entry.shown)
    except ValueError as error:
        raise ValueError(text("record.no_json", reason=str(error))) from None
    try:
        patch = patch_between(before, document)
        is_whole = is_same(merge_patch(before, patch), document)
    except RecursionError:  # the operation allows much less nesting
        raise ValueError(text("record.deep_json")) from None
    if not is_whole:
        raise ValueError(text("record.null_in_json"))
    return patch


def _count(shown: str) -> int | str:
    return int(shown) if re.fullmatch(r"[+-]?[0-9]{1,18}", shown, re.ASCII) else shown


def _number(shown: str) -> float | str:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", shown, re.ASCII | re.IGNORECASE):
        return shown
    number = float(shown)
    return number if isfinite(number) else shown


def _moment(shown: str, zone: tzinfo = UTC) -> str:
    """A timestamp from a day, or from a browser's local time in this zone; other text unchanged."""
    try:
        return parse_timestamp(shown)
    except ValueError:
        pass
    if not _BROWSER_TIME.fullmatch(shown):
        return shown
    try:
        return format_timestamp(datetime.fromisoformat(shown).replace(tzinfo=zone))
    except (ValueError, OverflowError):
        return shown


def _local(field: Field, moment: str, zone: tzinfo) -> str:
    """A timestamp as browsers write it: a day, or, for a field with times, the local time in its shortest form."""
    if not field.has_time:
        return day_of(moment, zone).isoformat()
    local = datetime.fromisoformat(moment).astimezone(zone).replace(tzinfo=None)
    rest = "minutes" if not local.second and not local.microsecond else "milliseconds"
    return local.isoformat(timespec=rest).removesuffix(".000")


def _as_token(words: str) -> str:
    """Words as a token: ``waiting for vendor`` becomes ``WAITING_FOR_VENDOR``."""
    return re.sub(r"[\s_-]+", "_", words.strip()).upper()


def _lines(typed: str) -> str:
    r"""The text with ``\n`` as line ends; browsers send ``\r\n``."""
    return typed.replace("\r\n", "\n").replace("\r", "\n")


def _as_it_is(shown: str) -> str:
    return shown


def _without_ends(shown: str) -> str:
    return re.sub(r"[\r\n]", "", shown).strip()


_PARSERS: Mapping[str, Callable[[str], Any]] = {"count": _count, "number": _number}

# Browsers change values that nobody has touched. Marks ignore that.
_PLAIN: Mapping[str, Callable[[str], str]] = {"prose": _lines, "document": _lines, "moment": _moment}


def _mark(entry: Entry) -> str:
    plain = _PLAIN.get(entry.field.sort, _without_ends)
    return sha256(f"{entry.written}:{plain(entry.shown)}".encode()).hexdigest()[:16]
