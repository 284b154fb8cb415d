"""Limits of simultaneous long reads, so that one organization or caller cannot take all processors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from math import ceil

from normata.core.http.fair_queue import FairQueue, QueueFull
from normata.core.http.problems import TooManyRequests

_MOST_WAITING = 8  # of one caller
_PATIENCE = 5.0  # seconds to wait for a turn
_TOO_MANY = "Too many long reads of this organization, or of this user, are in progress; wait as Retry-After says."


class LongReads:
    """Allows ``of_organization`` and ``of_caller`` long reads at a time, shared by the workers; 0 is no limit.

    Further ones wait. The callers of an organization take turns, so that one with many reads delays only itself.
    """

    def __init__(self, of_organization: int, of_caller: int, *, workers: int = 1) -> None:
        self._organizations = _Queues(ceil(of_organization / workers))
        self._callers = _Queues(ceil(of_caller / workers))

    @asynccontextmanager
    async def turn(self, organization_id: str, caller_id: str) -> AsyncIterator[None]:
        """Wait for a turn of a caller in an organization (empty: none), and hold it for the block.

        Raises TooManyRequests.
        """
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(_PATIENCE):
                    await stack.enter_async_context(self._callers.turn(caller_id, ""))
                    if organization_id:
                        await stack.enter_async_context(self._organizations.turn(organization_id, caller_id))
            except (QueueFull, TimeoutError):
                raise TooManyRequests(_TOO_MANY, wait=1, reason="long_reads") from None
            yield


class _Queues:
    """A queue for each key that has turns, or waits for some."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._queues: dict[str, FairQueue] = {}

    @asynccontextmanager
    async def turn(self, key: str, within: str) -> AsyncIterator[None]:
        """Wait for a turn of ``within`` in the queue of ``key``, and hold it for the block. Raises QueueFull."""
        if not self._at_once:
            yield
            return
        queue = self._queues.setdefault(key, FairQueue(self._at_once, waiting=_MOST_WAITING))
        try:
            async with queue.turn(within):
                yield
        finally:
            if queue.is_idle:
                self._queues.pop(key, None)
