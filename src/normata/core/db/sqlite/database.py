"""SQLite: the embedded database, one file."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
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
from normata.core.db.sqlite.connection import Connections, File, begin
from normata.core.db.sqlite.dry_runs import DryRuns
from normata.core.db.sqlite.reader import Reader
from normata.core.db.sqlite.transaction import SQLiteTransaction
from normata.core.db.sqlite.writer import Writer
from normata.core.db.statements import Rows, statements_for
from normata.core.db.transaction import NO_TENANT, ConstraintViolation, T, TenantScope, Transaction, Work
from normata.errors import Unavailable
from normata.settings import Settings


class SQLite(Database):
    """SQLite on three threads: one for reads, which wait for nobody under WAL, one for writes, and one for dry runs."""

    embedded = True

    def __init__(self, settings: Settings, *, monitor: Monitor, create: bool = False) -> None:
        self.path = _path(settings.database_url)
        self._timeout = settings.database_timeout
        self._file = File(self.path, self._timeout, create=create)
        # For migrations only.
        self._engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool, hide_parameters=True)
        event.listen(self._engine, "begin", self._begin)
        self._statements = statements_for(self._engine.dialect)
        self._reader = Reader(self._file, self._statements, self._timeout, monitor)
        self._dry_runs = DryRuns(self._file, self._statements, self._timeout, monitor)
        self._writer = Writer(self._file, self._statements, self._timeout, monitor, free_lock=self._dry_runs.interrupt)
        self._lookup_connections = Connections(self._file, waits=False, only_reads=True, cache_mib=2)
        self._prepared: dict[str, tuple[str, Rows]] = {}  # the lookups, by name
        self._closed = False

    @override
    async def read(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        del scope, is_long  # the statements' own conditions hold, and all work has a thread
        return await self._reader.run(work)

    @override
    async def write(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        del scope, is_long
        return await self._writer.run(work)

    @override
    async def dry_run(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        del scope, is_long
        return await self._dry_runs.run(work)

    @override
    async def look_up(self, lookup: Lookup, *arguments: str | None) -> Sequence[Any]:
        """The event loop runs it itself, since under WAL a reader waits for nobody.

        Where SQLite reports that it would have to wait after all, the reader's thread does.
        """
        if self._closed:
            raise Unavailable(ENDING, "ending")
        sql, rows = self._prepared.get(lookup.name) or self._prepare(lookup)
        try:
            return rows(self._lookup_connections.fetch(sql, arguments))
        except sqlite3.Error:
            return await self._reader.run(lambda transaction: rows(_own(transaction).fetch(sql, arguments)))

    @override
    async def require_ready(self) -> None:
        """The file is this machine's own."""

    @override
    def read_now(self, work: Work[T]) -> T:
        return self._reader.run_here(work)

    @override
    def write_now(self, work: Work[T]) -> T:
        return self._writer.run_here(work)

    @override
    def alter_now(self, work: Callable[[Connection], T]) -> T:
        """The lock of the one writer keeps all others out.

        SQLite changes most of a table by making it anew, which seems to break the references to it until that is done.
        So references are not enforced meanwhile, but looked at before the commit.
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
    def faults(self, transaction: Transaction, metadata: MetaData, security: Security) -> Iterator[str]:
        del metadata, security
        reading = _own(transaction)
        try:
            for (finding,) in reading.fetch("PRAGMA integrity_check"):
                if finding != "ok":
                    yield f"the database is damaged: {finding}"
            for broken in reading.fetch("PRAGMA foreign_key_check"):
                yield _broken(broken)
        except (sqlite3.DatabaseError, Unavailable) as error:
            reading.failure = None  # it is reported here
            yield f"the database is damaged: {error}"

    @override
    def scrub(self) -> bool:
        """The file is written anew, and what was written before the last is cut off.

        Others may go on reading meanwhile, and wait to write.
        """
        connection, _ = self._file.open()
        try:
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
        """Whoever can open the file has all of it."""
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
        self._reader.close()
        self._lookup_connections.close()
        self._engine.dispose()

    def _prepare(self, lookup: Lookup) -> tuple[str, Rows]:
        """A lookup's statement, and what makes rows of what it returns."""
        arguments = (f"?{number}" for number, _ in enumerate(lookup.arguments, 1))
        prepared = self._prepared[lookup.name] = lookup.sql(*arguments), self._statements.rows(lookup.columns)
        return prepared

    def _connect(self) -> sqlite3.Connection:
        return self._file.open(keeps_references=False)[0]

    def _begin(self, connection: Connection) -> None:
        """Begin the transaction ourselves: sqlite3 would begin it late, and only before it writes."""
        driver: Any = connection.connection.driver_connection
        begin(driver, time.monotonic() + self._timeout)


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
