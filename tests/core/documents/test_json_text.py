"""The strict decoder takes what Python's takes, and what that passes over is found with its place."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normata.core.documents.json_text import Rules, StrictDecoder, flaws, mended, place

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)
RULES = Rules(levels=100, faulty=0)


def found(text: str, rules: Rules = RULES) -> list[tuple[str, str]]:
    return [(place(*flaw.steps), flaw.reason) for flaw in flaws(StrictDecoder().decode(text), rules)]


@settings(deadline=None)
@given(value=VALUES, change=st.text('{}[],:"\\u1aeE+-. ', max_size=2), data=st.data())
def test_it_takes_what_the_decoder_takes(value: Any, change: str, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    text = (text[:at] + change + text[at + data.draw(st.integers(0, 1)) :]).lstrip()
    wrong: list[object] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        wrong.extend(pairs[len(values) :])
        return values

    def fraction(number: str) -> float:
        wrong.extend([number] if math.isinf(float(number)) else [])
        return float(number)

    decoder = StrictDecoder()
    try:
        expected = json.JSONDecoder(object_pairs_hook=note, parse_float=fraction, parse_constant=wrong.append)
        expected_value, end = expected.raw_decode(text)
    except json.JSONDecodeError:
        with pytest.raises(json.JSONDecodeError):
            decoder.raw_decode(text)
        return
    decoded, decoded_end = decoder.raw_decode(text)
    assert decoded_end == end
    assert decoder.is_sound == (not wrong)
    if decoder.is_sound:
        assert decoded == expected_value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "a": 2, "a": 3}', [("/a", "is given twice")]),
        ('[{"a": {}}, {"a": [1, {"b": 1, "b": 1}]}]', [("/1/a/1/b", "is given twice")]),
        ('{"a": {"b": 1, "b": 1}, "c": 1, "c": 1}', [("/c", "is given twice"), ("/a/b", "is given twice")]),
        (
            '{"a": NaN, "b": [-Infinity]}',
            [("/a", "is NaN, which is no value of JSON"), ("/b/0", "is -Infinity, which is no value of JSON")],
        ),
        (
            "[1e308, 1e309, 0.1e-999, -1e400]",
            [("/1", "is a number that is too large: 1e309…"), ("/3", "is a number that is too large: -1e400…")],
        ),
        (f"[{'9' * 4_300}, -{'9' * 4_301}]", [("/1", f"is a number that is too large: -{'9' * 19}…")]),
        ('{"\\ud800": 1}', [("", "must not hold half of a surrogate pair")]),
    ],
)
def test_flaws(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


def test_exact_numbers_stay_text() -> None:
    assert StrictDecoder(exact_numbers=True).decode("[1.10, 1e999, NaN, 7]") == ["1.10", "1e999", "NaN", "7"]


def test_only_the_first_hundred_are_reported() -> None:
    assert len(found("[" + ",".join(["NaN"] * 1_000) + "]")) == 100


def test_what_is_too_deep_is_blamed_on_a_value_that_can_be_found() -> None:
    text = '{"a": [1, [[]]], "b": [[[]], [[]], [[[]]]]}'
    assert found(text, Rules(4, 1)) == [("/b", "is nested deeper than 3 levels")]
    assert found(text, Rules(3, 0)) == [("", "is nested deeper than 3 levels")]
    assert found(text, Rules(5, 1)) == []


def test_texts_with_unusable_characters() -> None:
    shared = ["x"]
    value: dict[str, Any] = {"a": ["", "ax", {"bx": 1, "c": "x"}], "b": shared, "c": shared, "x": {}}
    rules = Rules(9, 0, re.compile("x"), "must not hold x")
    assert [flaw.steps for flaw in flaws(value, rules)] == [(), ("a", 1), ("a", 2), ("a", 2, "c"), ("b", 0)]
    assert [flaw.steps for flaw in flaws("x", rules)] == [()]


def test_what_is_mended_has_no_flaws() -> None:
    value = StrictDecoder().decode('{"a": NaN, "b": "x\\ud800y", "\\udfff": 1, "c": [[[]], 2], "d": 1, "d": 2}')
    copy = mended(value, 3)
    assert copy == {"a": None, "b": "x?y", "?": 1, "c": [[None], 2], "d": 2}
    assert flaws(copy, Rules(3, 0)) == []
