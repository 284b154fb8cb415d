"""Reminders: who is responsible for a record is notified of its due date a week before, and on the day.

The days are those of UTC. Where the time of a date matters, as for the notification of a breach, the reminders come 24
and 4 hours before. A sent reminder is noted in the transaction that notifies the member. If the service was down, it
sends late reminders if they are still useful: the one before a date until its day, or the last hours, begin, and that
of the day until the next day ends. Older ones are not sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, and_, bindparam, insert, literal_column, select, union

from normata.core.changes.jobs import DueJob, JobType
from normata.core.changes.unit_of_work import UnitOfWork, insert_of
from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp, format_timestamp
from normata.core.schema.table import sql_table
from normata.core.schema.wire import columns
from normata.notifications.about_records import Reminded, Which
from normata.notifications.model import Reminder
from normata.records.due.queries import DueDate, all_due_dates, present
from normata.records.owners import somebody_owns

AT_ONCE = 200  # reminders of one date field in one transaction
_DAYS_BEFORE = 7
_DAYS_LATE = 1  # after the date, when a late reminder is still sent
_HOURS_BEFORE: Mapping[Which, int] = {"soon": 24, "now": 4}  # of dates whose time matters
_WHICH: tuple[Which, ...] = ("soon", "now")


def remind(unit: UnitOfWork, organization_id: str, moment: str) -> int:
    """Send the reminders of an organization that are due at a moment. Returns how many there were.

    There may be more where there were :data:`AT_ONCE` or more.
    """
    parameters = {"organizations": [organization_id], **_bounds(moment)}
    count = 0
    for date in all_due_dates():
        for which in _WHICH:
            for row in unit.rows(_rows(date, which), parameters):
                unit.rows(
                    _NOTE,
                    {
                        "organization_id": organization_id,
                        "kind": date.table.array,
                        "record_id": row.id,
                        "what": date.column,
                        "due_at": getattr(row, date.column),
                        "which": which,
                        "reminded_at": unit.moment,
                    },
                )
                found = row._asdict()
                unit.publish(
                    Reminded("remind", date.table, organization_id, row.id, found, found, what=date.column, which=which)
                )
                count += 1
    return count


def _run(unit: UnitOfWork, job: DueJob) -> str | None:
    return job.moment if remind(unit, job.owner, job.moment) >= AT_ONCE else None


def _find(transaction: Transaction, organizations: Sequence[str], moment: str) -> list[str]:
    """The organizations among these in which a reminder is due."""
    return transaction.scalars(_organizations(), {"organizations": organizations, **_bounds(moment)})


REMINDERS = JobType("reminders", _run, writes=(insert_of(Reminder),), find=_find)


def _bounds(moment: str) -> dict[str, str]:
    """The bounds of the due dates that need a reminder: from each, and before each; ``timed`` where times matter."""
    now = datetime.fromisoformat(moment)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)

    def day(number: int) -> str:
        return format_timestamp(today + timedelta(days=number))

    def hour(number: int) -> str:
        return format_timestamp(now + timedelta(hours=number))

    return {
        "soon_from": day(1),
        "soon_before": day(_DAYS_BEFORE + 1),
        "now_from": day(-_DAYS_LATE),
        "now_before": day(1),
        "timed_soon_from": hour(_HOURS_BEFORE["now"]),
        "timed_soon_before": hour(_HOURS_BEFORE["soon"]),
        "timed_now_from": day(-_DAYS_LATE),
        "timed_now_before": hour(_HOURS_BEFORE["now"]),
        **present(moment),
    }


def _is_due_for_reminder(date: DueDate, which: Which) -> ColumnElement[bool]:
    """The condition that a due date needs a reminder that has not been sent."""
    table, column = date.sql(), date.sql().c[date.column]
    bound = f"timed_{which}" if date.has_time else which
    noted = select(_REMINDER.c.which).where(
        _REMINDER.c.organization_id == table.c.organization_id,
        _REMINDER.c.kind == literal_column(f"'{date.table.array}'"),
        _REMINDER.c.record_id == table.c.id,
        _REMINDER.c.what == literal_column(f"'{date.column}'"),
        _REMINDER.c.due_at == column,
        _REMINDER.c.which == literal_column(f"'{which}'"),
    )
    return and_(
        date.is_open(),
        date.is_ahead(),
        table.c.organization_id.in_(bindparam("organizations", expanding=True)),
        column >= bindparam(f"{bound}_from", type_=UtcTimestamp()),
        column < bindparam(f"{bound}_before", type_=UtcTimestamp()),
        somebody_owns(date.table),
        ~noted.exists(),
    )


@cache
def _rows(date: DueDate, which: Which) -> Select[Any]:
    table = date.sql()
    return select(*columns(date.table)).where(_is_due_for_reminder(date, which)).order_by(table.c.id).limit(AT_ONCE)


@cache
def _organizations() -> CompoundSelect[Any]:
    """The organizations in which a reminder is due."""
    return union(
        *(
            select(date.sql().c.organization_id).where(_is_due_for_reminder(date, which))
            for date in all_due_dates()
            for which in _WHICH
        )
    )


_REMINDER = sql_table(Reminder)
_NOTE = insert(_REMINDER).values({column.name: bindparam(column.name, type_=column.type) for column in _REMINDER.c})
