"""Bars, as SVG: no library, since all there is to draw is rectangles and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from benchmarks.speed.figures import Measured

_WIDTH, _LABELS, _NUMBERS = 860, 400, 90
_BAR, _GAP, _HEAD, _MARGIN = 18, 8, 34, 16
_FONT = 'font-family="system-ui, sans-serif" font-size="13"'
_OURS, _OTHERS = "#2f6f9f", "#8a8f98"


def chart(panels: Sequence[tuple[str, Mapping[str, Measured]]]) -> str:
    """A panel below the other: a title, and a bar for each contender, each panel with a scale of its own."""
    parts: list[str] = []
    y = _MARGIN
    for title, measured in panels:
        if not measured:
            continue
        parts.append(_words(_MARGIN, y + 16, title, weight="bold"))
        y += _HEAD
        most = max(each.per_second for each in measured.values())
        for each in sorted(measured.values(), key=lambda each: -each.per_second):
            parts.extend(_bar(y, each, each.per_second / most))
            y += _BAR + _GAP
        y += _GAP
    size = f'width="{_WIDTH}" height="{y + _MARGIN}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + _MARGIN}" {size} {_FONT} role="img">',
            f"<title>{escape(', '.join(title for title, _ in panels))}</title>",
            f'<rect {size} fill="#ffffff"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _bar(y: int, each: Measured, share: float) -> list[str]:
    width = max(1.0, share * (_WIDTH - _LABELS - _NUMBERS - _MARGIN))
    colour = _OURS if each.label.startswith("Normata") else _OTHERS
    return [
        _words(_LABELS - 8, y + 14, each.label, anchor="end"),
        f'<rect x="{_LABELS}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>',
        _words(_LABELS + width + 6, y + 14, f"{each.per_second:,.0f}"),
    ]


def _words(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="#1f2328">{escape(text)}</text>'
    )
