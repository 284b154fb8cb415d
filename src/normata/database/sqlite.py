"""SQLite: the embedded database, one file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, MetaData, create_engine, event, exc, make_url
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool

from normata.database import NOTHING, BadDatabaseUrl, Database, Sight, T, Unavailable, Work
from normata.database.admission import Admission, question
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


_ADMIT = question("?1", "?2")


class SQLite(Database):
    """SQLite, driven on threads: one for reading, which waits for nobody under WAL, and one for writing.

    The one writer makes a queue of what SQLite would otherwise make a race for its lock, and takes all that has queued
    up into one transaction; other processes are waited for by SQLite's own busy time-out.
    """

    embedded = True

    def __init__(self, settings: Settings, *, create: bool = False) -> None:
        self.path = _path(settings.database_url)
        self._name = str(self.path)
        self._create = create
        self._timeout = settings.database_timeout
        self.engine: Engine = create_engine(
            "sqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            hide_parameters=True,  # what is logged of a failed statement must not have what people wrote
            pool_size=2,  # the reader's and the writer's
            max_overflow=0,
            pool_timeout=self._timeout,
        )
        event.listen(self.engine, "checkout", self._check_file)
        event.listen(self.engine, "begin", _begin)
        self._quick: tuple[sqlite3.Connection, tuple[int, int]] | None = None
        self._waiting: deque[tuple[Work[Any], Future[Any]]] = deque()
        # sqlite3 gives Python's lock away for each row and waits to have it back: four readers of one process build
        # fewer pages a second than one. More cores are for more processes.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="normata-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="normata-write")

    async def read(self, work: Work[T], _sight: Sight = NOTHING) -> T:
        """See :meth:`Database.read`."""
        return await self._in_time(self._reader.submit(self.read_now, work))

    async def admit(self, digest: str, organization_id: str | None) -> Sequence[Admission]:
        """See :meth:`Database.admit`.

        It takes some microseconds, less than to hand it to a thread, so it is asked from the event loop: under WAL a
        reader waits for nobody. Where SQLite says that it would have to wait after all, a thread does.
        """
        parameters = (digest, organization_id)
        try:
            return _admissions(self._at_hand(), parameters)
        except sqlite3.DatabaseError:
            self._forget_at_hand()
            return await self.read(
                lambda connection: [Admission._make(row) for row in connection.exec_driver_sql(_ADMIT, parameters)]
            )

    async def write(self, work: Work[T], _sight: Sight = NOTHING) -> T:
        """See :meth:`Database.write`."""
        outcome: Future[T] = Future()
        self._waiting.append((work, outcome))
        self._writer.submit(self._write_waiting)
        return await self._in_time(outcome)

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
        self._reader.shutdown()
        self._writer.shutdown()
        self._forget_at_hand()
        self.engine.dispose()

    def _at_hand(self) -> sqlite3.Connection:
        """The event loop's own connection, which never waits."""
        identity = self._identity()
        if self._quick is None or self._quick[1] != identity:
            self._forget_at_hand()
            self._quick = (self._connect(timeout=0), identity)
        return self._quick[0]

    def _forget_at_hand(self) -> None:
        if self._quick is not None:
            self._quick[0].close()
            self._quick = None

    async def _in_time(self, outcome: Future[T]) -> T:
        """The outcome of what waits for its turn; raises Unavailable where that does not come in time.

        Once it runs it is waited for, since it may succeed; SQLite's own time-out bounds that.
        """
        waiter = asyncio.wrap_future(outcome)
        done, _ = await asyncio.wait({waiter}, timeout=self._timeout)
        if not done and outcome.cancel():
            raise Unavailable("too many others are waiting for the database")
        return await waiter

    def _write_waiting(self) -> None:
        """Do all that waits in one transaction: to make it durable takes as long for many as for one."""
        batch: list[tuple[Work[Any], Future[Any]]] = []
        while self._waiting:
            work, outcome = self._waiting.popleft()
            if outcome.set_running_or_notify_cancel():
                batch.append((work, outcome))
        if len(batch) > 1:
            try:
                results = self.write_now(lambda connection: [_attempt(connection, work) for work, _ in batch])
            except Unavailable as error:  # it would be so for each, and each would wait for it anew
                for _, outcome in batch:
                    outcome.set_exception(error)
                return
            except Exception:  # noqa: S110 - whose fault it is shows when each is tried alone
                pass
            except BaseException as error:
                for _, outcome in batch:
                    outcome.set_exception(error)
                raise
            else:
                for (_, outcome), result in zip(batch, results, strict=True):
                    _conclude(outcome, result)
                return
        for work, outcome in batch:
            try:
                outcome.set_result(self.write_now(work))
            except BaseException as error:
                outcome.set_exception(error)

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

    def _connect(self, timeout: float | None = None) -> sqlite3.Connection:
        # Without `create`, a file that is gone stays gone: to serve an empty database in its place would be worse.
        if self._create and not self.path.exists():
            # For its owner alone, from the first moment, whatever the umask; SQLite's other files follow.
            with suppress(OSError):  # SQLite says it better
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        uri = f"{self.path.absolute().as_uri()}?mode={'rwc' if self._create else 'rw'}"
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=self._timeout if timeout is None else timeout,
            isolation_level=None,
            check_same_thread=False,
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
        identity = self._identity()
        if entry.info.setdefault("identity", identity) != identity:
            raise exc.DisconnectionError

    def _identity(self) -> tuple[int, int]:
        """Which file it is that has the path now."""
        try:
            status = os.stat(self._name)  # noqa: PTH116 - on the path of every request, and Path.stat costs twice as much
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be read: {error.strerror}") from error
        return status.st_dev, status.st_ino


def _admissions(connection: sqlite3.Connection, parameters: tuple[str, str | None]) -> Sequence[Admission]:
    return [Admission._make(row) for row in connection.execute(_ADMIT, parameters).fetchall()]


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception


def _attempt(connection: Connection, work: Work[Any]) -> Any:
    """What ``work`` returns, or its failure, after which nothing of it is left.

    What the database itself fails of may have ended the transaction, so that goes on to end it for all.
    """
    try:
        with connection.begin_nested():
            return work(connection)
    except exc.IntegrityError as error:
        return _Failure(error)
    except exc.DBAPIError:
        raise
    except Exception as error:
        return _Failure(error)


def _conclude(outcome: Future[Any], result: Any) -> None:
    if isinstance(result, _Failure):
        outcome.set_exception(result.error)
    else:
        outcome.set_result(result)


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
