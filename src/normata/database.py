"""The engine, its connections and its column types: the only module that knows which database it is.

All queries are written against a synchronous :class:`sqlalchemy.Connection`. Requests and commands hand them over as
a function (*work*) to :meth:`Database.read` or :meth:`Database.write`, which run it in one transaction and commit
before they return, so that nothing is acknowledged that is not stored.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, String, create_engine, event, exc, make_url
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool
from sqlalchemy.types import TypeDecorator, TypeEngine

T = TypeVar("T")
Work = Callable[[Connection], T]


class Unavailable(Exception):
    """The database cannot be reached, or not in time. What was asked has not been done; asking again may work."""


class BadDatabaseUrl(ValueError):
    """The database URL is not one that Normata can use; the message says why in one sentence."""


def text(length: int | None = None) -> TypeEngine[str]:
    """A character column that every database orders by code point, whatever its locale."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def format_timestamp(moment: datetime) -> str:
    """``moment`` (aware) as the wire has it: RFC 3339, UTC, milliseconds, ``Z``.

    The width is fixed, so that the order of the texts is the order of the times.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> str:
    """The current time as the wire has it."""
    return format_timestamp(datetime.now(UTC))


class UtcTimestamp(TypeDecorator[str]):
    """An instant, in Python always the wire's text.

    SQLite has no type for instants and would hand back naive ones; the text is stored as it is, which sorts rightly
    and costs nothing to read.
    """

    impl = String(24)
    cache_ok = True


def timestamp() -> TypeEngine[str]:
    """A column type for instants, as migrations name it."""
    return UtcTimestamp()


class Database:
    """One database, for one process.

    SQLite is driven on threads: a few for readers, who never wait for anybody under WAL, and one for the writer. The
    one writer makes a queue of what SQLite would otherwise make a race for its lock; other processes are waited for
    by SQLite's own busy time-out.
    """

    def __init__(self, url: str, *, timeout: float = 5.0, readers: int = 4, create: bool = False) -> None:
        self.path = _sqlite_path(url)
        self._create = create
        self._timeout = timeout
        self.engine: Engine = create_engine(
            "sqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            pool_size=readers + 1,
            max_overflow=0,
            pool_timeout=timeout,
        )
        event.listen(self.engine, "checkout", self._check_file)
        event.listen(self.engine, "begin", _begin)
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="normata-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="normata-write")

    async def read(self, work: Work[T]) -> T:
        """What ``work`` returns, from one consistent snapshot. Raises :class:`Unavailable`."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self.read_now, work)

    async def write(self, work: Work[T]) -> T:
        """What ``work`` returns, once its transaction is durable. Raises :class:`Unavailable`; then nothing is kept."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self.write_now, work)

    def read_now(self, work: Work[T]) -> T:
        """:meth:`read`, for callers without an event loop."""
        return self._run(self.engine, work)

    def write_now(self, work: Work[T]) -> T:
        """:meth:`write`, for callers without an event loop."""
        return self._run(self.engine.execution_options(writes=True), work)

    def close(self) -> None:
        """Give everything back. The database cannot be used afterwards."""
        self._readers.shutdown()
        self._writer.shutdown()
        self.engine.dispose()

    def _run(self, engine: Engine, work: Work[T]) -> T:
        try:
            with engine.begin() as connection:
                return work(connection)
        except exc.IntegrityError:
            raise
        except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError, exc.DisconnectionError) as error:
            raise Unavailable(_reason(error)) from error
        except exc.DatabaseError as error:
            # Plain DatabaseError is how sqlite3 reports a file that is damaged or not a database.
            if type(error) is exc.DatabaseError:
                raise Unavailable(_reason(error)) from error
            raise

    def _connect(self) -> sqlite3.Connection:
        # Without `create`, a file that is gone stays gone: to serve an empty database in its place would be worse.
        uri = f"{self.path.absolute().as_uri()}?mode={'rwc' if self._create else 'rw'}"
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -16384"):
            connection.execute(f"PRAGMA {pragma}")
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


def damage(connection: Connection) -> Iterator[str]:
    """What the database itself finds wrong with its files and references, a sentence each."""
    for (finding,) in connection.exec_driver_sql("PRAGMA integrity_check"):
        if finding != "ok":
            yield f"the database is damaged: {finding}"
    for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} refers to a row of {parent} that is not there"


def _reason(error: exc.SQLAlchemyError) -> str:
    cause = getattr(error, "orig", None)
    return str(cause if cause is not None else error).splitlines()[0]


def _sqlite_path(url: str) -> Path:
    try:
        parsed = make_url(url)
    except exc.ArgumentError:
        raise BadDatabaseUrl(
            "the database URL cannot be read; it looks like sqlite:///normata.db"
        ) from None  # the URL itself may hold a password, so it is not repeated
    if parsed.get_backend_name() != "sqlite":
        raise BadDatabaseUrl(
            f"the database URL names {parsed.get_backend_name()}; this version speaks sqlite:///… only"
        )
    if parsed.database in (None, "", ":memory:"):
        raise BadDatabaseUrl("the database URL names no file; it looks like sqlite:///normata.db")
    return Path(str(parsed.database))
