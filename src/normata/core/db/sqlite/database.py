"""SQLite: the embedded database, one file."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, create_engine, event, exc, make_url
from sqlalchemy.pool import NullPool
from typing_extensions import override

from normata.core.db.batching import ENDING
from normata.core.db.database import BadDatabaseUrl, Database
from normata.core.db.lookup import Lookup
from normata.core.db.monitoring import Monitor
from normata.core.db.security import Security
from normata.core.db.sqlite import schema, trigrams
from normata.core.db.sqlite.connection import File, begin
from normata.core.db.sqlite.dry_runs import DryRuns
from normata.core.db.sqlite.lookup_cache import LookupCache
from normata.core.db.sqlite.reader import Overdue, Reader
from normata.core.db.sqlite.transaction import SQLiteTransaction
from normata.core.db.sqlite.writer import Writer
from normata.core.db.statements import statements_for
from normata.core.db.transaction import NO_TENANT, ConstraintViolation, T, TenantScope, Transaction, Work
from normata.errors import Unavailable
from normata.settings import Settings

_PROBED_FOR = 3.0  # seconds for which a successful write test counts

# Seconds after which a read has to make way for others. Nearly all take less; the others start again in the second
# lane, which costs them as much.
_SHORT = 0.05
_LONG_READERS = 2  # more would wait for Python's lock, which sqlite3 releases and takes again for each row


def last_backup(database: Path) -> Path:
    """The path of the empty file next to a database whose time is that of the last backup."""
    return Path(f"{database}.last-backup")


class SQLite(Database):
    """SQLite on a few threads: for short reads, for long ones, for plans, for writes, and for dry runs.

    Under WAL no read waits for a lock. A read that is not known to be long begins in the lane of the short ones. If it
    turns out to be long, it is interrupted, and begins again in the other lane.
    """

    embedded = True

    def __init__(self, settings: Settings, *, monitor: Monitor, create: bool = False) -> None:
        self.path = _path(settings.database_url)
        self._timeout = settings.database_timeout
        self._file = File(self.path, self._timeout, create=create)
        # For migrations only.
        self._engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool, hide_parameters=True)
        event.listen(self._engine, "begin", self._begin)
        self._statements = statements_for(self._engine.dialect)
        reading = self._file, self._statements, self._timeout
        self._reader = Reader(*reading, name="normata-read", waits=monitor.waits("reader"), limit=_SHORT)
        self._long_reader = Reader(
            *reading,
            name="normata-long-read",
            waits=monitor.waits("long_reader"),
            threads=_LONG_READERS,
            cache_mib=4,
        )
        self._planner = Reader(*reading, name="normata-plan", waits=monitor.waits("planner"))
        self._dry_runs = DryRuns(self._file, self._statements, self._timeout, monitor)
        self._writer = Writer(self._file, self._statements, self._timeout, monitor, free_lock=self._free_lock)
        self._interrupt_others: Callable[[], bool] = lambda: False
        self._lookups = LookupCache(self._file, self._statements)
        self._closed = False
        self._probe_after = 0.0

    @override
    async def read(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        del scope  # statements have their own conditions
        if not is_long:
            with suppress(Overdue):
                return await self._reader.run(work)
        return await self._long_reader.run(work)

    @override
    async def plan(self, work: Work[T], scope: TenantScope = NO_TENANT) -> T:
        del scope
        return await self._planner.run(work)

    @override
    async def write(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        del scope, is_long
        return await self._writer.run(work)

    @override
    async def dry_run(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        del scope, is_long
        return await self._dry_runs.run(work)

    @override
    def interrupt_others(self, interrupt: Callable[[], bool]) -> None:
        self._interrupt_others = interrupt

    def _free_lock(self) -> bool:
        return self._dry_runs.interrupt() or self._interrupt_others()

    @override
    async def look_up(self, lookup: Lookup, *arguments: str | None) -> Sequence[Any]:
        """The event loop runs it itself, because under WAL a reader never waits.

        If SQLite reports that it would have to wait nevertheless, the reader's thread runs it.
        """
        if self._closed:
            raise Unavailable(ENDING, "ending")
        try:
            return self._lookups.look_up(lookup, arguments)
        except sqlite3.Error:
            sql, rows = self._lookups.prepared(lookup)
            return await self.read(lambda transaction: rows(_own(transaction).fetch(sql, arguments)))

    @override
    async def require_ready(self) -> None:
        """Requires that the file accepts a write, because nothing else shows that a disk is full or read-only."""
        if time.monotonic() >= self._probe_after:
            await self._writer.run(_write_anything)
            self._probe_after = time.monotonic() + _PROBED_FOR

    @override
    def read_now(self, work: Work[T]) -> T:
        return self._reader.run_here(work)

    @override
    def write_now(self, work: Work[T]) -> T:
        return self._writer.run_here(work)

    @override
    def alter_now(self, work: Callable[[Connection], T]) -> T:
        """The lock of the writer excludes all others.

        SQLite changes a table mostly by rebuilding it, which temporarily breaks the references to it. So references are
        not enforced meanwhile, but checked before the commit.
        """
        try:
            with self._engine.begin() as connection:
                before = connection.exec_driver_sql("PRAGMA schema_version").scalar()
                result = work(connection)
                if connection.exec_driver_sql("PRAGMA schema_version").scalar() != before:
                    for broken in connection.exec_driver_sql("PRAGMA foreign_key_check"):
                        raise ConstraintViolation(_broken(broken))
        except (exc.DBAPIError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, exc.DBAPIError) else error
            translated = self._file.translate(cause) if isinstance(cause, Exception) else error
            if translated is cause:
                raise
            raise translated from error
        return result

    @override
    def exists(self) -> str | None:
        return None if self.path.exists() else f"no file {self.path}"

    @override
    def secure(self, connection: Connection, metadata: MetaData, security: Security) -> None:
        """SQLite has no rights to grant or revoke."""

    @override
    def faults(
        self, transaction: Transaction, metadata: MetaData, security: Security, *, only_schema: bool = False
    ) -> Iterator[str]:
        del security
        reading = _own(transaction)
        try:
            for (finding,) in () if only_schema else reading.fetch("PRAGMA integrity_check"):
                if finding != "ok":
                    yield f"the database is damaged: {finding}"
            for broken in () if only_schema else reading.fetch("PRAGMA foreign_key_check"):
                yield _broken(broken)
            yield from schema.faults(reading.fetch, metadata)
            yield from () if only_schema else trigrams.faults(reading.fetch, metadata)
        except (sqlite3.DatabaseError, Unavailable) as error:
            reading.failure = None  # reported here
            yield f"the database is damaged: {error}"

    @override
    def figures(self) -> Mapping[str, float]:
        found: dict[str, float] = {"normata_database_log_bytes": 0}  # there is no log before the first connection
        with suppress(OSError):
            found["normata_database_free_bytes"] = shutil.disk_usage(self.path.absolute().parent).free
        for name, path, attribute in (
            ("normata_database_size_bytes", self.path, "st_size"),
            ("normata_database_log_bytes", Path(f"{self.path}-wal"), "st_size"),
            ("normata_last_backup_timestamp_seconds", last_backup(self.path), "st_mtime"),
        ):
            with suppress(OSError):
                found[name] = getattr(path.stat(), attribute)
        return found

    @override
    def scrub(self) -> bool:
        """The file is rewritten, and its log is truncated.

        Others can read meanwhile, but writers wait.
        """
        connection, _ = self._file.open()
        try:
            trigrams.make_anew(connection.execute)
            connection.execute("VACUUM")
            ((is_busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise self._file.translate(error) from error
        finally:
            connection.close()
        if is_busy:
            raise Unavailable(f"{self.path} is in use", "locked")
        return True

    @override
    def serving_warnings(self, transaction: Transaction) -> Iterator[str]:
        """Returns none: everybody who can open the file has all rights."""
        del transaction
        return iter(())

    @override
    async def aclose(self) -> None:
        self._closed = True
        await self._writer.finish()
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    @override
    def close(self) -> None:
        self._closed = True
        self._writer.close()
        self._dry_runs.close()
        self._planner.close()
        self._long_reader.close()
        self._reader.close()
        self._lookups.close()
        self._engine.dispose()

    def _connect(self) -> sqlite3.Connection:
        return self._file.open(keeps_references=False)[0]

    def _begin(self, connection: Connection) -> None:
        """Begin the transaction explicitly, because sqlite3 would begin it only before the first write."""
        driver: Any = connection.connection.driver_connection
        begin(driver, time.monotonic() + self._timeout)


def _write_anything(transaction: Transaction) -> None:
    """Change a number in the file's header that SQLite reserves for applications, and that nothing reads."""
    ((version,),) = _own(transaction).fetch("PRAGMA user_version")
    _own(transaction).fetch(f"PRAGMA user_version = {1 - min(version, 1)}")


def _own(transaction: Transaction) -> SQLiteTransaction:
    assert isinstance(transaction, SQLiteTransaction)  # noqa: S101 - narrows the type; a database makes its own
    return transaction


def _broken(row: Sequence[Any]) -> str:
    table, number, parent, _ = row
    return f"row {number} of {table} refers to a row of {parent} that is not there"


def _path(url: str) -> Path:
    database = make_url(url).database
    if database in (None, "", ":memory:"):
        raise BadDatabaseUrl("the database URL names no file; it looks like sqlite:///normata.db")
    return Path(str(database))
