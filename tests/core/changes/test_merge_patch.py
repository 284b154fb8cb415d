"""Patches between JSON documents (RFC 7396)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from normata.core.changes.merge_patch import is_same, merge_patch, patch_between

# Without null within an object, which no patch can set.
_VALUES = some.booleans() | some.integers(-3, 3) | some.floats(-3, 3) | some.text(max_size=3)
_DOCUMENTS = some.recursive(
    _VALUES,
    lambda inner: (
        some.lists(inner | some.none(), max_size=3) | some.dictionaries(some.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_DOCUMENTS | some.none(), _DOCUMENTS)
def test_the_patch_makes_the_one_of_the_other(before: Any, after: Any) -> None:
    assert is_same(merge_patch(before, patch_between(before, after)), after)


@given(_DOCUMENTS)
def test_nothing_is_to_be_done_where_nothing_differs(document: Any) -> None:
    patch = patch_between(document, document)
    assert patch == ({} if isinstance(document, dict) else document)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(1, True, False), (1, 1.0, True), ([0], [False], False), ({"a": 1}, {"a": True}, False), (None, None, True)],
)
def test_true_is_not_one(one: Any, other: Any, same: bool) -> None:
    assert is_same(one, other) is same


def test_a_null_within_an_object_cannot_be_set() -> None:
    after = {"a": None}
    assert merge_patch({}, patch_between({}, after)) == {}
    assert merge_patch(after, patch_between(after, {"a": None, "b": 1})) == {"a": None, "b": 1}
