"""Dry runs: work that writes, on a connection of its own, and is rolled back."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from typing_extensions import override

from normata.core.db.monitoring import Monitor
from normata.core.db.sqlite.connection import Connection, Connections, File, begin, code
from normata.core.db.sqlite.transaction import SQLiteTransaction, run_work
from normata.core.db.sqlite.worker import Worker
from normata.core.db.statements import Statements
from normata.core.db.transaction import NO_PARAMETERS, Parameters, Statement, T, Work
from normata.errors import Unavailable

_ATTEMPTS = 3  # that writers may interrupt; the next one they may not, so that a dry run ends even under load

_PAUSE = 0.005  # seconds between two attempts, enough for most batches of writes


class DryRuns:
    """Runs work on a thread of its own, and never stores anything.

    A transaction holds SQLite's only write lock from its first write on. So what work does before that delays no
    writer. After that, a writer of this process that needs the lock interrupts the dry run as soon as none of its
    statements runs; the dry run is then attempted again. After some attempts it holds the lock until it ends, and a
    writer of another process cannot interrupt it either.
    """

    def __init__(self, file: File, statements: Statements, timeout: float, monitor: Monitor) -> None:
        self._file = file
        self._statements = statements
        self._timeout = timeout
        # Do not wait for the lock: whoever holds it mostly changes the file, so what was read would be out of date.
        self._connections = Connections(file, waits=False, cache_mib=8)
        self._worker = Worker("normata-dry-run", timeout, monitor.waits("dry_run"))
        self._guard = threading.Lock()  # held while a statement runs
        self._interruptible: _Interruptible | None = None

    async def run(self, work: Work[T]) -> T:
        """Run ``work`` on the thread and return its result. Raises its errors, and Unavailable."""
        return await self._worker.run(partial(self._run, work))

    def interrupt(self) -> bool:
        """Interrupt a dry run that holds the write lock, if possible; returns whether there was one."""
        with self._guard:
            return self._interruptible is not None and self._interruptible.interrupt()

    def close(self) -> None:
        """Wait for the work in progress, and close the connections."""
        self._worker.close()
        self._connections.close()

    def _run(self, work: Work[T]) -> T:
        deadline = time.monotonic() + self._timeout
        try:
            for _ in range(_ATTEMPTS):
                with self._connections.lease() as connection:
                    try:
                        return self._attempt(connection, work)
                    except _Interrupted:
                        if connection.in_transaction:
                            connection.execute("ROLLBACK")
                time.sleep(_PAUSE)
            with self._connections.lease() as connection:
                begin(connection, deadline)
                result = run_work(work, SQLiteTransaction(connection, self._statements, self._file))
                connection.execute("ROLLBACK")
                return result
        except sqlite3.Error as error:
            translated = self._file.translate(error)
            if translated is error:
                raise
            raise translated from error

    def _attempt(self, connection: Connection, work: Work[T]) -> T:
        """Run ``work`` and return its result. Raises _Interrupted if a writer was faster, and its errors."""
        transaction = _Interruptible(connection, self._statements, self._file, self._guard)
        connection.execute("BEGIN")
        with self._guard:
            self._interruptible = transaction
        try:
            result = run_work(work, transaction)
        except Exception as error:
            if transaction.is_interrupted and not isinstance(error, _Interrupted):
                raise _Interrupted from error
            raise
        finally:
            with self._guard:
                self._interruptible = None
        if connection.in_transaction:  # it may have been interrupted after its last statement
            connection.execute("ROLLBACK")
        return result


class _Interrupted(Exception):
    """A writer needed the lock, or has changed the file since the dry run began to read it."""


class _Interruptible(SQLiteTransaction):
    """A transaction that another thread may end between two statements, if it has written."""

    def __init__(self, connection: Connection, statements: Statements, file: File, guard: threading.Lock) -> None:
        super().__init__(connection, statements, file)
        self._guard = guard
        self._has_lock = False
        self.is_interrupted = False

    def interrupt(self) -> bool:
        """End it if it holds the write lock, and return whether it did; the caller holds the guard."""
        if not self._has_lock or self.is_interrupted:
            return False
        self._connection.execute("ROLLBACK")
        self._set_interrupted()
        return True

    @override
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        self._note(statement)
        return super().rows(statement, parameters)

    @override
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        self._note(statement)
        super().execute_many(statement, parameters)

    @override
    def analyze(self, written: Mapping[str, int]) -> None:
        self._has_lock = True
        super().analyze(written)

    @override
    def _run(self, call: Callable[[], T]) -> T:
        with self._guard:
            if self.is_interrupted:
                raise _Interrupted
            try:
                return super()._run(call)
            except Unavailable as error:
                if code(error.__cause__) != sqlite3.SQLITE_BUSY:
                    raise
                self._set_interrupted()
                raise _Interrupted from error

    def _note(self, statement: Statement) -> None:
        if statement.is_dml:
            self._has_lock = True

    def _set_interrupted(self) -> None:
        self.is_interrupted = True
        self.failure = _Interrupted()  # even if the work ignores the error
