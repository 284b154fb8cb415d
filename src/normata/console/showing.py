"""How values are shown to people, as filters of the templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

_MIDNIGHT = "T00:00:00.000Z"


def moment(at: str) -> str:
    """A timestamp of the wire as people read it, in UTC: a plain date where it is one."""
    if at.endswith(_MIDNIGHT):
        return day(at)
    return datetime.fromisoformat(at).strftime("%-d %b %Y, %H:%M UTC")


def day(at: str) -> str:
    """The date of a timestamp."""
    return datetime.fromisoformat(at).strftime("%-d %b %Y")


def words(token: str) -> str:
    """A token of an enum as words: ``IN_PROGRESS`` becomes `In progress`."""
    return token.replace("_", " ").capitalize()


def thousands(number: float) -> str:
    """A number with its thousands apart."""
    return f"{number:,}"


def percent(part: int, whole: int) -> str:
    """``part`` of ``whole``; neither nothing nor everything is rounded to."""
    if not whole:
        return "–"  # noqa: RUF001 - a dash, as in print
    share = round(100 * part / whole)
    if 0 < part < whole:
        share = min(max(share, 1), 99)
    return f"{share} %"


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


FILTERS: Mapping[str, Callable[..., Any]] = {
    "moment": moment,
    "day": day,
    "words": words,
    "thousands": thousands,
    "percent": percent,
    "segment": segment,
}
