"""Threads on which calls wait for their turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from normata.core.db.batching import CROWDED, ENDING
from normata.core.db.monitoring import WaitMonitor
from normata.core.db.transaction import T
from normata.errors import Unavailable


class Worker:
    """Runs calls on ``threads`` threads. ``waits`` gets how long each waits for its turn, at most ``timeout``."""

    def __init__(self, name: str, timeout: float, waits: WaitMonitor, threads: int = 1) -> None:
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._waits = waits
        self._closed = False

    async def run(self, call: Callable[[], T]) -> T:
        """Run ``call`` on a thread and return its result. Raises Unavailable if its turn does not come in time.

        Once it runs, this waits for it, because it may succeed; SQLite's own time-out limits that.
        """
        if self._closed:
            raise Unavailable(ENDING, "ending")
        began = time.perf_counter()
        self._waits.begin()
        outcome = self._threads.submit(partial(self._run_in_turn, call, began))
        waiter = asyncio.wrap_future(outcome)
        try:
            done, _ = await asyncio.wait({waiter}, timeout=self._timeout)
            if not done and outcome.cancel():
                self._waits.end(time.perf_counter() - began)
                raise Unavailable(CROWDED, "crowded")
            return await waiter
        except asyncio.CancelledError:
            if not outcome.cancelled() and outcome.cancel():  # nobody waits for it any more
                self._waits.end(time.perf_counter() - began)
            raise

    def close(self) -> None:
        """Accept no more calls, and wait for those in progress."""
        self._closed = True
        self._threads.shutdown()

    def _run_in_turn(self, call: Callable[[], T], began: float) -> T:
        self._waits.end(time.perf_counter() - began)
        return call()
