"""Timestamps: every way to write one becomes the one way in which they leave."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from normata.core.schema.fields import parse_timestamp

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
    with pytest.raises(ValueError, match="must be a date, such as 2026-11-20, or an RFC 3339 date-time with an offset"):
        parse_timestamp(text)
