"""Texts as the domain compares, sorts, searches and addresses them."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from normata.core.schema.table import new_id
from normata.core.schema.text import fold, natural_key, search_text, slugify
from tests.listing import natural

# --- Natural order

identifiers = st.text("0123456789.-_:aAbBzÉéß ", max_size=12) | st.from_regex(r"[A-C]\.[0-9]{1,20}", fullmatch=True)


@given(identifiers, identifiers)
@example("A.5.2", "A.5.10")
@example("A.5.02", "A.5.2")
@example("9" * 99, "1" + "0" * 99)
@example("9" * 998, "1" + "0" * 998)
@example("", "0")
@example("a", "a1")
@example("a-1", "a1")
@example("1:", "1")
def test_keys_have_the_natural_order(left: str, right: str) -> None:
    keys, values = (natural_key(left), natural_key(right)), (natural(left), natural(right))
    assert (keys[0] < keys[1]) == (values[0] < values[1])
    assert (keys[0] == keys[1]) == (values[0] == values[1])


@given(st.lists(st.integers(0, 10**30), unique=True))
def test_numbers_sort_by_value(numbers: list[int]) -> None:
    names = [f"AC-{number}" for number in numbers]
    assert sorted(names, key=natural_key) == [f"AC-{number}" for number in sorted(numbers)]


@pytest.mark.parametrize(
    "ordered",
    [
        ["A.5", "A.5.1", "A.5.2", "A.5.10", "A.8.1", "A.10.1", "B.1"],
        ["AC-1", "AC-2", "AC-2(1)", "AC-2(3)", "AC-2(12)", "AC-10"],
        ["GV.OC-01", "GV.OC-2", "GV.OC-03", "GV.RM-01", "ID.AM-01"],
        ["2.0", "10", "v1", "v1.1", "v2"],
        ["1.9.1", "1.10", "1.10.0", "1.10.1"],
        ["straße 2", "STRASSE 10", "strasse 11"],
    ],
)
def test_natural_order_of_real_identifiers(ordered: list[str]) -> None:
    backwards = ordered[::-1]
    assert sorted(backwards, key=natural_key) == ordered


# --- Folding


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Straße", "STRASSE"),
        ("straße", "STRA\u1e9eE"),
        ("É", "e\u0301"),
        ("ÉCOLE", "école"),
        ("İ", "i\u0307"),
        ("ΟΔΟΣ", "οδος"),
        ("ὈΔΥΣΣΕΎΣ", "Ὀδυσσεύς"),
        ("\uff21\uff11", "a1"),
        ("\ufb01ne", "FINE"),
        ("ЁЛКА", "ёлка"),
        ("a\u00a0b", "a b"),
    ],
)
def test_fold_makes_equals_equal(left: str, right: str) -> None:
    assert fold(left) == fold(right)


@pytest.mark.parametrize(("left", "right"), [("e", "é"), ("ss", "s"), ("a", "b"), ("%", "_"), ("\\", "/"), ("İ", "i")])
def test_fold_keeps_different_apart(left: str, right: str) -> None:
    assert fold(left) != fold(right)


@given(st.text())
def test_folding_twice_changes_nothing(value: str) -> None:
    assert fold(fold(value)) == fold(value)


@given(st.text())
def test_fold_does_not_care_how_a_character_is_put_together(value: str) -> None:
    assert fold(unicodedata.normalize("NFD", value)) == fold(unicodedata.normalize("NFC", value)) == fold(value)


@given(st.lists(st.none() | st.text(max_size=20), max_size=5))
def test_search_text_has_every_part(parts: list[str | None]) -> None:
    """On a line of its own, so that no word is made of the end of one part and the beginning of the next."""
    text = search_text(*parts)
    assert all(word in text for part in parts if part for word in fold(part).split())
    assert search_text("ab", None, "", "cd") == "ab\ncd"


# --- Slugs


@pytest.mark.parametrize(
    ("parts", "slug"),
    [
        (("Access Control",), "access-control"),
        (("A.5.2", "Roles & duties"), "a-5-2-roles-duties"),
        (("  --Été à la mer!  ",), "ete-a-la-mer"),
        (("Straße",), "strasse"),
        (("\uff21\uff22",), "ab"),
        (("日本",), "untitled"),
        (("",), "untitled"),
        (("---",), "untitled"),
        (("x" * 79 + " y",), "x" * 79),
        (("x" * 100,), "x" * 80),
    ],
)
def test_slugs(parts: tuple[str, ...], slug: str) -> None:
    assert slugify(*parts) == slug


@given(st.text(max_size=200))
def test_every_slug_is_well_formed(value: str) -> None:
    slug = slugify(value)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
    assert len(slug) <= 80
    assert slugify(slug) == slug


# --- Identifiers


def test_new_ids_are_uuids_of_version_7_in_the_order_of_their_making() -> None:
    ids = [new_id() for _ in range(1_000)]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one) for one in ids)
