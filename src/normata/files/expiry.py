"""Files that nobody has attached to a record go after a day, and what the store has without a row goes as well.

Bytes without a row are those of files that have gone or were erased, and of uploads whose process has ended before the
row was written. Only what has not changed for a day is looked at, so no upload that is in progress is hit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence, Set
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import bindparam, delete, select
from sqlalchemy import text as sql_text

from normata.core.changes.jobs import DueJob, Job, JobType
from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of
from normata.core.db.database import Database
from normata.core.db.transaction import NO_ORGANIZATION, TenantScope, Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import sql_table
from normata.files.model import UNATTACHED, File
from normata.files.store import FileStore, Place, folder_of, place_of
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS

AFTER = timedelta(days=1)
AT_ONCE = 100  # files in one transaction
EVERY = timedelta(hours=1)  # that the store is looked through
_NAME = "file-store"


def _run(unit: UnitOfWork, job: DueJob) -> str | None:
    found = unit.rows(_EXPIRED, {"organization": job.owner, "before": _before(job.moment)})
    for row in found:
        unit.rows(_DELETE, {"file": row.id})
        unit.publish(Change("expire", File, row.organization_id, row.id, before=row._asdict()))
    return job.moment if len(found) == AT_ONCE else None


def _find(transaction: Transaction, organizations: Sequence[str], moment: str) -> list[str]:
    """The organizations among these with a file that was not attached in time."""
    return transaction.scalars(_ORGANIZATIONS, {"organizations": organizations, "before": _before(moment)})


def _before(moment: str) -> str:
    return format_timestamp(datetime.fromisoformat(moment) - AFTER)


UNATTACHED_FILES = JobType("unattached-files", _run, writes=(delete_of(File),), find=_find)


def cleaning(store: FileStore) -> JobType:
    """The job that removes from the store what has no row."""

    async def act(database: Database, job: DueJob) -> None:
        before = (datetime.fromisoformat(job.moment) - AFTER).timestamp()
        for place in await without_row(database, store, before):
            await asyncio.to_thread(store.remove, place)
        await asyncio.to_thread(store.remove_unfinished, before)

    def find(transaction: Transaction, _organizations: Sequence[str], _moment: str) -> list[str]:
        """There is one job for all organizations; once it exists, it repeats itself."""
        return [NO_ORGANIZATION] if transaction.row(_JOB) is None else []

    return JobType(_NAME, _next, find=find, act=act)


def _next(_unit: UnitOfWork, job: DueJob) -> str:
    return format_timestamp(datetime.fromisoformat(job.moment) + EVERY)


async def without_row(database: Database, store: FileStore, before: float) -> list[Place]:
    """Where the store has bytes that have no row, and have not changed since a time.

    Only in the folders of this database's organizations: others may be of a database that has the same store.
    """
    old = {one.place for one in await asyncio.to_thread(lambda: list(store.stored())) if one.changed < before}
    found: set[Place] = set()
    if old:
        async for organizations in _each_organization(database):
            folders = {folder_of(one) for one in organizations}
            mine = {place for place in old if place.folder in folders}
            if mine:
                work = partial(places, organizations=organizations)
                found |= mine - await database.read(work, TenantScope(readable=organizations), is_long=True)
    return sorted(found)


def places(transaction: Transaction, organizations: Sequence[str]) -> Set[Place]:
    """Where the files of organizations are, but for those that were erased."""
    return set(_places(transaction, organizations))


def _places(transaction: Transaction, organizations: Sequence[str]) -> Iterator[Place]:
    for row in transaction.stream(_ROWS, {"organizations": organizations}):
        yield place_of(row.organization_id, row.id, row.sha256)


async def _each_organization(database: Database) -> AsyncIterator[tuple[str, ...]]:
    last = ""
    while found := await database.look_up(NEXT_ORGANIZATIONS, last):
        organizations = tuple(str(row[0]) for row in found)
        yield organizations
        last = organizations[-1]


_TABLE, _JOB_TABLE = sql_table(File), sql_table(Job)
_HAS_EXPIRED = sql_text(UNATTACHED), _TABLE.c.created_at < bindparam("before", type_=_TABLE.c.created_at.type)
_EXPIRED = (
    select(*_TABLE.c)
    .where(_TABLE.c.organization_id == bindparam("organization"), *_HAS_EXPIRED)
    .order_by(_TABLE.c.created_at)
    .limit(AT_ONCE)
    .with_for_update()
)
_ORGANIZATIONS = (
    select(_TABLE.c.organization_id)
    .where(_TABLE.c.organization_id.in_(bindparam("organizations", expanding=True)), *_HAS_EXPIRED)
    .distinct()
)
_DELETE = delete(_TABLE).where(_TABLE.c.id == bindparam("file"))
_ROWS = select(_TABLE.c.organization_id, _TABLE.c.id, _TABLE.c.sha256).where(
    _TABLE.c.organization_id.in_(bindparam("organizations", expanding=True)), _TABLE.c.erased_at.is_(None)
)
_JOB = select(_JOB_TABLE.c.type).where(_JOB_TABLE.c.owner == NO_ORGANIZATION, _JOB_TABLE.c.type == _NAME)
