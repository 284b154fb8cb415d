"""The pictures of the console: SVG, with words for people who cannot see it, and without styles.

Colours are classes of the style sheet (``full``, ``h3``), so that they follow light, dark and print. Positions are
attributes, because the policy allows no inline style. A picture with links is a group; any other is an image. Those of
coverage over time are in :mod:`normata.console.series_pictures`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from normata.console.texts import counted, text

Counts = Mapping[str, int]

LEVELS = ("full", "partial", "none")
_SHAPES = {"full": "●", "partial": "◐", "none": "○", "excluded": "⊘"}
_TONES = {"FULL": "full", "PARTIAL": "partial", "NONE": "none"}
_HEATS = 5


def tone(level: str | None) -> str:
    """The class of a status; ``out`` for null."""
    return _TONES.get(level or "", "out")


def summary(counts: Counts) -> str:
    """Counts by status as words: ``42 full, 46 partial, 5 none``."""
    return text("app.bar", full=counts["full"], partial=counts["partial"], none=counts["none"])


def meter(counts: Counts, size: str = "", name: str = "") -> Markup:
    """A bar of the counts by status. ``size`` is ``thick``, ``thin`` or empty."""
    label = f"{name}: {summary(counts)}" if name else summary(counts)
    return stacked([(level, counts[level]) for level in LEVELS], label, size)


def stacked(parts: Sequence[tuple[str, int]], label: str, size: str = "") -> Markup:
    """A bar of parts, each with its class and its number; an empty class leaves its part of the bar empty."""
    whole = sum(number for _, number in parts)
    drawn, left = [], 0.0
    for level, number in parts:
        width = 100 * number / whole if whole else 0
        if width and level:
            drawn.append(f'<rect class="f {level}" x="{left:.2f}%" width="{width:.2f}%" height="100%"/>')
            if left:
                drawn.append(f'<line class="gap" x1="{left:.2f}%" x2="{left:.2f}%" y1="0" y2="100%"/>')
        left += width
    return Markup(  # noqa: S704 - numbers and our own classes; the label is escaped
        f'<svg class="meter {size}" role="img" aria-label="{escape(label)}"><title>{escape(label)}</title>'
        f"{''.join(drawn)}</svg>"
    )


def legend(counts: Counts, more: Sequence[tuple[str, int]] = ()) -> Markup:
    """The counts of a meter with their shapes. ``more`` are further pairs of words and number."""
    lines = [
        f'<li class="{level}"><i aria-hidden="true">{_SHAPES[level]}</i><b>{counts[level]:,}</b> '
        f"{escape(text(f'status.{level.upper()}').lower())}</li>"
        for level in LEVELS
    ]
    lines += [f"<li><b>{number:,}</b> {escape(words)}</li>" for words, number in more]
    return Markup(f'<ul class="legend">{"".join(lines)}</ul>')  # noqa: S704 - as above


def keyed(parts: Sequence[tuple[str, str, int]]) -> Markup:
    """The key of a stacked bar: the class, the words and the number of each part, with the shape of its class."""
    shapes = {**_SHAPES, "out": _SHAPES["excluded"]}
    lines = [
        f'<li class="{level or "dim"}"><i aria-hidden="true">{shapes.get(level, "")}</i>'
        f"<b>{number:,}</b> {escape(words)}</li>"
        for level, words, number in parts
    ]
    return Markup(f'<ul class="legend">{"".join(lines)}</ul>')  # noqa: S704 - as above


def growth(before: float, after: float, name: str) -> Markup:
    """A bar of a share now, and of its growth, both in percent."""
    label = escape(name)
    return Markup(  # noqa: S704 - as above
        f'<svg class="meter thin" role="img" aria-label="{label}"><title>{label}</title>'
        f'<rect class="f out" width="{before:.2f}%" height="100%"/>'
        f'<rect class="f full" x="{before:.2f}%" width="{max(after - before, 0):.2f}%" height="100%"/></svg>'
    )


class Axis(NamedTuple):
    """A row or a column of a matrix."""

    id: str
    label: str
    name: str


_CELL, _ROW, _LEFT, _WIDE_LABEL = 46, 34, 232, 7


def matrix(
    *,
    name: str,
    about: str,
    rows: Sequence[Axis],
    columns: Sequence[Axis],
    counts: Mapping[tuple[str, str], int],
    href: Callable[[str, str], str],
    chosen: tuple[str, str] | None = None,
) -> Markup:
    """The counts of pairs of row and column, as shaded cells. A cell with a count links to ``href(row, column)``."""
    most = max((counts.get((row.id, column.id), 0) for row in rows for column in columns), default=0)
    is_long = any(len(column.label) > _WIDE_LABEL for column in columns)
    top = 84 if is_long else 26
    width, height = _LEFT + _CELL * len(columns), top + _ROW * len(rows)
    parts = []
    for number, column in enumerate(columns):
        x, y = _LEFT + _CELL * number + _CELL / 2, top - 8
        turned = f' transform="rotate(-50 {x:.0f} {y})"' if is_long else ' class="mid"'
        parts.append(
            f'<text x="{x:.0f}" y="{y}"{turned}><title>{escape(column.name)}</title>{escape(column.label)}</text>'
        )
    for number, row in enumerate(rows):
        y = top + _ROW * number
        label = f"{row.label} {row.name}" if row.name != row.label else row.label
        parts.append(
            f'<text x="0" y="{y + 21}"><title>{escape(label)}</title>{escape(_short(label, _MOST_LETTERS))}</text>'
        )
        for place, column in enumerate(columns):
            count = counts.get((row.id, column.id), 0)
            x = _LEFT + _CELL * place
            box = f'x="{x + 1}" y="{y + 1}" width="{_CELL - 2}" height="{_ROW - 2}" rx="4"'
            if not count:
                parts.append(f'<rect class="h0" {box}/>')
                continue
            heat = max(1, -(-_HEATS * count // most))
            mark = " chosen" if chosen == (row.id, column.id) else ""
            words = escape(counted("picture.pair", count, row=row.label, column=column.label))
            parts.append(
                f'<a href="{escape(href(row.id, column.id))}"{" aria-current=true" if mark else ""}>'
                f'<title>{words}</title><rect class="h{heat}{mark}" {box}/>'
                f'<text class="mid" x="{x + _CELL // 2}" y="{y + 21}">{count}</text></a>'
            )
    return _group(name, about, f"0 0 {width} {height}", "".join(parts), width)


class Node(NamedTuple):
    """A control in a neighbourhood: ``level`` is its status, ``tag`` the identifier of its framework."""

    id: str
    label: str
    name: str
    tag: str
    level: str | None


class Tie(NamedTuple):
    """A line between two controls: ``is_full`` for a full match, ``is_live`` if coverage follows over it."""

    source: str
    target: str
    is_full: bool
    is_live: bool = False


_NODE_WIDTH, _NODE_HEIGHT, _STEP_X, _STEP_Y = 176, 46, 224, 58
_MOST_LETTERS = 32
_NAME_LETTERS = 26


def neighbourhood(
    *,
    name: str,
    about: str,
    heads: Sequence[str],
    layers: Sequence[Sequence[Node]],
    ties: Sequence[Tie],
    me: str,
    href: Callable[[str], str],
) -> Markup:
    """Controls in layers from left to right, with lines between them. ``me`` is the id of the one in the middle."""
    rows = max(map(len, layers), default=1)
    height = rows * _STEP_Y
    places: dict[tuple[int, str], tuple[float, float]] = {}
    for layer, nodes in enumerate(layers):
        above = (rows - len(nodes)) * _STEP_Y / 2
        for number, node in enumerate(nodes):
            places[layer, node.id] = (layer * _STEP_X, above + number * _STEP_Y)
    parts = [
        f'<text x="{layer * _STEP_X}" y="-10">{escape(head)}</text>'
        for layer, head in enumerate(heads)
        if layers[layer]
    ]
    for tie in ties:
        for layer in range(len(layers) - 1):
            if (layer, tie.source) in places and (layer + 1, tie.target) in places:
                (x1, y1), (x2, y2) = places[layer, tie.source], places[layer + 1, tie.target]
                x1, y1, y2 = x1 + _NODE_WIDTH, y1 + _NODE_HEIGHT / 2, y2 + _NODE_HEIGHT / 2
                middle = (x1 + x2) / 2
                kind = f"tie{'' if tie.is_full else ' part'}{' live' if tie.is_live else ''}"
                parts.append(
                    f'<path class="{kind}" d="M{x1:g} {y1:g}C{middle:g} {y1:g} {middle:g} {y2:g} {x2 - 6:g} {y2:g}"/>'
                    f'<path class="{"f full" if tie.is_live else "arrow"}" d="M{x2 - 7:g} {y2 - 4:g} {x2:g} {y2:g} '
                    f'{x2 - 7:g} {y2 + 4:g}z"/>'
                )
    for layer, nodes in enumerate(layers):
        for node in nodes:
            x, y = places[layer, node.id]
            status = text(f"status.{node.level}") if node.level else text("status.not_assessed")
            parts.append(
                f'<a href="{escape(href(node.id))}"><title>{escape(f"{node.label} {node.name}: {status}")}</title>'
                f'<rect class="node{" me" if node.id == me else ""}" x="{x:g}" y="{y:g}" width="{_NODE_WIDTH}" '
                f'height="{_NODE_HEIGHT}" rx="8"/>'
                f'<circle class="f {tone(node.level)}" cx="{x + 15:g}" cy="{y + 17:g}" r="4.5"/>'
                f'<text class="t" x="{x + 26:g}" y="{y + 21:g}">{escape(_short(node.label, 13))}</text>'
                f'<text class="fin" x="{x + _NODE_WIDTH - 10:g}" y="{y + 21:g}">{escape(_short(node.tag, 9))}</text>'
                f'<text x="{x + 11:g}" y="{y + 38:g}">{escape(_short(node.name, _NAME_LETTERS))}</text></a>'
            )
    width = (len(layers) - 1) * _STEP_X + _NODE_WIDTH
    return _group(name, about, f"-2 -26 {width + 4} {height + 22}", "".join(parts), width)


class Span(NamedTuple):
    """A time from one moment to another, with its label and its tone."""

    label: str
    start: str
    end: str
    tone: str


_LEAST = 189  # of the width of a span, so that its words fit
_WIDE = 568  # of the narrowest column beside another one


def spans(*, name: str, about: str, parts: Sequence[Span], ends: Sequence[str]) -> Markup:
    """Times one after the other, each as wide as it is long, but wide enough for its words; ``ends`` are the starts."""
    times = [datetime.fromisoformat(one.end) - datetime.fromisoformat(one.start) for one in parts]
    whole = sum(one.total_seconds() for one in times) or 1
    wide = max(_WIDE, _LEAST * len(parts))
    room = wide - _LEAST * len(parts)
    drawn, left = [f'<line class="grid" x1="0" x2="{wide}" y1="52" y2="52"/>'], 0.0
    for part, time, begins in zip(parts, times, ends, strict=True):
        width = _LEAST + room * time.total_seconds() / whole
        drawn.append(
            f'<rect class="f {part.tone}" x="{left:.1f}" y="40" width="{max(width - 4, 1):.1f}" height="24" rx="4"/>'
            f'<text class="t" x="{left + 4:.1f}" y="30">{escape(part.label)}</text>'
            f'<text x="{left:.1f}" y="82">{escape(begins)}</text>'
        )
        left += width
    return Markup(  # noqa: S704 - as above
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}"><svg viewBox="0 16 {wide} 70"'
        f' width="{wide}" class="fit-to" role="img" aria-label="{escape(name)}"><title>{escape(name)}</title>'
        f"<desc>{escape(about)}</desc>{''.join(drawn)}</svg></div>"
    )


def clock(*, name: str, about: str, share: float, tone: str, label: str, ends: tuple[str, str]) -> Markup:
    """How much of a time has passed, in percent, with a label there; ``ends`` are the words at its two ends."""
    at = min(max(share, 0), 100)
    anchor = "" if at < 20 else "fin" if at > 80 else "mid"
    return Markup(  # noqa: S704 - as above
        f'<svg class="fit" height="72" role="img" aria-label="{escape(name)}"><title>{escape(name)}</title>'
        f'<desc>{escape(about)}</desc><rect class="f out" y="28" width="100%" height="16" rx="8"/>'
        f'<rect class="f {tone}" y="28" width="{at:.2f}%" height="16" rx="8"/>'
        f'<text class="{anchor}" x="{at:.2f}%" y="16">{escape(label)}</text>'
        f'<text x="0" y="64">{escape(ends[0])}</text><text class="fin" x="100%" y="64">{escape(ends[1])}</text></svg>'
    )


def square(
    *,
    name: str,
    about: str,
    across: str,
    up: str,
    cells: Mapping[tuple[int, int], int | str],
    href: Callable[[int, int], str] | None = None,
    tones: Mapping[tuple[int, int], str] | None = None,
    signs: Mapping[tuple[int, int], str] | None = None,
    above: Container[tuple[int, int]] = (),
    chosen: tuple[int, int] | None = None,
    size: int = 5,
    width: int = 280,
) -> Markup:
    """A matrix of two values from 1 to ``size``, with counts or words in its cells.

    A cell that is not empty links to ``href`` of its two values, if ``href`` is not null. Without ``tones`` of the
    cells, they are the redder the larger the product of the values. ``signs`` are shapes in their corners, for people
    who cannot tell tones apart. A line goes around the cells that are ``above`` something, and one may be ``chosen``.
    """
    cell, parts = 56, []
    for y in range(size, 0, -1):
        parts.append(f'<text class="fin" x="22" y="{(size - y) * cell + 34}">{y}</text>')
        for x in range(1, size + 1):
            left, top = 30 + (x - 1) * cell, (size - y) * cell
            share = x * y / size**2
            kind = "none" if share >= 0.6 else "partial" if share >= 0.24 else "full"
            kind = tones[x, y] if tones else kind
            side = f'width="{cell - 2}" height="{cell - 2}" rx="4"'
            mark = " chosen" if chosen == (x, y) else ""
            box = f'<rect class="cell {kind}{mark}" x="{left + 1}" y="{top + 1}" {side}/>'
            if signs:
                box += f'<text class="sign {kind}" x="{left + 6}" y="{top + 14}">{signs[x, y]}</text>'
            inside = cells.get((x, y), 0)
            if not inside:
                parts.append(box)
                continue
            words = escape(text("picture.square", across=across, x=x, up=up, y=y, count=inside))
            mark = (
                f"<title>{words}</title>{box}"
                f'<text class="cnt {kind}" x="{left + cell // 2}" y="{top + cell // 2 + 5}">{escape(inside)}</text>'
            )
            parts.append(f'<a href="{escape(href(x, y))}">{mark}</a>' if href else f"<g>{mark}</g>")
    parts.append(_edges(above, size, cell))
    bottom = size * cell
    parts += [
        f'<text class="mid" x="{30 + (x - 1) * cell + cell // 2}" y="{bottom + 18}">{x}</text>'
        for x in range(1, size + 1)
    ]
    parts.append(f'<text class="mid" x="{30 + bottom // 2}" y="{bottom + 38}">{escape(across)}</text>')
    parts.append(
        f'<text class="mid" transform="rotate(-90 4 {bottom // 2})" x="4" y="{bottom // 2}">{escape(up)}</text>'
    )
    return _group(name, about, f"-8 0 {bottom + 40} {bottom + 44}", "".join(parts), width, shrinks=True)


def _edges(above: Container[tuple[int, int]], size: int, cell: int) -> str:
    """The line between the cells that are above something and those that are not."""
    lines = []
    for y in range(1, size + 1):
        for x in range(1, size + 1):
            left, top = 30 + (x - 1) * cell, (size - y) * cell
            if x > 1 and ((x, y) in above) != ((x - 1, y) in above):
                lines.append(f"M{left} {top}v{cell}")
            if y > 1 and ((x, y) in above) != ((x, y - 1) in above):
                lines.append(f"M{left} {top + cell}h{cell}")
    return f'<path class="appetite" d="{"".join(lines)}"/>' if lines else ""


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _group(name: str, about: str, box: str, inner: str, width: float, *, shrinks: bool = False) -> Markup:
    """A picture with links. Where it is wider than the page it scrolls, or ``shrinks``."""
    look = "fit-to shrinks" if shrinks else "fit-to"
    return Markup(  # noqa: S704 - the callers have escaped everything else
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(text("picture.of", name=name))}">'
        f'<svg viewBox="{box}" width="{width:g}" class="{look}" role="group" aria-label="{escape(name)}">'
        f"<title>{escape(name)}</title><desc>{escape(about)}</desc>{inner}</svg></div>"
    )


PICTURES: Mapping[str, Callable[..., Any]] = {
    "meter": meter,
    "legend": legend,
    "growth": growth,
    "keyed": keyed,
    "stacked": stacked,
    "matrix": matrix,
    "neighbourhood": neighbourhood,
    "spans": spans,
    "square": square,
    "tone": tone,
}
