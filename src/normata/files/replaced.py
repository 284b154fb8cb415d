"""Erases the bytes of files that records have given up, after the time for which their organization keeps these.

A file that any record still has, archived or not, is not among them. Hash and events stay, and an event of the file
records the erasure. What the store still has then is removed with other bytes without a row, see
:mod:`normata.files.expiry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, func, select, update
from sqlalchemy import text as sql_text

from normata.core.changes.erased_content import erase_content, erasing_content_of
from normata.core.changes.jobs import DueJob, JobType
from normata.core.changes.unit_of_work import UnitOfWork, update_of
from normata.core.db.database import Database
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import Table, sql_table, tables
from normata.files.attaching import columns_with_files
from normata.files.model import DETACHED, File
from normata.identity.model import Organization

AT_ONCE = 200  # files in one transaction


Detached = dict[str, str]  # when files were given up, by their ids


async def _act(database: Database, job: DueJob) -> Detached:
    """The files that were given up long enough ago, and that no record has.

    Records may be many, so this is no part of the change. Of those that another record still has, it is noted that they
    are not given up.
    """
    scope = TenantScope(readable=(job.owner,), writable=(job.owner,))
    found, held = await database.read(lambda transaction: _look(transaction, job), scope, is_long=True)
    if held:
        await database.write(lambda transaction: transaction.execute_many(_HOLD, _keys(held)), scope)
    return found


def _look(transaction: Transaction, job: DueJob) -> tuple[Detached, Detached]:
    days = transaction.scalar(_DAYS, {"organization": job.owner})
    if days is None:
        return {}, {}
    rows = transaction.rows(_ENDED, {"organization": job.owner, "before": _before(job.moment, days)})
    detached = {row.id: row.detached_at for row in rows}
    held = _held(transaction, job.owner).intersection(detached) if detached else set()
    return {one: detached[one] for one in detached if one not in held}, {one: detached[one] for one in sorted(held)}


def _keys(detached: Detached) -> list[dict[str, str]]:
    return [{"file": file_id, "detached": moment} for file_id, moment in detached.items()]


def _held(transaction: Transaction, organization_id: str) -> set[str]:
    """The files that the records of an organization have. Their history only tells what they had."""
    found: set[str] = set()
    for table in (one for one in tables() if one.published):
        for name in columns_with_files(table):
            for row in transaction.stream(_lists(table, name), {"organization": organization_id}):
                found.update(row[0] or ())
    return found


def _run(unit: UnitOfWork, job: DueJob) -> str | None:
    found: Detached = job.outcome
    for key in _keys(found):
        # Unless a record has got it, or given it up, meanwhile.
        if unit.row(_LOCK, key) is not None:
            erase_content(unit, File, key["file"])
    return job.moment if found else None


def _find(transaction: Transaction, organizations: Sequence[str], moment: str) -> list[str]:
    """The organizations among these with a file that was given up long enough ago."""
    rows = transaction.rows(_OLDEST, {"organizations": organizations})
    return [row.id for row in rows if row.oldest is not None and row.oldest < _before(moment, row.days)]


def _before(moment: str, days: int) -> str:
    return format_timestamp(datetime.fromisoformat(moment) - timedelta(days=days))


_WRITES = (update_of(File, "detached_at"), erasing_content_of(File))
REPLACED_FILES = JobType("replaced-files", _run, writes=_WRITES, find=_find, act=_act)

_TABLE, _ORGANIZATION = sql_table(File), sql_table(Organization)
_DETACHED = sql_text(DETACHED)
_DAYS = select(_ORGANIZATION.c.keep_replaced_files_days).where(_ORGANIZATION.c.id == bindparam("organization"))
_ENDED = (
    select(_TABLE.c.id, _TABLE.c.detached_at)
    .where(
        _TABLE.c.organization_id == bindparam("organization"),
        _DETACHED,
        _TABLE.c.detached_at < bindparam("before", type_=_TABLE.c.detached_at.type),
    )
    .order_by(_TABLE.c.detached_at)
    .limit(AT_ONCE)
)
_OLDEST = select(
    _ORGANIZATION.c.id,
    _ORGANIZATION.c.keep_replaced_files_days.label("days"),
    select(func.min(_TABLE.c.detached_at))
    .where(_TABLE.c.organization_id == _ORGANIZATION.c.id, _DETACHED)
    .scalar_subquery()
    .label("oldest"),
).where(
    _ORGANIZATION.c.id.in_(bindparam("organizations", expanding=True)),
    _ORGANIZATION.c.keep_replaced_files_days.is_not(None),
)
_UNCHANGED = (
    _TABLE.c.id == bindparam("file"),
    _DETACHED,
    _TABLE.c.detached_at == bindparam("detached", type_=_TABLE.c.detached_at.type),
)
_LOCK = select(_TABLE.c.id).where(*_UNCHANGED).with_for_update()
_HOLD = update(_TABLE).where(*_UNCHANGED).values(detached_at=None)


@cache
def _lists(table: type[Table], name: str) -> Select[Any]:
    columns = sql_table(table).c
    return select(columns[name]).where(columns.organization_id == bindparam("organization"))
