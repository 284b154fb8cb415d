"""SQLite: the embedded database, one file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, MetaData, create_engine, event, exc, make_url
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool

from normata.database import NOTHING, BadDatabaseUrl, Database, Sight, T, Unavailable, Work
from normata.settings import Settings

# Result codes that speak of the file or of who else is at it. What is left, a table that is missing or a statement
# that is wrong, is a fault that no waiting mends.
_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_PERM,
    }
)


class SQLite(Database):
    """SQLite, driven on threads: a few for readers, who never wait for anybody under WAL, and one for the writer.

    The one writer makes a queue of what SQLite would otherwise make a race for its lock; other processes are waited
    for by SQLite's own busy time-out.
    """

    embedded = True

    def __init__(self, settings: Settings, *, create: bool = False) -> None:
        self.path = _path(settings.database_url)
        self._create = create
        self._timeout = settings.database_timeout
        self.engine: Engine = create_engine(
            "sqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            hide_parameters=True,  # what is logged of a failed statement must not have what people wrote
            pool_size=settings.database_pool_size + 1,
            max_overflow=0,
            pool_timeout=self._timeout,
        )
        event.listen(self.engine, "checkout", self._check_file)
        event.listen(self.engine, "begin", _begin)
        self._readers = ThreadPoolExecutor(settings.database_pool_size, thread_name_prefix="normata-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="normata-write")

    async def read(self, work: Work[T], _sight: Sight = NOTHING) -> T:
        """See :meth:`Database.read`."""
        return await self._queued(self._readers, lambda: self.read_now(work))

    async def write(self, work: Work[T], _sight: Sight = NOTHING) -> T:
        """See :meth:`Database.write`."""
        return await self._queued(self._writer, lambda: self.write_now(work))

    def read_now(self, work: Work[T]) -> T:
        """See :meth:`Database.read_now`."""
        return self._run(self.engine, work)

    def write_now(self, work: Work[T]) -> T:
        """See :meth:`Database.write_now`."""
        return self._run(self.engine.execution_options(writes=True), work)

    def exists(self) -> str | None:
        """See :meth:`Database.exists`."""
        return None if self.path.exists() else f"no file {self.path}"

    def lock_schema(self, connection: Connection) -> None:
        """See :meth:`Database.lock_schema`: the one writer's transaction is the lock."""

    def secure(self, connection: Connection, metadata: MetaData) -> None:
        """See :meth:`Database.secure`: SQLite has no rights to give or take."""

    def damage(self, connection: Connection) -> Iterator[str]:
        """See :meth:`Database.damage`."""
        try:
            for (finding,) in connection.exec_driver_sql("PRAGMA integrity_check"):
                if finding != "ok":
                    yield f"the database is damaged: {finding}"
            for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
                yield f"row {row} of {table} refers to a row of {parent} that is not there"
        except exc.DatabaseError as error:
            yield f"the database is damaged: {_reason(error)}"

    async def aclose(self) -> None:
        """See :meth:`Database.aclose`."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """See :meth:`Database.close`."""
        self._readers.shutdown()
        self._writer.shutdown()
        self.engine.dispose()

    async def _queued(self, executor: ThreadPoolExecutor, call: Callable[[], T]) -> T:
        """What ``call`` returns, run in its turn; raises Unavailable where that does not come in time.

        Once it runs it is waited for, since it may succeed; SQLite's own time-out bounds that.
        """
        future = executor.submit(call)
        waiter = asyncio.wrap_future(future)
        done, _ = await asyncio.wait({waiter}, timeout=self._timeout)
        if not done and future.cancel():
            raise Unavailable("too many others are waiting for the database")
        return await waiter

    def _run(self, engine: Engine, work: Work[T]) -> T:
        try:
            with engine.begin() as connection:
                return work(connection)
        except exc.IntegrityError:
            raise
        except (exc.TimeoutError, exc.DisconnectionError) as error:
            raise Unavailable(_reason(error)) from error
        except exc.DBAPIError as error:
            # The low byte is the primary result code; the rest says more of it.
            if getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _PASSING:
                raise Unavailable(f"{self.path}: {_reason(error)}") from error
            raise

    def _connect(self) -> sqlite3.Connection:
        # Without `create`, a file that is gone stays gone: to serve an empty database in its place would be worse.
        if self._create and not self.path.exists():
            # For its owner alone, from the first moment, whatever the umask; SQLite's other files follow.
            with suppress(OSError):  # SQLite says it better
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        uri = f"{self.path.absolute().as_uri()}?mode={'rwc' if self._create else 'rw'}"
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        for pragma in ("synchronous = FULL", "foreign_keys = ON", "cache_size = -16384"):
            connection.execute(f"PRAGMA {pragma}")
        # The mode stays with the file, so it is set for our own only, or for one that is still empty.
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables or "alembic_version" in tables:
            connection.execute("PRAGMA journal_mode = WAL")
        return connection

    def _check_file(self, connection: Any, entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
        """Drop a connection whose file has been moved or replaced: what it wrote would be acknowledged and lost."""
        del connection
        try:
            status = os.stat(self.path)  # noqa: PTH116 - on the path of every request, and Path.stat costs twice as much
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be read: {error.strerror}") from error
        identity = (status.st_dev, status.st_ino)
        if entry.info.setdefault("identity", identity) != identity:
            raise exc.DisconnectionError


def _begin(connection: Connection) -> None:
    """Start the transaction ourselves: sqlite3 would start it late, and only before writes.

    A writer takes the lock at once, since a reader that turns into a writer can fail where no waiting helps.
    """
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _reason(error: exc.SQLAlchemyError) -> str:
    cause = getattr(error, "orig", None)
    return str(cause if cause is not None else error).splitlines()[0]


def _path(url: str) -> Path:
    database = make_url(url).database
    if database in (None, "", ":memory:"):
        raise BadDatabaseUrl("the database URL names no file; it looks like sqlite:///normata.db")
    return Path(str(database))
