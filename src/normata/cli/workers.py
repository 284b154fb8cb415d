"""Processes that check parts of a database, so that a check uses all processors."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.core.db.transaction import Transaction
from normata.settings import Settings

T = TypeVar("T")


class Workers:
    """Runs functions over transactions of their own: in other processes, or one after the other where there are none.

    The functions, their arguments and results are sent between processes, so they must be picklable.
    """

    def __init__(self, database: Database, pool: ProcessPoolExecutor | None) -> None:
        self._database = database
        self._pool = pool

    def submit(self, work: Callable[..., T], *arguments: Any, done: Callable[[], None] = lambda: None) -> Future[T]:
        """Have ``work(database, transaction, *arguments)`` done; ``done`` is called once it is."""
        if self._pool is not None:
            started: Future[T] = self._pool.submit(_run, work, arguments)
        else:
            started = Future()
            database = self._database
            try:
                started.set_result(database.read_now(lambda transaction: work(database, transaction, *arguments)))
            except Exception as error:
                started.set_exception(error)
        started.add_done_callback(lambda _: done())
        return started


@contextmanager
def workers(database: Database, settings: Settings, *, are_worth_it: bool) -> Iterator[Workers]:
    """As many processes as there are processors; none if there is one, or where they are not worth their start."""
    processors = len(os.sched_getaffinity(0))
    if not are_worth_it or processors == 1:
        yield Workers(database, None)
        return
    # Not forked, because a forked process would lack the threads of this one.
    pool = ProcessPoolExecutor(processors, multiprocessing.get_context("spawn"), _open, (settings,))
    try:
        yield Workers(database, pool)
    finally:
        pool.shutdown(cancel_futures=True)


_database: Database | None = None  # of this process of the pool, for all of its work


def _open(settings: Settings) -> None:
    global _database  # noqa: PLW0603 - a pool's initializer can keep its result nowhere else
    _database = open_database(settings)


def _run(work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    database = _database
    assert database is not None  # noqa: S101 - narrows the type

    def in_transaction(transaction: Transaction) -> T:
        return work(database, transaction, *arguments)

    return database.read_now(in_transaction)
