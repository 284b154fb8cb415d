"""Moments of the demo: in working hours, between others or some days after them."""

from __future__ import annotations

from datetime import datetime, timedelta


def parsed(moment: str) -> datetime:
    return datetime.fromisoformat(moment)


def written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def between(start: str, end: str, part: float) -> str:
    """The moment at a fraction of the time from one moment to another, in working hours."""
    found = parsed(start) + (parsed(end) - parsed(start)) * part
    if found.date() != parsed(start).date():
        found = found.replace(hour=7 + found.hour % 9)
    return written(min(found, parsed(end)))


def day_after(start: str, days: int) -> str:
    """A moment in working hours, some days after another one."""
    found = parsed(start) + timedelta(days=days)
    weekend = max(found.weekday() - 4, 0)
    return written(found - timedelta(days=weekend) + timedelta(hours=3, minutes=7 * (days % 8)))
