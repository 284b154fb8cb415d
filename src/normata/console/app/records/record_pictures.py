"""Pictures of records: the ratings of a vendor and of a risk in a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console import pictures
from normata.console.app.records.kinds import Kind
from normata.console.texts import text

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
        case "vendors" | "risks":
            return _risk(record)
    return None


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
