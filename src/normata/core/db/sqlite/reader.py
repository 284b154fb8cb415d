"""Reads: each a snapshot of its own, one at a time on a thread."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from normata.core.db.batching import CROWDED, ENDING
from normata.core.db.sqlite.connection import Connections, File
from normata.core.db.sqlite.transaction import SQLiteTransaction, finished
from normata.core.db.statements import Statements
from normata.core.db.transaction import T, Work
from normata.core.db.watching import Watcher
from normata.errors import Unavailable


class Reader:
    """Runs work that reads.

    There is one thread: sqlite3 gives Python's lock away for each row and waits to have it back, so that four readers
    of one process build fewer pages a second than one. More cores are for more processes.
    """

    def __init__(self, file: File, statements: Statements, timeout: float, watcher: Watcher) -> None:
        self._file = file
        self._statements = statements
        self._timeout = timeout
        self._connections = Connections(file, only_reads=True)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="normata-read")
        self._waits = watcher.waits("reader")
        self._closed = False

    async def run(self, work: Work[T]) -> T:
        """What ``work`` returns on the thread. Raises Unavailable where its turn does not come in time.

        Once it runs it is waited for, since it may succeed; SQLite's own time-out bounds that.
        """
        if self._closed:
            raise Unavailable(ENDING, "ending")
        began = time.perf_counter()
        self._waits.begin()
        outcome = self._thread.submit(partial(self._run_in_turn, work, began))
        waiter = asyncio.wrap_future(outcome)
        try:
            done, _ = await asyncio.wait({waiter}, timeout=self._timeout)
            if not done and outcome.cancel():
                self._waits.end(time.perf_counter() - began)
                raise Unavailable(CROWDED, "crowded")
            return await waiter
        except asyncio.CancelledError:
            if not outcome.cancelled() and outcome.cancel():  # nobody awaits it any more
                self._waits.end(time.perf_counter() - began)
            raise

    def _run_in_turn(self, work: Work[T], began: float) -> T:
        self._waits.end(time.perf_counter() - began)
        return self.run_here(work)

    def run_here(self, work: Work[T]) -> T:
        """What ``work`` returns, on the thread that calls this."""
        try:
            with self._connections.lease() as connection:
                connection.execute("BEGIN")
                result = finished(work, SQLiteTransaction(connection, self._statements, self._file))
                if connection.in_transaction:  # a damaged file may have ended it
                    connection.execute("ROLLBACK")  # there is nothing to commit
        except sqlite3.Error as error:
            told = self._file.told(error)
            if told is error:
                raise
            raise told from error
        return result

    def close(self) -> None:
        """Wait for what is under way, and close the connections."""
        self._closed = True
        self._thread.shutdown()
        self._connections.close()
