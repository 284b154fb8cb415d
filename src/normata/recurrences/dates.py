"""When recurring work is due next."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import MAXYEAR, date, datetime, timedelta
from functools import partial
from typing import NamedTuple

from normata.core.db.types import format_timestamp

DAYS = {"DAILY": 1, "WEEKLY": 7}
MONTHS = {"MONTHLY": 1, "QUARTERLY": 3, "HALF_YEARLY": 6, "YEARLY": 12}
FREQUENCIES = (*DAYS, *MONTHS)

MAX_SKIPPED = 366  # that are named: a year of days


class Turn(NamedTuple):
    """When work is due again. ``skipped`` dates have passed meanwhile; the last `MAX_SKIPPED` of them are named."""

    deadline: str
    skipped: tuple[str, ...] = ()
    skipped_count: int = 0


def day_of(deadline: str, known: int | None) -> int:
    """The day of the month on which work is due that is due at ``deadline`` this time.

    ``known`` is that of the first deadline, which stays as long as this one follows from it: after 31 January comes
    28 February, and then 31 March. A deadline that somebody has moved to another day is a first one itself.
    """
    found = datetime.fromisoformat(deadline)
    follows = known is not None and found.day == min(known, monthrange(found.year, found.month)[1])
    return known if known is not None and follows else found.day


def next_turn(deadline: str, frequency: str | None, day: int, today: date) -> Turn | None:
    """When work with this deadline is due again: at the first of its dates that comes after it and after ``today``.

    ``day`` is that of :func:`day_of`. Null if the frequency is none of `FREQUENCIES`, or the calendar ends before.
    """
    start = datetime.fromisoformat(deadline)
    late = max(today, start.date())
    if frequency in DAYS:
        step = DAYS[frequency]
        count = (late - start.date()).days // step + 1
        at: Callable[[int], datetime | None] = partial(_days_later, start, step)
    elif frequency in MONTHS:
        step = MONTHS[frequency]
        count = max((late.year - start.year) * 12 + late.month - start.month, step) // step
        at = partial(_months_later, start, step, day)
        found = at(count)
        if found is not None and found.date() <= late:
            count += 1
    else:
        return None
    found = at(count)
    if found is None:
        return None
    skipped = [at(number) for number in range(max(1, count - MAX_SKIPPED), count)]
    return Turn(format_timestamp(found), tuple(format_timestamp(one) for one in skipped if one is not None), count - 1)


def _days_later(start: datetime, step: int, count: int) -> datetime | None:
    try:
        return start + timedelta(days=step * count)
    except OverflowError:
        return None


def _months_later(start: datetime, step: int, day: int, count: int) -> datetime | None:
    year, month = divmod(start.year * 12 + start.month - 1 + step * count, 12)
    if year > MAXYEAR:
        return None
    return start.replace(year=year, month=month + 1, day=min(day, monthrange(year, month + 1)[1]))
