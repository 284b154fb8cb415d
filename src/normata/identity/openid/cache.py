"""A cache of data from the provider."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

LIFETIME = 300.0  # seconds until the data is fetched again
PAUSE = 10.0  # minimum seconds between two fetches


class CachedFetch(Generic[T]):
    """A value that one task fetches for all callers.

    A failure is cached as well, for a pause: while the provider is down, callers fail immediately, without further
    requests.
    """

    def __init__(self, fetch: Callable[[], Awaitable[T]]) -> None:
        self._fetch = fetch
        self._task: asyncio.Task[T] | None = None
        self._since = 0.0

    async def get(self, *, anew: bool = False) -> T:
        """The value; with ``anew`` one that is not older than a pause. Raises the errors of the fetch."""
        age = time.monotonic() - self._since
        task = self._task
        if task is None or (task.done() and age >= self._lifetime(task, anew=anew)):
            task = self._task = asyncio.create_task(self._run())
            self._since = time.monotonic()
        # A cancelled request must not cancel the fetch for the others.
        return await asyncio.shield(task)

    async def _run(self) -> T:
        return await self._fetch()

    @staticmethod
    def _lifetime(task: asyncio.Task[T], *, anew: bool) -> float:
        if task.cancelled():
            return 0.0
        return PAUSE if anew or task.exception() is not None else LIFETIME
