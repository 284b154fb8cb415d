"""When recurring work is due next, against a brute force that looks at day after day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normata.core.db.types import format_timestamp
from normata.recurrences.dates import DAYS, FREQUENCIES, MAX_SKIPPED, MONTHS, Turn, day_of, next_turn

_DEADLINES = st.datetimes(datetime(1999, 1, 1), datetime(2040, 12, 31)).map(  # noqa: DTZ001 - aware below
    lambda found: found.replace(microsecond=found.microsecond // 1000 * 1000, tzinfo=UTC)
)


def _last(day: date) -> int:
    """The last day of the month of a day."""
    return next(one for one in (day + timedelta(days) for days in count()) if (one + timedelta(1)).day == 1).day


def _dates(start: date, frequency: str, day: int, until: date) -> list[date]:
    """The dates after the first one, up to the first after ``until``."""
    found = []
    for one in (start + timedelta(days) for days in count(1)):
        if frequency in DAYS:
            fits = (one - start).days % DAYS[frequency] == 0
        else:
            months = (one.year - start.year) * 12 + one.month - start.month
            fits = months > 0 and months % MONTHS[frequency] == 0 and one.day == min(day, _last(one))
        if fits:
            found.append(one)
            if one > until:
                return found
    raise AssertionError


@given(_DEADLINES, st.sampled_from(FREQUENCIES), st.integers(-400, 800), st.integers(0, 3))
def test_it_is_the_first_of_its_dates_after_today(deadline: datetime, frequency: str, late: int, days_cut: int) -> None:
    # The first deadline may have been on a later day of the month than this one, if this is the last of its month.
    is_last = deadline.day == _last(deadline.date())
    day = min(31, deadline.day + days_cut) if is_last else deadline.day
    today = deadline.date() + timedelta(late)
    expected = _dates(deadline.date(), frequency, day, max(today, deadline.date()))
    turn = next_turn(format_timestamp(deadline), frequency, day, today)
    assert turn is not None
    found = [datetime.fromisoformat(one) for one in (*turn.skipped, turn.deadline)]
    assert [one.date() for one in found] == expected[-MAX_SKIPPED - 1 :]
    assert turn.skipped_count == len(expected) - 1
    assert {one.timetz() for one in found} == {deadline.timetz()}
    if frequency in MONTHS:
        assert day_of(turn.deadline, day) == day


@given(st.dates(date(2000, 1, 1), date(2030, 1, 1)), st.sampled_from(sorted(MONTHS)))
def test_the_day_of_the_first_deadline_is_kept_along_the_chain(first: date, frequency: str) -> None:
    deadline, day = f"{first.isoformat()}T00:00:00.000Z", None
    expected = _dates(first, frequency, first.day, first + timedelta(365 * 6))[:6]
    for one in expected:
        day = day_of(deadline, day)
        turn = next_turn(deadline, frequency, day, first)
        assert turn == Turn(f"{one.isoformat()}T00:00:00.000Z")
        deadline = turn.deadline


@pytest.mark.parametrize(
    ("deadline", "known", "day"),
    [
        ("2026-02-28", None, 28),
        ("2026-02-28", 31, 31),
        ("2026-02-27", 31, 27),  # moved by hand
        ("2026-04-30", 31, 31),
        ("2028-02-28", 29, 28),
    ],
)
def test_a_deadline_on_another_day_is_a_first_one(deadline: str, known: int | None, day: int) -> None:
    assert day_of(f"{deadline}T16:00:00.000Z", known) == day


@pytest.mark.parametrize("frequency", [None, "", "monthly", "Every second Tuesday", "HOURLY"])
def test_other_words_are_only_words(frequency: str | None) -> None:
    assert next_turn("2026-01-31T00:00:00.000Z", frequency, 31, date(2026, 1, 1)) is None


@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_the_calendar_ends(frequency: str) -> None:
    assert next_turn("9999-12-31T00:00:00.000Z", frequency, 31, date(2026, 1, 1)) is None


def test_thousands_of_missed_days_are_counted_and_the_last_are_named() -> None:
    turn = next_turn("0001-01-01T08:00:00.000Z", "DAILY", 1, date(2026, 11, 27))
    assert turn is not None
    assert (turn.deadline, turn.skipped_count) == ("2026-11-28T08:00:00.000Z", date(2026, 11, 27).toordinal() - 1)
    assert (len(turn.skipped), turn.skipped[-1]) == (MAX_SKIPPED, "2026-11-27T08:00:00.000Z")
