"""The walk through a JSON text agrees with Python's decoder, and tells what that passes over."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normata.core.documents.json_text import Flaw, flaws, levels, place, texts_with

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


def walk(text: str, deepest: int = 100, **options: Any) -> tuple[list[Flaw], int]:
    return flaws(text, 0, deepest=deepest, position=lambda offset: f"column {offset + 1}", **options)


@settings(deadline=None)
@given(
    value=VALUES, indent=st.sampled_from([None, 1]), change=st.text('{}[],:"\\u1aeE+-. ', max_size=2), data=st.data()
)
def test_it_takes_what_the_decoder_takes(value: Any, indent: int | None, change: str, data: st.DataObject) -> None:
    text = json.dumps(value, indent=indent)
    at = data.draw(st.integers(0, len(text)))
    text = (text[:at] + change + text[at + data.draw(st.integers(0, 1)) :]).lstrip()
    repeated: list[bool] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        repeated.append(len(dict(pairs)) < len(pairs))

    try:
        _, end = json.JSONDecoder(object_pairs_hook=note).raw_decode(text)
    except json.JSONDecodeError:
        with pytest.raises(json.JSONDecodeError):
            walk(text)
    else:
        found, found_end = walk(text, numbers=False)
        assert found_end == end
        assert bool(found) == any(repeated)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "a": 2, "a": 3}', [("/a", "column 2 and in column 10"), ("/a", "column 2 and in column 18")]),
        ('[{"a": {}}, {"a": [1, {"b": 1, "b": 1}]}]', [("/1/a/1/b", "column 24 and in column 32")]),
        ('{"a": NaN, "b": [-Infinity]}', [("/a", "is NaN"), ("/b/0", "is -Infinity")]),
        ("[1e308, 1e309, 0.1e-999, -1e400]", [("/1", "too large: 1e309…"), ("/3", "too large: -1e400…")]),
        (f"[{'9' * 4_300}, -{'9' * 4_301}]", [("/1", f"too large: -{'9' * 19}…")]),
        ('{"\\ud800": NaN}', [("/\ufffd", "is NaN")]),
    ],
)
def test_flaws(text: str, expected: list[tuple[str, str]]) -> None:
    found, end = walk(text)
    assert end == len(text)
    assert [place(*flaw.steps) for flaw in found] == [where for where, _ in expected]
    assert all(part in flaw.reason for flaw, (_, part) in zip(found, expected, strict=True))


def test_only_the_first_hundred_are_told() -> None:
    text = "{" + ", ".join(['"a": 1'] * 1_000) + "}"
    found, end = walk(text)
    assert (len(found), end) == (100, len(text))


def test_no_place_is_worded_that_is_not_told() -> None:
    """To word a place takes a look at all that stands before it."""
    text = "{" + ", ".join(['"a": 1'] * 1_000) + "}"
    worded: list[int] = []

    def position(offset: int) -> str:
        worded.append(offset)
        return str(offset)

    flaws(text, 0, deepest=10, position=position)
    assert len(worded) == 200


@pytest.mark.parametrize("depth", [4, 5, 100_000])
def test_the_walk_ends_where_it_is_too_deep(depth: int) -> None:
    text = '{"a": [1, ' + "[" * depth
    if depth == 4:
        text += "]" * depth + "]}"
        assert walk(text, 6) == ([], len(text))
    else:
        expected = Flaw(("a",), "is nested deeper than 5 levels: in column 15")
        assert walk(text, 6, steps=1) == ([expected], 14)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 0), ("[]", 1), ('{"a": 1}', 1), ("[[], [[]]]", 3), ("[[[[]]]]", 4), ("[[[[[[]]]]]]", 4)],
)
def test_levels_are_counted_up_to_one_more_than_the_limit(text: str, expected: int) -> None:
    assert levels(json.loads(text), 3) == expected


def test_texts_with_characters() -> None:
    shared = ["x"]
    value: dict[str, Any] = {"a": ["", "ax", {"bx": 1, "c": "x"}], "b": shared, "c": shared, "x": {}}
    assert list(texts_with(re.compile("x"), value)) == [(), ("a", 1), ("a", 2), ("a", 2, "c"), ("b", 0)]
    assert list(texts_with(re.compile("x"), "x")) == [()]
