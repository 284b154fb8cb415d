"""YAML is read as text, whatever shape it is written in."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from normata.core.documents.yaml_text import Limits, YamlError, load

LIMITS = Limits(levels=100, values=1_000, characters=10_000)

TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=8) | st.sampled_from(
    ["NO", "1.10", "2024-06-29", "true", "null", "~", "", "<<a", "- x", "a: b", "*a", "line\nline", "'"]
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT.filter(lambda key: key != "<<"), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(document=DOCUMENTS, style=st.sampled_from([None, "'", '"', "|"]), flow=st.booleans())
def test_what_is_written_is_read(document: Any, style: str | None, flow: bool) -> None:
    written = yaml.safe_dump(document, default_style=style, default_flow_style=flow, allow_unicode=True)
    assert load(written, LIMITS) == (document, [])


def test_a_list_that_stands_in_many_places_is_counted_in_each() -> None:
    text = f"a: &a [{'x, ' * 99}x]\nb: [{', '.join(['*a'] * 8)}]"
    document, _ = load(text, LIMITS)
    assert isinstance(document, dict)
    assert [len(item) for item in document["b"]] == [100] * 8
    with pytest.raises(YamlError, match="line 2, column 37: the document holds more than 1,000 values"):
        load(text.replace("*a]", "*a, *a, *a]"), LIMITS)


def test_a_text_that_stands_in_many_places_is_counted_in_each() -> None:
    text = f"a: &a {'x' * 990}\nb: [*a, *a, *a, *a, *a, *a, *a, *a, *a]"
    assert load(text, LIMITS)
    with pytest.raises(YamlError, match="line 2, column 41: the document holds more than 10,000 characters"):
        load(text.replace("*a]", "*a, *a]"), LIMITS)


def test_an_anchor_may_be_given_again() -> None:
    assert load("[&a x, *a, &a [y], *a, &a true, *a]", LIMITS)[0] == ["x", "x", ["y"], ["y"], True, True]


def test_an_alias_may_be_a_key() -> None:
    assert load("? &a true\n: &b x\n? *b\n: *a", LIMITS) == ({"true": "x", "x": "true"}, [])
