"""Connections to the file of a SQLite database, and the translation of its errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from normata.core.db.transaction import ConstraintViolation
from normata.core.db.types import now
from normata.errors import Unavailable, UnavailableReason

# Result codes about the file or its other users. All others, such as those for a missing table or a wrong statement,
# are errors that waiting does not cure.
_TRANSIENT = frozenset(
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

_REASONS: Mapping[int, UnavailableReason] = {
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_FULL: "full",
}

# Pages of 4 KiB in the WAL from which on a commit also writes a checkpoint: twice SQLite's default. A page that changed
# often is then written once, and each checkpoint takes some milliseconds.
_LOG_PAGES = 2_000

# Seconds between two attempts to get a lock that another process holds. SQLite's own busy handler sleeps so long that
# one of two writing processes would hardly ever get it.
_LOCK_POLL_INTERVAL = 0.001

_Identity = tuple[int, int]


def code(error: BaseException | None) -> int:
    """The primary result code of one of sqlite3's errors, which is its low byte; the rest says more about it."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def begin(connection: sqlite3.Connection, deadline: float, free_lock: Callable[[], bool] = lambda: False) -> None:
    """Begin a transaction that has the lock for writing; ``deadline`` is on the monotonic clock.

    It takes the lock immediately, because a reader that becomes a writer can fail without a remedy. If another one has
    the lock, ``free_lock`` is called each time, and returns whether it has made somebody release it.
    """
    ((timeout,),) = connection.execute("PRAGMA busy_timeout").fetchall()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
            else:
                return
            if not free_lock():
                time.sleep(_LOCK_POLL_INTERVAL)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout}")


class Connection(sqlite3.Connection):
    """A connection with the moment of its transaction, which triggers write to history tables."""

    moment: str | None = None  # in wire form; null for that of the clock


class File:
    """The file of a database. With ``create`` it is created if it does not exist; ``timeout`` is in seconds."""

    def __init__(self, path: Path, timeout: float, *, create: bool) -> None:
        self.path = path
        self._name = str(path)
        self._timeout = timeout
        self._create = create

    def identity(self) -> _Identity:
        """The identity of the file that now has the path. Raises Unavailable."""
        try:
            status = os.stat(self._name)  # noqa: PTH116 - each request does this, and Path.stat takes twice as long
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be read: {error.strerror}") from error
        return status.st_dev, status.st_ino

    def open(
        self,
        *,
        waits: bool = True,
        keeps_references: bool = True,
        only_reads: bool = False,
        cache_mib: int = 16,
        undoes_in_memory: bool = False,
    ) -> tuple[Connection, _Identity]:
        """A connection, and the identity of its file. Raises Unavailable and sqlite3.Error.

        Without ``waits`` a statement fails immediately if another process has the lock that it needs. ``cache_mib`` is
        the maximum size of the connection's cache. ``undoes_in_memory`` is true if the pages that a statement with
        triggers changes are noted in memory, and not in a file from the 16th on. Then large sorts are in memory, too.
        """
        if self._create and not self.path.exists():
            # Only its owner can read it, from the start, whatever the umask. SQLite's other files follow it.
            with suppress(OSError):  # SQLite reports the error better
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        # Before opening: if the file is replaced in between, the next comparison of identities notices.
        identity = self.identity()
        connection = sqlite3.connect(
            # Never create the file, because serving an empty database would be worse.
            f"{self.path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=self._timeout if waits else 0,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
        )
        try:
            _configure(connection, keeps_references=keeps_references, only_reads=only_reads, cache_mib=cache_mib)
            if undoes_in_memory:
                connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:
            connection.close()
            raise
        self._create = False
        return connection, identity

    def translate(self, error: Exception) -> Exception:
        """The error translated for callers."""
        if isinstance(error, sqlite3.IntegrityError):
            return ConstraintViolation(str(error))
        if isinstance(error, sqlite3.Error) and code(error) in _TRANSIENT:
            return Unavailable(f"{self.path}: {error}", _REASONS.get(code(error), "unreachable"))
        return error


def _configure(connection: Connection, *, keeps_references: bool, only_reads: bool, cache_mib: int) -> None:
    connection.create_function("normata_moment", 0, lambda: connection.moment or now())
    for pragma in (
        "synchronous = FULL",
        f"foreign_keys = {'ON' if keeps_references else 'OFF'}",
        f"cache_size = -{cache_mib * 1024}",
        f"wal_autocheckpoint = {_LOG_PAGES}",
    ):
        connection.execute(f"PRAGMA {pragma}")
    # The mode is stored in the file, so set it only in our own files and in empty ones.
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables or "alembic_version" in tables:
        connection.execute("PRAGMA journal_mode = WAL")
    if only_reads:
        connection.execute("PRAGMA query_only = ON")


class Connections:
    """Connections that stay open between uses, for any number of threads.

    A connection whose file was moved or replaced is dropped, because its writes would be acknowledged and lost.
    """

    def __init__(self, file: File, **options: Any) -> None:
        """``options`` are those of :meth:`File.open`."""
        self._file = file
        self._options = options
        self._idle: list[tuple[Connection, _Identity]] = []
        self._opened = 0

    @contextmanager
    def lease(self) -> Iterator[Connection]:
        """A connection for a block. Uncommitted changes of the block are rolled back.

        Raises Unavailable, sqlite3.Error.
        """
        connection, identity = self._take()
        try:
            yield connection
        except BaseException as error:
            if isinstance(error, sqlite3.Error | Unavailable) or not _rolled_back(connection):
                connection.close()  # this rolls back, too; the file is damaged
            else:
                self._idle.append((connection, identity))
            raise
        self._idle.append((connection, identity))

    def fetch(self, sql: str, values: Sequence[Any]) -> list[Any]:
        """All rows of one SELECT, without the cost of a lease. Raises Unavailable and sqlite3.Error."""
        connection, identity = self._take()
        try:
            found = connection.execute(sql, values).fetchall()
        except BaseException:
            connection.close()
            raise
        self._idle.append((connection, identity))
        return found

    def data_version(self) -> tuple[int, int]:
        """A value that differs if another connection may have changed the file. Raises Unavailable and sqlite3.Error.

        The numbers of two connections cannot be compared, so the value includes a number of the connection. It is for
        one thread that uses one connection at a time.
        """
        ((version,),) = self.fetch("PRAGMA data_version", ())
        return self._opened, version

    def close(self) -> None:
        """Close unused connections."""
        while self._idle:
            self._idle.pop()[0].close()

    def _take(self) -> tuple[Connection, _Identity]:
        while True:
            try:
                connection, identity = self._idle.pop()
            except IndexError:
                self._opened += 1
                return self._file.open(**self._options)
            try:
                if identity == self._file.identity():
                    return connection, identity
            except BaseException:
                connection.close()
                raise
            connection.close()


def _rolled_back(connection: sqlite3.Connection) -> bool:
    """Roll back an open transaction; returns whether there is none any more."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        return False
    return True
