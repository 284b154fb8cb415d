"""Writes: all waiting writes run in one transaction, one after the other, and are committed together.

With full sync, the flush at the end of a transaction takes longer than the rest, and no longer for many changes than
for one.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

from normata.core.db.batching import ENDING, Batcher
from normata.core.db.monitoring import Monitor, measured_wait
from normata.core.db.sqlite.connection import Connection, Connections, File, begin
from normata.core.db.sqlite.transaction import SQLiteTransaction, run_work
from normata.core.db.statements import Statements
from normata.core.db.transaction import T, Work
from normata.errors import Unavailable

_LIMIT = 64  # writes in one transaction, during which nobody else can write

# Seconds that a batch waits for the writes of other clients that are likely to follow, since one flush serves all. It
# also has the event loop and the writer's thread take turns: when both are busy, each takes Python's lock from the
# other at every statement, which cost 16 clients a quarter of the time of a create.
_PATIENCE = 0.005


class Writer:
    """Runs work that writes.

    There is one thread, so that writes queue instead of competing for SQLite's lock.
    """

    def __init__(
        self, file: File, statements: Statements, timeout: float, monitor: Monitor, *, free_lock: Callable[[], bool]
    ) -> None:
        """``free_lock`` is called if the lock is held; it returns whether it has made somebody release it."""
        self._file = file
        self._statements = statements
        self._timeout = timeout
        self._connections = Connections(file, cache_mib=8, undoes_in_memory=True)
        self._batcher: Batcher[Work[Any], Any] = Batcher(
            self._serve, timeout, limit=_LIMIT, waits=monitor.waits("writer"), patience=_PATIENCE
        )
        self._free_lock = free_lock
        self._lock_waits = monitor.waits("lock")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="normata-write")
        self._closed = False

    async def run(self, work: Work[T]) -> T:
        """Run ``work`` on the thread, and return its result once it is durable."""
        return cast("T", await self._batcher.ask(work))

    def run_here(self, work: Work[T]) -> T:
        """Run ``work`` on the calling thread, and return its result once it is durable."""
        (outcome,) = self._outcomes([work], time.monotonic() + self._timeout)
        if isinstance(outcome, _Failure):
            raise outcome.error
        return cast("T", outcome)

    async def finish(self) -> None:
        """Accept no more work, and wait for the batch in progress; work for the next batch raises Unavailable."""
        self._closed = True
        await self._batcher.finish()

    def close(self) -> None:
        """Wait for work in progress, and close the connections."""
        self._closed = True
        self._thread.shutdown()
        self._connections.close()

    async def _serve(self, works: Sequence[Work[Any]]) -> list[Any]:
        if self._closed:
            raise Unavailable(ENDING, "ending")
        call = partial(self._outcomes, works, time.monotonic() + self._timeout)
        outcomes = await asyncio.get_running_loop().run_in_executor(self._thread, call)
        return [outcome.error if isinstance(outcome, _Failure) else outcome for outcome in outcomes]

    def _outcomes(self, works: Sequence[Work[Any]], deadline: float) -> list[Any]:
        """The result or failure of each work, once all successful ones are durable."""
        try:
            return self._committed(works, deadline)
        except Exception as error:
            if len(works) == 1 or not isinstance(error, sqlite3.IntegrityError):
                return [_Failure(self._file.translate(error))] * len(works)
        # The commit found a broken reference. Running each work alone shows which one is at fault.
        return [outcome for work in works for outcome in self._outcomes([work], deadline)]

    def _committed(self, works: Sequence[Work[Any]], deadline: float) -> list[Any]:
        with self._connections.lease() as connection:
            self._begin(connection, deadline)
            outcomes = self._run_together(connection, works)
            if outcomes is None:
                connection.execute("ROLLBACK")
                self._begin(connection, deadline)
                outcomes = [self._attempt(connection, work) for work in works]
            connection.execute("COMMIT")
        return outcomes

    def _begin(self, connection: Connection, deadline: float) -> None:
        with measured_wait(self._lock_waits):
            begin(connection, deadline, self._free_lock)

    def _run_together(self, connection: Connection, works: Sequence[Work[Any]]) -> list[Any] | None:
        """The result or failure of each work; null if one has failed after a write.

        Then everything must be rolled back, because there are no savepoints. With one for each work, SQLite would copy
        every changed page. That took a tenth of the time of a restore, and work rarely fails after a write.
        """
        outcomes: list[Any] = []
        for work in works:
            transaction = SQLiteTransaction(connection, self._statements, self._file)
            written = connection.total_changes
            try:
                outcomes.append(run_work(work, transaction))
            except Exception as error:
                if len(works) == 1:
                    raise
                if not connection.in_transaction:  # SQLite has rolled back all works
                    raise (transaction.failure or error) from error
                if connection.total_changes != written:
                    return None
                outcomes.append(_Failure(self._file.translate(error)))
        return outcomes

    def _attempt(self, connection: Connection, work: Work[Any]) -> Any:
        """The result of ``work``, or its failure if it has written nothing."""
        transaction = SQLiteTransaction(connection, self._statements, self._file)
        connection.execute("SAVEPOINT work")
        try:
            outcome = run_work(work, transaction)
        except Exception as error:
            if not connection.in_transaction:  # SQLite has rolled back all works
                raise (transaction.failure or error) from error
            connection.execute("ROLLBACK TO work")
            outcome = _Failure(self._file.translate(error))
        connection.execute("RELEASE work")
        return outcome


class _Failure:
    """An error that a work raised, distinct from an error that a work returned."""

    def __init__(self, error: Exception) -> None:
        self.error = error
