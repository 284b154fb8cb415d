"""Turns for work that needs much time or memory: few at a time, and fair between callers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_MOST_WAITING = 1_000  # for all keys together; with more, nobody would wait long enough


class QueueFull(Exception):
    """Too many calls wait for a turn, of this key or in total."""


class FairQueue:
    """Lets ``at_once`` calls through at a time, while at most ``waiting`` of each key wait.

    The waiting keys take turns (round robin), so that a key with many calls delays only itself. Each process has its
    own queue.
    """

    def __init__(self, at_once: int, *, waiting: int) -> None:
        self._at_once = self._free = at_once
        self._most_waiting = waiting
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by key, the next one first

    @property
    def is_idle(self) -> bool:
        """Whether no call has a turn or waits for one."""
        return self._free == self._at_once

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait for the turn of a key, and hold it for the block. Raises QueueFull immediately."""
        if self._free:  # then nobody is waiting
            self._free -= 1
        else:
            await self._wait(key)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, key: str) -> None:
        line = self._waiting.get(key, ())
        if len(line) >= self._most_waiting or sum(map(len, self._waiting.values())) >= _MOST_WAITING:
            raise QueueFull
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was cancelled just after its turn had come
                self._pass_on()
            else:
                self._leave(key, turn)
            raise

    def _leave(self, key: str, turn: asyncio.Future[None]) -> None:
        line = self._waiting.get(key)
        if line is None or turn not in line:  # it was passed over since it was cancelled
            return
        line.remove(turn)
        if not line:
            del self._waiting[key]

    def _pass_on(self) -> None:
        """Pass a finished turn to the next key, which then moves to the end.

        A call that was cancelled may not have left yet: its task only learns of that when it runs again.
        """
        while self._waiting:
            key = next(iter(self._waiting))
            line = self._waiting.pop(key)
            turn = line.popleft()
            if line:
                self._waiting[key] = line
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
