"""What recurs: tasks and reviews, when each is done, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from normata.core.schema.wire import wire_names
from normata.records.base import Restorable
from normata.records.kinds import EntitlementReview, RiskReview, Task
from normata.records.writing import writable
from normata.recurrences.dates import FREQUENCIES, Turn, day_of, next_turn

REVIEWS: tuple[type[Restorable], ...] = (EntitlementReview, RiskReview)
RECURRING: tuple[type[Restorable], ...] = (Task, *REVIEWS)

# What the next one has of its own: how this one was done, and what a review has noted.
_OWN = frozenset({"slug", "status", "deadline", "finished_at", "notes"})


def is_done(kind: type[Restorable], row: Mapping[str, Any]) -> bool:
    """Whether a task, or a review, is done."""
    return bool(row["status"] == "DONE") if kind is Task else row["finished_at"] is not None


def frequency_of(kind: type[Restorable], row: Mapping[str, Any], recurrence: Any) -> str | None:
    """How often a record recurs, one of `FREQUENCIES`; null if it does not. Other words are only words."""
    of_review = None if recurrence is None else recurrence.frequency
    found = row["frequency"] if kind is Task else of_review
    return found if found in FREQUENCIES else None


def turn_after(kind: type[Restorable], row: Mapping[str, Any], recurrence: Any, moment: str) -> tuple[Turn, int] | None:
    """When the next of a record is due, if this one is done at a moment, and the day of the month on which they are.

    ``recurrence`` is the stored one, null if there is none. The answer is null for a record that does not recur, has no
    deadline, or has had its next one.
    """
    if row["deadline"] is None or (recurrence is not None and recurrence.next_id is not None):
        return None
    day = day_of(row["deadline"], None if recurrence is None else recurrence.day)
    frequency = frequency_of(kind, row, recurrence)
    turn = next_turn(row["deadline"], frequency, day, datetime.fromisoformat(moment).date())
    return None if turn is None else (turn, day)


@cache
def copied(kind: type[Restorable]) -> Mapping[str, str]:
    """The columns that the next record has of the one before, with their names on the wire."""
    return {name: wire_names(kind)[name] for name in writable(kind) if name not in _OWN}
