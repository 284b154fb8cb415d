"""Reads: each a snapshot of its own, one at a time on a thread."""

from __future__ import annotations

import sqlite3
from functools import partial

from normata.core.db.monitoring import WaitMonitor
from normata.core.db.sqlite.connection import Connections, File
from normata.core.db.sqlite.transaction import SQLiteTransaction, run_work
from normata.core.db.sqlite.worker import Worker
from normata.core.db.statements import Statements
from normata.core.db.transaction import T, Work


class Reader:
    """Runs work that reads.

    There is one thread: sqlite3 releases Python's lock for each row and waits to get it back, so that four readers of
    one process build fewer pages per second than one. To use more cores, run more processes. ``name`` is that of the
    thread, ``waits`` gets how long work waits for its turn.
    """

    def __init__(self, file: File, statements: Statements, timeout: float, *, name: str, waits: WaitMonitor) -> None:
        self._file = file
        self._statements = statements
        self._connections = Connections(file, only_reads=True)
        self._worker = Worker(name, timeout, waits)

    async def run(self, work: Work[T]) -> T:
        """Run ``work`` on the thread and return its result. Raises Unavailable if its turn does not come in time."""
        return await self._worker.run(partial(self.run_here, work))

    def run_here(self, work: Work[T]) -> T:
        """Run ``work`` on the calling thread and return its result."""
        try:
            with self._connections.lease() as connection:
                connection.execute("BEGIN")
                result = run_work(work, SQLiteTransaction(connection, self._statements, self._file))
                if connection.in_transaction:  # a damaged file may have ended it
                    connection.execute("ROLLBACK")  # nothing to commit
        except sqlite3.Error as error:
            translated = self._file.translate(error)
            if translated is error:
                raise
            raise translated from error
        return result

    def close(self) -> None:
        """Wait for the work in progress, and close the connections."""
        self._worker.close()
        self._connections.close()
