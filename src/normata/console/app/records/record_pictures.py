"""Pictures of records: the timeline of an incident, and the ratings of a vendor and of a risk in a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console import pictures
from normata.console.app.records.kinds import Kind, label
from normata.console.app.records.notice import time_between
from normata.console.filters import moment, moment_text
from normata.console.texts import text

# The moments of an incident, each with the tone that it begins: unnoticed, open, resolved.
_MOMENTS: Mapping[str, str] = {
    "occurredAt": "none",
    "detectedAt": "partial",
    "authorityNotifiedAt": "",
    "dataSubjectsNotifiedAt": "",
    "resolvedAt": "full",
    "closedAt": "full",
}
_LEAST = 2  # moments that a timeline needs
_SCALE = range(1, 6)


class RecordPicture(NamedTuple):
    """A picture with its name, and the same content as a table: head and rows.

    The table is beside a picture that is not wide.
    """

    name: str
    drawn: Markup
    heads: Sequence[str]
    rows: Sequence[Sequence[str | Markup]]
    is_wide: bool


def picture_of(kind: Kind, record: Mapping[str, Any]) -> RecordPicture | None:
    """The picture of a record; null if its kind has none, or if values are missing."""
    match kind.path:
        case "incidents":
            return _course(record)
        case "vendors" | "risks":
            return _risk(record)
    return None


# --- Incidents


def _course(record: Mapping[str, Any]) -> RecordPicture | None:
    """The timeline of an incident, with equal steps: the first hours matter most, and would not fit a scale."""
    found = sorted((record[name], name) for name in _MOMENTS if record[name])
    if len(found) < _LEAST:
        return None
    step = 1 / (len(found) - 1)
    points, spans, tone = [], [], "none"
    for number, (_, name) in enumerate(found):
        tone = _MOMENTS[name] or tone
        points.append(pictures.Point(number * step, text(f"incident.moment.{name}"), tone))
        if number + 1 < len(found):
            spans.append((number * step, (number + 1) * step, tone))
    rows: list[list[str | Markup]] = []
    for number, (when, name) in enumerate(found):
        rows.append([label(name), moment(when), time_between(found[number - 1][0], when) if number else ""])
    about = ", ".join(f"{label(name)} {moment_text(when)}" for when, name in found)
    heads = [text("incident.what"), text("app.due.when"), text("incident.after")]
    name = text("incident.course")
    return RecordPicture(name, pictures.timeline(name, about, points, spans), heads, rows, is_wide=True)


# --- Vendors and risks


def _risk(record: Mapping[str, Any]) -> RecordPicture | None:
    """The probability and impact of a risk, or of relying on a vendor: before treatment, after it, and as planned."""
    cells: dict[tuple[int, int], str] = {}
    rows: list[list[str]] = []
    for state in ("inherent", "residual", "target"):
        probability, impact = record.get(f"{state}Probability"), record.get(f"{state}Impact")
        if probability is None or impact is None:
            continue
        words = text(f"vendor.{state}")
        place = _place(probability), _place(impact)
        if place[0] in _SCALE and place[1] in _SCALE:
            cells[place] = text("vendor.both") if place in cells else words
        rows.append([words, f"{probability:g}", f"{impact:g}", f"{probability * impact:g}"])
    if not cells:
        return None
    name, across, up = text("vendor.risk"), text("vendor.probability"), text("vendor.impact")
    about = "; ".join(f"{state}: {across} {x}, {up} {y}" for state, x, y, _ in rows)
    drawn = pictures.square(name=name, about=about, across=across, up=up, cells=cells)
    heads = [text("vendor.state"), across, up, text("vendor.product")]
    return RecordPicture(name, drawn, heads, rows, is_wide=False)


def _place(value: float) -> int:
    return int(value + 0.5)
