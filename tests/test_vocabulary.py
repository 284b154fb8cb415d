"""The words of the domain: natural order, folding for search, slugs and timestamps."""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from normata.vocabulary import fold, natural_key, new_id, parse_timestamp, search_text, slugify
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


# --- Timestamps

EARLIEST = datetime.fromisoformat("0001-01-01T00:00:00")
LATEST = datetime.fromisoformat("9999-12-31T23:59:59.999999")
offsets = st.integers(-(23 * 60 + 59), 23 * 60 + 59)


def _offset(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _wire(moment: datetime) -> str:
    """A naive UTC time as the wire has it, written out by hand."""
    return (
        f"{moment.year:04}-{moment.month:02}-{moment.day:02}T"
        f"{moment.hour:02}:{moment.minute:02}:{moment.second:02}.{moment.microsecond // 1000:03}Z"
    )


@given(st.datetimes(), offsets, st.integers(0, 9), st.sampled_from("Tt "))
@example(EARLIEST, 1, 0, "T")
@example(EARLIEST, -1, 0, "T")
@example(LATEST, -1, 3, "T")
@example(LATEST, 0, 6, "T")
def test_any_offset_becomes_utc(local: datetime, minutes: int, digits: int, separator: str) -> None:
    """To the millisecond; what would leave the years 1 to 9999 is refused."""
    fraction = f".{local.microsecond:06}000"[: digits + 1] if digits else ""
    kept = local.replace(microsecond=int((fraction[1:4] or "0").ljust(3, "0")) * 1000)
    text = f"{local.replace(microsecond=0).isoformat(separator)}{fraction}{_offset(minutes)}"
    try:
        expected = _wire(kept - timedelta(minutes=minutes))
    except OverflowError:
        with pytest.raises(ValueError, match="does not exist"):
            parse_timestamp(text)
    else:
        assert parse_timestamp(text) == expected


@given(st.datetimes())
def test_what_has_left_comes_back_the_same(moment: datetime) -> None:
    text = _wire(moment)
    assert parse_timestamp(text) == text


@given(st.datetimes(), st.datetimes())
def test_order_of_texts_is_order_of_times(left: datetime, right: datetime) -> None:
    texts = [parse_timestamp(f"{moment.isoformat(timespec='microseconds')}Z") for moment in (left, right)]
    if left <= right:
        assert texts[0] <= texts[1]


@given(st.dates())
def test_a_plain_date_is_its_midnight(day: date) -> None:
    assert parse_timestamp(day.isoformat()) == f"{day.isoformat()}T00:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("2026-11-20T09:14:03.12Z", "2026-11-20T09:14:03.120Z"),
        ("2026-11-20t09:14:03.1239999z", "2026-11-20T09:14:03.123Z"),
        ("2026-11-20 09:14:03-00:00", "2026-11-20T09:14:03.000Z"),
        ("2026-11-20T09:14:03.123456789012Z", "2026-11-20T09:14:03.123Z"),
        ("2024-02-29", "2024-02-29T00:00:00.000Z"),
        ("2024-02-29T23:30:00-00:30", "2024-03-01T00:00:00.000Z"),
        ("2026-01-01T00:00:00+14:00", "2025-12-31T10:00:00.000Z"),
        ("0001-01-01", "0001-01-01T00:00:00.000Z"),
        ("0001-01-01T01:00:00+01:00", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_timestamps(text: str, wire: str) -> None:
    assert parse_timestamp(text) == wire


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2026-02-30",
            "2025-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "2026-01-00",
            "0000-01-01",
        ),
        *("2026-01-01T25:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z"),
        *("2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+00:60", "2026-01-01T00:00:00-99:99"),
        *("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"),
    ],
)
def test_times_that_do_not_exist(text: str) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        parse_timestamp(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "now", "1e3", "1700000000", "20260101", "2026-1-1", "26-01-01", "12026-01-01", "-2026-01-01"),
        *("2026-01", "2026-W01-1", "2026-001", "01/02/2026", "2026-01-01T", "2026-01-01Z", "2026-01-01+01:00"),
        *("2026-01-01T00:00:00", "2026-01-01T00:00Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00,5Z"),
        *(
            "2026-01-01T00:00:00+0100",
            "2026-01-01T00:00:00+01",
            "2026-01-01T00:00:00+01:00:00",
            "2026-01-01T00:00:00 Z",
        ),
        *(" 2026-01-01", "2026-01-01 ", "2026-01-01\n", "2026-01-01T00:00:00Z\n", "2026-01-01\0"),
        *("\u0662\u0660\u0662\u0666-01-01", "\uff12026-01-01", "2026\u201301\u201301"),
    ],
)
def test_texts_that_are_no_timestamps(text: str) -> None:
    with pytest.raises(ValueError, match="must be an RFC 3339 date-time with an offset, or a plain date"):
        parse_timestamp(text)


# --- Identifiers


def test_new_ids_are_uuids_of_version_7_in_the_order_of_their_making() -> None:
    ids = [new_id() for _ in range(1_000)]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one) for one in ids)
