"""The pictures of coverage over time, with markers of what happened. They are made as those of `pictures.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from normata.console.filters import day_text
from normata.console.pictures import LEVELS, Counts


class Happening(NamedTuple):
    """Something that happened at a moment: its kind is ``adoption`` or ``audit``. An empty ``href`` leads nowhere."""

    at: str
    kind: str
    label: str
    href: str = ""

    @property
    def words(self) -> str:
        """What happened, with its day."""
        return f"{day_text(self.at)}, {self.label}"


class Marker(NamedTuple):
    """A letter over a picture, at a place from 0 to 1, with what happened there."""

    place: float
    letter: str
    happenings: Sequence[Happening]

    @property
    def words(self) -> str:
        """What happened."""
        return "; ".join(one.words for one in self.happenings)

    @property
    def shape(self) -> str:
        """``pin`` for adoptions, ``pin square`` for audits alone."""
        return "pin square" if all(one.kind == "audit" for one in self.happenings) else "pin"

    @property
    def href(self) -> str:
        """Where it leads: to what happened, or of several to the legend."""
        return self.happenings[0].href if len(self.happenings) == 1 else f"#marker-{self.letter}"


_APART = 0.075  # of the width: on a phone just enough for a finger


def markers_of(happened: Sequence[tuple[float, Happening]]) -> list[Marker]:
    """What happened at places from 0 to 1, in order. What is too close together shares a letter, so these suffice."""
    found: list[Marker] = []
    for place, happening in happened:
        if found and place - found[-1].place < _APART:
            found[-1] = found[-1]._replace(happenings=[*found[-1].happenings, happening])
        else:
            found.append(Marker(place, chr(ord("A") + len(found)), [happening]))
    return found


_HIGH, _HEAD = 160, 30


def areas(
    name: str,
    about: str,
    points: Sequence[tuple[float, Counts]],
    labels: Sequence[tuple[float, str]],
    markers: Sequence[Marker] = (),
) -> Markup:
    """The counts by status at places from 0 to 1, stacked: what is full lies at the bottom. Markers stand above."""
    most = max(1, *(sum(counts[level] for level in LEVELS) for _, counts in points))
    below, areas = [0] * len(points), []
    for level in LEVELS:
        above = [low + counts[level] for low, (_, counts) in zip(below, points, strict=True)]
        edge, base = (
            [f"{1000 * x:.0f},{_HIGH - _HIGH * y / most:.1f}" for (x, _), y in zip(points, line, strict=True)]
            for line in (above, below)
        )
        areas.append(f'<polygon class="f {level}" points="{" ".join([*edge, *reversed(base)])}"/>')
        below = above
    top = _HEAD if markers else 0
    # Stretched to the width, while words and markers keep their size.
    stretched = f'width="100%" height="{_HIGH}" viewBox="0 0 1000 {_HIGH}" preserveAspectRatio="none"'
    ground = f'<line class="grid" x1="0" x2="100%" y1="{top + _HIGH}" y2="{top + _HIGH}"/>'
    parts = [f'<svg y="{top}" {stretched}>{"".join(areas)}</svg>', ground, *(_marked(one, top) for one in markers)]
    for x, words in labels:
        anchor = "" if x < 0.1 else "fin" if x > 0.9 else "mid"
        parts.append(f'<text class="{anchor}" x="{100 * x:.2f}%" y="{top + _HIGH + 16}">{escape(words)}</text>')
    role = "group" if any(marker.href for marker in markers) else "img"
    return Markup(  # noqa: S704 - numbers and our own classes; the words are escaped
        f'<svg class="fit chart" height="{top + _HIGH + 20}" role="{role}" aria-label="{escape(name)}">'
        f"<title>{escape(name)}</title><desc>{escape(about)}</desc>{''.join(parts)}</svg>"
    )


def _marked(marker: Marker, top: int) -> str:
    x = f"{100 * marker.place:.2f}%"
    corner = 4 if "square" in marker.shape else 9
    inside = (
        f"<title>{escape(marker.letter)}: {escape(marker.words)}</title>"
        f'<svg x="{x}" class="chart"><rect class="hit" x="-12" width="24" height="24"/>'
        f'<rect class="pin" x="-9" y="3" width="18" height="18" rx="{corner}"/>'
        f'<text class="mid" y="16">{marker.letter}</text></svg>'
        f'<line class="over" x1="{x}" x2="{x}" y1="21" y2="{top + _HIGH}"/>'
    )
    return f'<a href="{escape(marker.href)}">{inside}</a>' if marker.href else f"<g>{inside}</g>"


_LEAST_RANGE = 30


def sparkline(name: str, points: Sequence[tuple[float, int]]) -> Markup:
    """Percentages at places from 0 to 1, as a small line that ends in a dot, over a range that shows how they move."""
    shares = [share for _, share in points]
    lowest = min(*shares, max(*shares, _LEAST_RANGE) - _LEAST_RANGE)
    most = max(max(shares) - lowest, _LEAST_RANGE)
    found = [(3 + 94 * x, 26 - 22 * (share - lowest) / most) for x, share in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in found)
    x, y = found[-1]
    label = escape(name)
    return Markup(  # noqa: S704 - as above
        f'<svg class="full" width="100" height="30" role="img" aria-label="{label}"><title>{label}</title>'
        '<line class="grid" x1="0" x2="100" y1="29.5" y2="29.5"/>'
        f'<polyline class="s" points="{line}" stroke-width="1.5"/>'
        f'<circle class="f" cx="{x:.1f}" cy="{y:.1f}" r="3"/></svg>'
    )
