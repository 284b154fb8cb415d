"""Filters of the templates that format values for people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote
from zoneinfo import ZoneInfo

from markupsafe import Markup

from normata.console.states import meaning
from normata.console.texts import has_text, text
from normata.events.history import FORMER_ACTIONS
from normata.records.archive.queries import KINDS

_MIDNIGHT = "00:00:00"
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


class Reader(NamedTuple):
    """The time zone and date format of whoever reads the page. A null format means day, month and year."""

    zone: tzinfo = UTC
    date_format: str | None = None


# From the person's preferences, or else from the browser's cookie.
READER: ContextVar[Reader] = ContextVar("reader", default=Reader())  # noqa: B039 - a Reader is immutable


def zone_of(name: str) -> tzinfo:
    """The time zone with this name, such as ``Europe/Berlin``; UTC if there is none."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ValueError, OSError):  # an unknown name, or that of a folder
        return UTC


def zone_name() -> str:
    """The name of the reader's time zone, such as ``Europe/Berlin``."""
    return str(READER.get().zone)


def day_of(at: str, zone: tzinfo) -> date:
    """The day of a timestamp in a zone. Midnight in UTC stands for a date without a time: the same day everywhere."""
    found = datetime.fromisoformat(at)
    return (found if at[11:19] == _MIDNIGHT else found.astimezone(zone)).date()


def as_local(at: str) -> datetime:
    """A timestamp in the reader's time zone."""
    return datetime.fromisoformat(at).astimezone(READER.get().zone)


def moment(at: str | None) -> Markup:
    """A timestamp to the minute, in the reader's time zone, with the UTC time as a tooltip; a dash for null."""
    if at is None:
        return Markup("&ndash;")
    return _time(at, moment_text(at))


def day(at: str) -> Markup:
    """The day of a timestamp, in the reader's time zone."""
    return _time(at, day_text(at))


def day_text(at: str) -> str:
    """A day as :func:`day` shows it, for places that cannot have markup."""
    return date_text(day_of(at, READER.get().zone))


def when(at: str) -> Markup:
    """A timestamp, as a day if it stands for a date without a time (midnight in UTC), else to the minute."""
    return day(at) if at[11:19] == _MIDNIGHT else moment(at)


def clock(at: str) -> Markup:
    """The time of day of a timestamp."""
    return _time(at, _clock_text(as_local(at)))


def moment_text(at: str) -> str:
    """A timestamp as :func:`moment` shows it, for places that cannot have markup."""
    local = as_local(at)
    between = " " if READER.get().date_format in ("YEAR_MONTH_DAY", "MONTH_DAY_YEAR") else ", "
    return f"{date_text(local)}{between}{_clock_text(local)}"


def date_text(at: date) -> str:
    """A date in the reader's format."""
    match READER.get().date_format:
        case "YEAR_MONTH_DAY":
            return f"{at:%Y-%m-%d}"
        case "MONTH_DAY_YEAR":
            return f"{at.month}/{at.day}/{at.year}"
    return f"{at.day} {at:%b} {at.year}"


def long_date(at: date, *, with_year: bool = True) -> str:
    """A date with its weekday, for a heading."""
    match READER.get().date_format:
        case "YEAR_MONTH_DAY":
            return f"{at:%A}, {at:%Y-%m-%d}"
        case "MONTH_DAY_YEAR":
            return f"{at:%A, %B} {at.day}" + (f", {at.year}" if with_year else "")
    return f"{at:%A}, {at.day} {at:%B}" + (f" {at.year}" if with_year else "")


def _clock_text(at: datetime) -> str:
    if READER.get().date_format == "MONTH_DAY_YEAR":
        return f"{at.hour % 12 or 12}:{at:%M} {'AM' if at.hour < 12 else 'PM'}"
    return f"{at:%H:%M}"


def _time(at: str, shown: str) -> Markup:
    return Markup('<time datetime="{}" title="{} {} UTC">{}</time>').format(at, at[:10], at[11:16], shown)


def words(token: str) -> str:
    """A token as words: ``IN_PROGRESS`` becomes ``In progress``, unless the texts have other words for it."""
    if has_text(f"token.{token}"):
        return text(f"token.{token}")
    return token.replace("_", " ").capitalize()


@lru_cache(maxsize=1_000)
def action_words(action: str) -> str:
    """The action of an event as words. Actions that were renamed get the present name."""
    return words(FORMER_ACTIONS.get(action, action))


def wire_words(name: str) -> str:
    """A name on the wire as words: ``nextReviewAt`` becomes ``Next review at``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("-", " ").replace("_", " ").capitalize()


def kind_words(array: str) -> str:
    """The title of a kind of rows by its name on the wire: ``auditItems`` becomes ``Findings``."""
    kind = KINDS.get(array)
    if kind is not None:
        return kind.plural().capitalize()
    return text(f"kind.{array}") if has_text(f"kind.{array}") else wire_words(array)


def kind_word(array: str) -> str:
    """The word for one row of a kind by its name on the wire: ``auditItems`` becomes ``Finding``."""
    kind = KINDS.get(array)
    if kind is not None:
        return kind.words().capitalize()
    key = f"kind.one.{array}"
    return upper_first(text(key)) if has_text(key) else wire_words(array)


def rows_in_words(array: str, count: int) -> str:
    """So many rows of a kind: ``3 findings``."""
    return f"{count:,} {lower_first(kind_word(array) if count == 1 else kind_words(array))}"


def upper_first(words: str) -> str:
    """Words that begin a sentence."""
    return words[:1].upper() + words[1:]


def lower_first(words: str) -> str:
    """Words within a sentence; an abbreviation stays as it is."""
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


def is_moment(value: object) -> bool:
    """Whether a value is a timestamp of the wire."""
    return isinstance(value, str) and _MOMENT.fullmatch(value) is not None


def as_bytes(size: int) -> str:
    """A number of bytes in words: ``184.3 kB``."""
    if size < 1_000:
        return f"{size} B"
    power = min(len(f"{size}") - 1, 14) // 3
    return f"{size / 1_000**power:.1f} {(' ', 'kB', 'MB', 'GB', 'TB')[power]}"


def thousands(number: float) -> str:
    """A number with separators of thousands."""
    return f"{number:,}"


def percent(part: int, whole: int) -> str:
    """``part`` of ``whole`` in percent; a dash if ``whole`` is 0."""
    return f"{whole_percent(part, whole)} %" if whole else "–"  # noqa: RUF001 - a dash, as in print


def whole_percent(part: int, whole: int) -> int:
    """``part`` of ``whole`` in percent. Only nothing is 0, and only everything is 100."""
    share = round(100 * part / whole) if whole else 0
    return min(max(share, 1), 99) if 0 < part < whole else share


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


def as_json(document: object) -> str:
    """A document as indented JSON."""
    return json.dumps(document, ensure_ascii=False, indent=2)


def initials(name: str) -> str:
    """The initials of a person's first and last name; ``?`` if there are none."""
    parts = [part for part in re.split(r"[\W_]+", name) if part]
    return "".join(part[0] for part in (parts[:1] + parts[1:][-1:])).upper() or "?"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "moment": moment,
    "day": day,
    "when": when,
    "long_date": long_date,
    "clock": clock,
    "words": words,
    "action_words": action_words,
    "wire_words": wire_words,
    "kind_word": kind_word,
    "bytes": as_bytes,
    "thousands": thousands,
    "percent": percent,
    "segment": segment,
    "json": as_json,
    "initials": initials,
    "meaning": meaning,
}
TESTS: Mapping[str, Callable[..., bool]] = {"moment": is_moment}
