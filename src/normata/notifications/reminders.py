"""Reminders: whoever answers for a record is told of a date of it a week before, and on its day.

The days are those of UTC. Every process of the service looks every minute. Whichever comes first notes what it reminds
of, in the transaction that tells the member, so that the others find nothing left. Where the service was down, it tells
later what is still worth knowing: of a day before a date as long as its day has not come, and of the day until the next
one ends. What was due before that is history.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, and_, bindparam, insert, literal_column, select, union

from normata.core.changes.periodic import repeat
from normata.core.changes.unit_of_work import Actor, Changes, UnitOfWork, insert_of
from normata.core.db.database import Database
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import UtcTimestamp, now
from normata.core.schema.table import sql_table
from normata.core.schema.wire import columns
from normata.identity.model import Membership
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.notifications.about_records import Reminded, Which
from normata.notifications.model import Reminder
from normata.records.due.queries import DueDate, due_dates

REMINDER_WRITES = (insert_of(Reminder),)

_ACTOR = Actor(command="reminders")
_PAUSE = 60.0  # seconds between two rounds
_AT_ONCE = 200  # reminders of one date in one transaction
_DAYS_BEFORE = 7
_DAYS_LATE = 1  # as long after its day somebody is still told of a date
_WHICH: tuple[Which, ...] = ("soon", "now")


class Reminders:
    """Reminds the members of all organizations, while the service runs."""

    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes

    async def remind_periodically(self) -> None:
        """Remind once a minute, until cancelled."""
        await repeat(lambda: self.remind(now()), pause=lambda: _PAUSE, failure="reminders_failed")

    async def remind(self, moment: str) -> int:
        """Tell whoever has to be told at a moment, in every organization. Returns how many reminders there were."""
        count = 0
        last = ""
        while organizations := await self._database.look_up(NEXT_ORGANIZATIONS, last):
            ids = [str(row.organization_id) for row in organizations]
            last = ids[-1]
            for organization_id in await self._with_reminders(ids, moment):
                count += await self._remind(organization_id, moment)
        return count

    async def _with_reminders(self, organizations: Sequence[str], moment: str) -> list[str]:
        """Those of these organizations where somebody has to be told something."""

        def work(transaction: Transaction) -> list[str]:
            return sorted(transaction.scalars(_organizations(), {"organizations": organizations, **_days(moment)}))

        return await self._database.read(work, TenantScope(readable=tuple(organizations)))

    async def _remind(self, organization_id: str, moment: str) -> int:
        scope = TenantScope(readable=(organization_id,), writable=(organization_id,))
        count = 0
        while found := await self._changes.make(
            lambda unit: remind(unit, organization_id, moment), actor=_ACTOR, scope=scope, writes=REMINDER_WRITES
        ):
            count += found
        return count


def remind(unit: UnitOfWork, organization_id: str, moment: str) -> int:
    """Tell members of an organization what they have to be told at a moment. Returns how many reminders there were.

    There may be more: ask again until there are none.
    """
    unit.lock(f"reminders of {organization_id}")  # of several processes one looks, and then the next
    parameters = {"organizations": [organization_id], **_days(moment)}
    count = 0
    for date in _reminded():
        for which in _WHICH:
            for row in unit.rows(_rows(date, which), parameters):
                unit.rows(
                    _NOTE,
                    {
                        "organization_id": organization_id,
                        "kind": date.kind.path,
                        "record_id": row.id,
                        "what": date.column,
                        "due_at": getattr(row, date.column),
                        "which": which,
                        "reminded_at": unit.moment,
                    },
                )
                found = row._asdict()
                unit.publish(
                    Reminded("remind", date.kind, organization_id, row.id, found, found, what=date.column, which=which)
                )
                count += 1
    return count


def _days(moment: str) -> dict[str, str]:
    """The bounds of the dates that somebody has to be told of: from each, and before each."""
    today = datetime.fromisoformat(moment).replace(hour=0, minute=0, second=0, microsecond=0)

    def day(number: int) -> str:
        return (today + timedelta(days=number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    return {
        "soon_from": day(1),
        "soon_before": day(_DAYS_BEFORE + 1),
        "now_from": day(-_DAYS_LATE),
        "now_before": day(1),
    }


@cache
def _reminded() -> tuple[DueDate, ...]:
    """The dates of kinds that somebody answers for."""
    return tuple(date for date in due_dates() if date.kind.responsible is not None)


def _is_due_for_reminder(date: DueDate, which: Which) -> ColumnElement[bool]:
    """Where somebody has to be told of a date, and has not been told."""
    table, column = date.kind.sql(), date.kind.sql().c[date.column]
    assert date.kind.responsible is not None  # noqa: S101 - narrows the type
    noted = select(_REMINDER.c.which).where(
        _REMINDER.c.organization_id == table.c.organization_id,
        _REMINDER.c.kind == literal_column(f"'{date.kind.path}'"),
        _REMINDER.c.record_id == table.c.id,
        _REMINDER.c.what == literal_column(f"'{date.column}'"),
        _REMINDER.c.due_at == column,
        _REMINDER.c.which == literal_column(f"'{which}'"),
    )
    return and_(
        date.is_open(),
        table.c.organization_id.in_(bindparam("organizations", expanding=True)),
        column >= bindparam(f"{which}_from", type_=UtcTimestamp()),
        column < bindparam(f"{which}_before", type_=UtcTimestamp()),
        table.c[date.kind.responsible].is_not(None),
        # Where the member was removed, whoever takes the record over is told.
        table.c[date.kind.responsible].not_in(_REMOVED),
        ~noted.exists(),
    )


@cache
def _rows(date: DueDate, which: Which) -> Select[Any]:
    table = date.kind.sql()
    return select(*columns(date.kind)).where(_is_due_for_reminder(date, which)).order_by(table.c.id).limit(_AT_ONCE)


@cache
def _organizations() -> CompoundSelect[Any]:
    """The organizations in which somebody has to be told something."""
    return union(
        *(
            select(date.kind.sql().c.organization_id).where(_is_due_for_reminder(date, which))
            for date in _reminded()
            for which in _WHICH
        )
    )


_REMINDER = sql_table(Reminder)
_MEMBER = sql_table(Membership)
_REMOVED = select(_MEMBER.c.id).where(
    _MEMBER.c.organization_id.in_(bindparam("organizations", expanding=True)), _MEMBER.c.removed_at.is_not(None)
)
_NOTE = insert(_REMINDER).values({column.name: bindparam(column.name, type_=column.type) for column in _REMINDER.c})
