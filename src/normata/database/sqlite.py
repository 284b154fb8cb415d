"""SQLite: the embedded database, one file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, MetaData, create_engine, event, exc, make_url
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool

from normata.database import NOTHING, BadDatabaseUrl, Database, Script, Sight, T, Unavailable, Work
from normata.database.admission import Admission, question
from normata.database.gathering import CROWDED, Gathering
from normata.database.prepared import Statements
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
_BEGIN_WRITING = "BEGIN IMMEDIATE"
# Seconds until the lock that another process has is asked for again. SQLite's own way of waiting sleeps for so long
# that of two processes that write the one would hardly ever have it.
_NAP = 0.001
_AT_ONCE = 64  # scripts in a transaction: as long as their statements take, nobody else is served


class _AtHand:
    """A connection for the event loop, to whichever file it is that has the path; it waits for nobody."""

    def __init__(self, connect: Callable[[float], sqlite3.Connection], identity: Callable[[], tuple[int, int]]) -> None:
        self._connect = connect
        self._identity = identity
        self._opened: tuple[sqlite3.Connection, tuple[int, int]] | None = None

    def connection(self) -> sqlite3.Connection:
        """The connection, opened where it is not. Raises Unavailable and sqlite3.Error."""
        identity = self._identity()
        if self._opened is None or self._opened[1] != identity:
            self.close()
            self._opened = (self._connect(0), identity)
        return self._opened[0]

    def close(self) -> None:
        """Close it, if it is open; what it has not committed is undone."""
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None


class SQLite(Database):
    """SQLite, driven on threads: one for reading, which waits for nobody under WAL, and one for writing.

    Writers take turns, which makes a queue of what SQLite would otherwise make a race for its lock. Scripts that wait
    are taken into one transaction. Their statements are sent from the event loop: each takes some microseconds, less
    than to hand it to a thread, and sqlite3 gives Python's lock away for each, so that two threads spend their time
    with waiting to have it back. The commit, which waits for the disk, is the thread's.
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
        event.listen(self.engine, "begin", self._begin)
        self._asking = _AtHand(self._connect, self._identity)
        self._performing = _AtHand(self._connect, self._identity)
        self._statements = Statements(self.engine.dialect)
        self._scripts = Gathering(self._perform_together, self._timeout, at_once=_AT_ONCE)
        self._turn = asyncio.Lock()  # of writers; the longest waiting is next
        self._closed = False
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
            return _admissions(self._asking.connection(), parameters)
        except sqlite3.DatabaseError:
            self._asking.close()
            return await self.read(
                lambda connection: [Admission._make(row) for row in connection.exec_driver_sql(_ADMIT, parameters)]
            )

    async def write(self, work: Work[T], _sight: Sight = NOTHING) -> T:
        """See :meth:`Database.write`."""
        async with self._writing():
            return await self._on_writer(partial(self.write_now, work))

    async def perform(self, script: Callable[[], Script[T]], _sight: Sight = NOTHING) -> T:
        """See :meth:`Database.perform`."""
        return cast("T", await self._scripts.ask(script))

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
        async with self._turn:  # who writes finishes; who waits is told Unavailable
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """See :meth:`Database.close`."""
        self._reader.shutdown()
        self._writer.shutdown()
        self._asking.close()
        self._performing.close()
        self.engine.dispose()

    async def _in_time(self, outcome: Future[T]) -> T:
        """The outcome of what waits for its turn; raises Unavailable where that does not come in time.

        Once it runs it is waited for, since it may succeed; SQLite's own time-out bounds that.
        """
        waiter = asyncio.wrap_future(outcome)
        done, _ = await asyncio.wait({waiter}, timeout=self._timeout)
        if not done and outcome.cancel():
            raise Unavailable(CROWDED)
        return await waiter

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """The turn of one writer. Raises Unavailable where it does not come in time."""
        try:
            async with asyncio.timeout(self._timeout):
                await self._turn.acquire()
        except TimeoutError:
            raise Unavailable(CROWDED) from None
        try:
            if self._closed:
                raise Unavailable("the service is ending")
            yield
        finally:
            self._turn.release()

    async def _on_writer(self, work: Callable[[], T]) -> T:
        """What ``work`` returns on the writer's thread, which is waited for even by who is cancelled meanwhile.

        The thread cannot be stopped: it goes on with a connection, and with the lock, that nobody else may have then.
        """
        outcome = asyncio.wrap_future(self._writer.submit(work))
        cancelled: asyncio.CancelledError | None = None
        while not outcome.done():
            try:
                await asyncio.wait({outcome})
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        return outcome.result()

    async def _perform_together(self, scripts: Sequence[Callable[[], Script[Any]]]) -> list[Any]:
        """What each script returns or raises, once all of them are durable: that takes as long for many as for one."""
        return await self._performed(scripts, time.monotonic() + self._timeout)

    async def _performed(self, scripts: Sequence[Callable[[], Script[Any]]], deadline: float) -> list[Any]:
        try:
            async with self._writing():
                return await self._committed(scripts, deadline)
        except Exception as error:
            if len(scripts) == 1 or not isinstance(error, sqlite3.IntegrityError):
                return [self._told(error)] * len(scripts)
        # A reference that is found to be broken at the commit: whose fault it is shows when each is tried alone.
        return [outcome for script in scripts for outcome in await self._performed([script], deadline)]

    async def _committed(self, scripts: Sequence[Callable[[], Script[Any]]], deadline: float) -> list[Any]:
        try:
            connection = await self._begun(deadline)
            outcomes = [self._attempt(connection, script) for script in scripts]
            await self._on_writer(partial(connection.execute, "COMMIT"))
        except BaseException:
            self._performing.close()
            raise
        return outcomes

    async def _begun(self, deadline: float) -> sqlite3.Connection:
        """A connection with a transaction that has the lock."""
        while True:
            try:
                connection = self._performing.connection()
                connection.execute(_BEGIN_WRITING)
            except sqlite3.OperationalError as error:
                if not _is_to_be_asked_again(error, deadline):
                    raise
            else:
                return connection
            await asyncio.sleep(_NAP)

    def _attempt(self, connection: sqlite3.Connection, script: Callable[[], Script[Any]]) -> Any:
        """What a script returns, or its failure, after which nothing of it is left."""
        connection.execute("SAVEPOINT script")
        try:
            outcome = self._follow(connection, script())
        except Exception as error:
            if not connection.in_transaction:
                raise  # SQLite has ended it, for all
            connection.execute("ROLLBACK TO script")
            outcome = self._told(error)
        connection.execute("RELEASE script")
        return outcome

    def _follow(self, connection: sqlite3.Connection, script: Script[T]) -> T:
        try:
            statement, parameters = next(script)
            while True:
                known = self._statements.find(statement) or self._statements.add(statement)
                found = connection.execute(known.sql, known.values(parameters)).fetchall()
                statement, parameters = script.send(known.rows(found))
        except StopIteration as end:
            return cast("T", end.value)

    def _told(self, error: Exception) -> Exception:
        """An error as :class:`Database` tells it."""
        if isinstance(error, sqlite3.IntegrityError):
            return exc.IntegrityError(None, None, error)
        return Unavailable(f"{self.path}: {error}") if _code(error) in _PASSING else error

    def _run(self, engine: Engine, work: Work[T]) -> T:
        try:
            with engine.begin() as connection:
                return work(connection)
        except exc.IntegrityError:
            raise
        except (exc.TimeoutError, exc.DisconnectionError) as error:
            raise Unavailable(_reason(error)) from error
        except exc.DBAPIError as error:
            if _code(error.orig) in _PASSING:
                raise Unavailable(f"{self.path}: {_reason(error)}") from error
            raise

    def _begin(self, connection: Connection) -> None:
        """Start the transaction ourselves: sqlite3 would start it late, and only before writes.

        A writer takes the lock at once, since a reader that turns into a writer can fail where no waiting helps.
        """
        if not connection.get_execution_options().get("writes", False):
            connection.exec_driver_sql("BEGIN")
            return
        deadline = time.monotonic() + self._timeout
        connection.exec_driver_sql("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    connection.exec_driver_sql(_BEGIN_WRITING)
                except exc.OperationalError as error:
                    if not _is_to_be_asked_again(error.orig, deadline):
                        raise
                else:
                    return
                time.sleep(_NAP)
        finally:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(self._timeout * 1000)}")

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


def _is_to_be_asked_again(error: BaseException | None, deadline: float) -> bool:
    return _code(error) == sqlite3.SQLITE_BUSY and time.monotonic() < deadline


def _code(error: BaseException | None) -> int:
    """The primary result code of one of sqlite3's errors, which is its low byte; the rest says more of it."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def _reason(error: exc.SQLAlchemyError) -> str:
    cause = getattr(error, "orig", None)
    return str(cause if cause is not None else error).splitlines()[0]


def _path(url: str) -> Path:
    database = make_url(url).database
    if database in (None, "", ":memory:"):
        raise BadDatabaseUrl("the database URL names no file; it looks like sqlite:///normata.db")
    return Path(str(database))
