"""Running coroutines for callers without an event loop, so that an interrupt always raises KeyboardInterrupt."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_AGAIN = 1.0  # seconds until a call that ignores its cancellation is cancelled again


class Runner:
    """One event loop for all calls: connections cannot move between loops.

    asyncio's own runner raises CancelledError instead of KeyboardInterrupt for an interrupt that arrives just when it
    starts. And what awaits may turn the cancellation into another error, finish all the same, or wait for what never
    comes: asyncpg does so where `executemany` is cancelled while it writes.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run ``call`` and return its result. Raises KeyboardInterrupt after an interrupt, whatever the outcome."""
        task: asyncio.Task[Any] | None = None
        is_interrupted = False

        def interrupt() -> None:
            nonlocal is_interrupted
            if is_interrupted:
                raise KeyboardInterrupt  # the second interrupt
            is_interrupted = True
            if task is not None and not task.done():
                task.get_loop().call_soon_threadsafe(cancel)

        def cancel() -> None:
            if task is not None and not task.done():
                task.cancel()
                task.get_loop().call_later(_AGAIN, cancel)

        async def called() -> T:
            nonlocal task
            task = asyncio.current_task()
            if is_interrupted:
                raise asyncio.CancelledError
            return await call()

        with _interrupts(interrupt):
            try:
                result = self._runner.run(called())
            except BaseException:
                if task is not None and task.done() and not task.cancelled():
                    task.exception()  # retrieve it, or asyncio would log a SystemExit as unseen
                if not is_interrupted:
                    raise
        if is_interrupted:
            raise KeyboardInterrupt
        return result

    def close(self) -> None:
        """Close the event loop."""
        self._runner.close()


@contextmanager
def _interrupts(handle: Callable[[], None]) -> Iterator[None]:
    """Handle interrupts for a block, where Python would raise KeyboardInterrupt anywhere.

    Only the main thread gets signals. A program's own handlers stay in place.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_default or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: handle())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
