"""Reads: each a snapshot of its own, on threads that take one after the other."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from functools import partial

from normata.core.db.monitoring import WaitMonitor
from normata.core.db.sqlite.connection import Connections, File
from normata.core.db.sqlite.transaction import SQLiteTransaction, run_work
from normata.core.db.sqlite.worker import Worker
from normata.core.db.statements import Statements
from normata.core.db.transaction import T, Work

# Steps of SQLite's virtual machine between two looks at the clock: less than a millisecond. Pages take fewer.
_STEPS = 20_000


class Overdue(Exception):
    """A read took longer than its reader allows. It may be run again by another one."""


class Reader:
    """Runs work that reads, on ``threads`` threads.

    Work that takes longer than ``limit`` seconds is interrupted in its next statement; null for no limit. ``name`` is
    that of the threads, ``waits`` gets how long work waits for its turn, ``cache_mib`` is the maximum size of the cache
    of each connection.
    """

    def __init__(
        self,
        file: File,
        statements: Statements,
        timeout: float,
        *,
        name: str,
        waits: WaitMonitor,
        threads: int = 1,
        limit: float | None = None,
        cache_mib: int = 16,
    ) -> None:
        self._file = file
        self._statements = statements
        self._limit = limit
        self._connections = Connections(file, only_reads=True, cache_mib=cache_mib)
        self._worker = Worker(name, timeout, waits, threads)

    async def run(self, work: Work[T]) -> T:
        """Run ``work`` on a thread and return its result. If this is cancelled, the work is interrupted.

        Raises Unavailable if its turn does not come in time, and Overdue.
        """
        clock = _Clock(self._limit)
        try:
            return await self._worker.run(partial(self._run, work, clock))
        except asyncio.CancelledError:
            clock.is_cancelled = True
            raise

    def run_here(self, work: Work[T]) -> T:
        """Run ``work`` on the calling thread, without a limit, and return its result."""
        return self._run(work, None)

    def close(self) -> None:
        """Wait for the work in progress, and close the connections."""
        self._worker.close()
        self._connections.close()

    def _run(self, work: Work[T], clock: _Clock | None) -> T:
        try:
            with self._connections.lease() as connection:
                connection.execute("BEGIN")
                if clock is not None:
                    clock.start()
                    connection.set_progress_handler(clock.is_over, _STEPS)
                try:
                    result = run_work(work, SQLiteTransaction(connection, self._statements, self._file))
                except Exception as error:
                    if clock is not None and clock.has_interrupted:
                        raise Overdue from error  # which leaves the connection open, with what it has cached
                    raise
                finally:
                    connection.set_progress_handler(None, 0)
                if connection.in_transaction:  # a damaged file may have ended it
                    connection.execute("ROLLBACK")  # nothing to commit
        except sqlite3.Error as error:
            translated = self._file.translate(error)
            if translated is error:
                raise
            raise translated from error
        return result


class _Clock:
    """The time of one work. SQLite asks whether it is over, on the thread of the work."""

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._end = float("inf")
        self.is_cancelled = False
        self.has_interrupted = False

    def start(self) -> None:
        """The work begins."""
        if self._limit is not None:
            self._end = time.monotonic() + self._limit

    def is_over(self) -> bool:
        """Whether the statement is to be interrupted."""
        self.has_interrupted = self.is_cancelled or time.monotonic() >= self._end
        return self.has_interrupted
