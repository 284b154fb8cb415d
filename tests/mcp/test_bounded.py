"""Answers of a bounded size, and how the rest is read."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.schema.wire import encode
from normata.mcp.bounded import MOST, NoSuchPlace, bounded, part_of

LONG: list[Any] = [
    "x" * 200_000,
    ["word"] * 50_000,
    {"text": "é" * 100_000, "other": 1},
    {"items": [{"name": f"Number {number}", "text": "y" * 5_000} for number in range(500)]},
    {"a/b~c": ["z" * 50_000, ["w" * 50_000]]},
]


@pytest.mark.parametrize("content", LONG, ids=range(len(LONG)))
def test_everything_can_be_read_in_parts(content: Any) -> None:
    """Whatever was cut is there again from where the cut says."""
    shown, cuts = bounded(content)
    assert len(encode(shown)) <= MOST
    assert cuts
    for cut in cuts[:20]:
        place = part_of(content, cut.at, 0)
        assert (cut.start, cut.of) == (0, len(place))
        rebuilt, start, parts = place[:0], 0, 0
        while start < len(place) and parts < 200:
            part, further = bounded(part_of(content, cut.at, start), at=cut.at, start=start)
            own = [one for one in further if one.at == cut.at]
            shown_of = own[0].shown if own else len(part)
            assert shown_of > 0
            rebuilt += place[start : start + shown_of]
            start, parts = start + shown_of, parts + 1
        assert rebuilt == place[:start]


@pytest.mark.parametrize("at", ["/nothing", "/items/9", "/items/-1", "/items/x", "items", "/items/0/name/0"])
def test_a_place_that_is_not_there(at: str) -> None:
    with pytest.raises(NoSuchPlace):
        part_of({"items": [{"name": "One"}]}, at, 1)


def test_what_is_short_is_whole() -> None:
    content = {"items": [1, 2], "next": None}
    assert bounded(content) == (content, ())


def test_a_document_of_any_shape_is_bounded() -> None:
    deep: Any = "deep"
    for _ in range(60):
        deep = [deep, {"more": deep}] if len(encode(deep)) < 100_000 else [deep]
    wide = {f"field {number}": number for number in range(20_000)}
    for content in (deep, wide):
        shown, cuts = bounded(content)
        assert len(encode(shown)) <= MOST
        assert cuts
