"""Forgetting: a job removes rows that have expired or ended, a few at a time. No event or proof depends on them.

It is one job for the whole instance, because most rows belong to users. Each read and each removal has only the users,
or the organizations, of the current step in scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, bindparam, delete, literal, or_, select
from sqlalchemy.sql.dml import ReturningDelete

from normata.core.changes.jobs import DueJob, Job, JobType
from normata.core.changes.unit_of_work import UnitOfWork, delete_of
from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import NO_ORGANIZATION, TenantScope, Transaction
from normata.core.db.types import format_timestamp, text
from normata.core.schema.table import Table, sql_table
from normata.identity.model import AccessToken, Invitation
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.identity.sign_in_model import Session, SignInLink
from normata.notifications.model import Notification, OutgoingMail
from normata.settings import Settings
from normata.vendors.link_model import VendorLink

NAME = "retention"
EVERY = timedelta(hours=6)
AT_ONCE = 200  # rows in one transaction
STEPS = 100  # transactions in one job, so that jobs of others get a turn
_PAUSE = 0.02  # seconds between two transactions, for other writers
_USERS = 500  # users at a time

Days = Literal["forget_mail", "forget_notifications", "forget_sessions", "forget_tokens"]  # names of settings
Count = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A table whose rows are forgotten ``days`` after the first of the moments ``since``."""

    table: type[Table]
    days: Days
    owner: Literal["user_id", "organization_id"]
    since: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the table."""
        return str(self.table.__tablename__)

    def scope(self, owners: Sequence[str]) -> TenantScope:
        """The tenant scope with the rows of these owners."""
        if self.owner == "user_id":
            return TenantScope(users=tuple(owners))
        return TenantScope(readable=tuple(owners), writable=tuple(owners))

    def is_over(self) -> ColumnElement[bool]:
        """The condition that a row may be forgotten, by parameters ``owners`` and ``before``."""
        columns = sql_table(self.table).c
        moments = (columns[name] < bindparam("before", type_=columns[name].type) for name in self.since)
        return columns[self.owner].in_(bindparam("owners", expanding=True)) & or_(*moments)


FORGOTTEN = (
    Forgotten(Notification, "forget_notifications", "organization_id", ("read_at",)),
    Forgotten(OutgoingMail, "forget_mail", "organization_id", ("ended_at",)),
    Forgotten(Invitation, "forget_tokens", "organization_id", ("accepted_at", "revoked_at", "expires_at")),
    Forgotten(VendorLink, "forget_tokens", "organization_id", ("revoked_at", "expires_at")),
    Forgotten(Session, "forget_sessions", "user_id", ("ended_at", "expires_at")),
    Forgotten(AccessToken, "forget_tokens", "user_id", ("revoked_at", "expires_at")),
    Forgotten(SignInLink, "forget_tokens", "user_id", ("used_at", "expires_at")),
)
FORGETTING_WRITES = tuple(delete_of(one.table) for one in FORGOTTEN)


def retention(settings: Settings, count: Count = lambda _table, _rows: None) -> JobType:
    """The job that forgets rows by the settings. ``count`` gets the table and the number of forgotten rows."""
    wanted = {one: days for one in FORGOTTEN if (days := getattr(settings, one.days))}

    async def act(database: Database, job: DueJob) -> bool:
        return await _forget(database, wanted, job.moment, count)

    def find(transaction: Transaction, _organizations: Sequence[str], _moment: str) -> list[str]:
        """There is one job for all organizations; once it exists, it repeats itself."""
        return [NO_ORGANIZATION] if wanted and transaction.row(_JOB) is None else []

    return JobType(NAME, _next, find=find, act=act)


def _next(_unit: UnitOfWork, job: DueJob) -> str:
    """The time of the next run: immediately if this one has ended early."""
    if job.outcome:
        return job.moment
    return format_timestamp(datetime.fromisoformat(job.moment) + EVERY)


async def _forget(database: Database, wanted: dict[Forgotten, int], moment: str, count: Count) -> bool:
    """Forget the rows that are over at a moment, in a limited number of steps. Returns whether there may be more."""
    steps = 0
    for one, days in wanted.items():
        before = format_timestamp(datetime.fromisoformat(moment) - timedelta(days=days))
        async for owners in _owners(database, one):
            while True:
                removed = await _step(database, one, owners, before)
                if removed:
                    count(one.name, removed)
                    await asyncio.sleep(_PAUSE)
                    steps += 1
                if steps >= STEPS:
                    return True
                if removed < AT_ONCE:
                    break
    return False


async def _step(database: Database, one: Forgotten, owners: Sequence[str], before: str) -> int:
    """Forget some rows of these owners, and return how many. A read finds them first, so no writer waits for that."""
    scope = one.scope(owners)
    found = await database.read(
        lambda transaction: transaction.scalars(_FIND[one], {"owners": owners, "before": before}), scope, is_long=True
    )
    if not found:
        return 0
    # With the condition again, because a row may have changed since.
    parameters = {"owners": owners, "before": before, "ids": found}
    return len(await database.write(lambda transaction: transaction.rows(_REMOVE[one], parameters), scope))


async def _owners(database: Database, one: Forgotten) -> AsyncIterator[tuple[str, ...]]:
    """All users, or all organizations, in steps."""
    lookup = NEXT_USERS if one.owner == "user_id" else NEXT_ORGANIZATIONS
    last = ""
    while found := await database.look_up(lookup, last):
        owners = tuple(str(row[0]) for row in found)
        yield owners
        last = owners[-1]


def _next_select(after: str, *, source: str, number: str) -> str:
    columns = f"{number}, one.id" if number else "one.id"
    from_each = f"{source} CROSS JOIN LATERAL" if source else ""
    return (
        f"SELECT {columns} AS user_id FROM {from_each}"  # noqa: S608 - built from constants
        f" (SELECT id FROM user_account WHERE id > {after} ORDER BY id LIMIT {_USERS}) AS one"
        f" ORDER BY {columns}"
    )


# The next user ids after one, in order, like `NEXT_ORGANIZATIONS`.
NEXT_USERS = Lookup(name="normata_next_users", arguments=("after",), columns={"user_id": text()}, select=_next_select)


def _find(one: Forgotten) -> Select[Any]:
    return select(sql_table(one.table).c.id).where(one.is_over()).limit(literal(AT_ONCE, literal_execute=True))


def _remove(one: Forgotten) -> ReturningDelete[Any]:
    table = sql_table(one.table)
    return delete(table).where(table.c.id.in_(bindparam("ids", expanding=True)), one.is_over()).returning(table.c.id)


_FIND = {one: _find(one) for one in FORGOTTEN}
_REMOVE = {one: _remove(one) for one in FORGOTTEN}
_JOB_TABLE = sql_table(Job)
_JOB = select(_JOB_TABLE.c.type).where(_JOB_TABLE.c.owner == NO_ORGANIZATION, _JOB_TABLE.c.type == NAME)
