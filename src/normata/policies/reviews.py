"""When the next review of a policy is due: after the same interval as this one."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from datetime import MAXYEAR, datetime
from typing import Any

from normata.core.db.types import format_timestamp

_USUAL = 12  # months


def reviewed(policy: Any, moment: str) -> Mapping[str, Any]:
    """What a policy has once it was reviewed at a moment.

    The interval is the one between its last review and the next; a year if there was none before. A policy without a
    date for its next review gets none.
    """
    found = {"last_reviewed_at": moment}
    if policy.next_review_at is None:
        return found
    next_at, last = datetime.fromisoformat(policy.next_review_at), policy.last_reviewed_at
    months = _USUAL if last is None else _months_between(datetime.fromisoformat(last), next_at)
    return found | {"next_review_at": _later(datetime.fromisoformat(moment), max(months, 1), next_at)}


def _months_between(start: datetime, end: datetime) -> int:
    """The months between two dates, to the nearest one."""
    return round((end.date() - start.date()).days / 30.44)


def _later(start: datetime, months: int, like: datetime) -> str:
    """The day so many months later, at the time of day of another moment."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if year > MAXYEAR:
        return format_timestamp(like)
    day = min(start.day, monthrange(year, month + 1)[1])
    return format_timestamp(like.replace(year=year, month=month + 1, day=day))
