"""Batches: all waiting calls are served together, and later ones are in the next batch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Generic, NamedTuple, TypeVar

from normata.core.db.monitoring import WaitMonitor
from normata.errors import Unavailable

CROWDED = "too many others are waiting for the database"
ENDING = "the service is ending"

Q = TypeVar("Q")
A = TypeVar("A")

Serve = Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]]


class _Call(NamedTuple, Generic[Q, A]):
    """A call that waits for its answer, with the time since when."""

    question: Q
    answer: asyncio.Future[A]
    began: float


class Batcher(Generic[Q, A]):
    """Calls ``serve`` for many calls at once; it returns an answer or an error for each, in order.

    A batch begins after all its calls were made, so no answer is older than its call. An error of ``serve`` is raised
    for all calls of its batch. A call that waits longer than ``timeout`` seconds for its batch to begin raises
    Unavailable, and nothing is done for it. A batch has at most ``limit`` calls; null for no bound. ``waits`` gets how
    long each call waits for its batch; null to not measure it.

    With ``patience``, in seconds, a batch waits for as many calls as the previous one served and left waiting, because
    clients send the next request once they have their answers. It starts without them when the time since the end of
    the previous batch is as long as that batch took, or as ``patience``. If it waited in vain, the next one does not
    wait. A single call waits only if a batch of several has just ended.
    """

    def __init__(
        self,
        serve: Serve[Q, A],
        timeout: float,
        *,
        limit: int | None = None,
        waits: WaitMonitor | None = None,
        patience: float = 0.0,
    ) -> None:
        self._serve = serve
        self._timeout = timeout
        self._limit = limit
        self._waits = waits
        self._patience = patience
        self._expected = 0  # of the next batch
        self._expected_until = 0.0  # in the clock of the event loop
        self._complete: asyncio.Event | None = None  # set when all expected calls have arrived; null if no batch waits
        self._waiting: list[_Call[Q, A]] = []
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        """The answer to a call."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        call = _Call(question, answer, time.perf_counter() if self._waits else 0.0)
        self._waiting.append(call)
        if self._waits:
            self._waits.begin()
        if self._complete is not None and len(self._waiting) >= self._expected:
            self._complete.set()
        if self._serving is None or self._serving.done():
            # In an empty context, because the task serves the calls of others, too.
            self._serving = asyncio.create_task(self._serve_all(), context=Context())
        timer = loop.call_later(self._timeout, self._refuse, call)
        try:
            return await answer
        finally:
            timer.cancel()

    async def finish(self) -> None:
        """Wait until no call is left."""
        if self._serving is not None and not self._serving.done():
            await asyncio.wait({self._serving})

    def _refuse(self, call: _Call[Q, A]) -> None:
        with suppress(ValueError):  # its batch has begun, so it is going to be answered
            self._waiting.remove(call)
            self._end_waits([call])
            _set_result(call.answer, Unavailable(CROWDED, "crowded"))

    async def _serve_all(self) -> None:
        while self._waiting:
            is_complete = await self._gather()
            taken = self._waiting[: self._limit]
            del self._waiting[: self._limit]
            self._end_waits(taken)
            batch = [call for call in taken if not call.answer.done()]  # nobody waits for the others any more
            if batch:
                began = time.perf_counter()
                await self._serve_batch(batch)
                expected = len(batch) + len(self._waiting) if is_complete else 0
                self._expect(expected, time.perf_counter() - began)

    def _expect(self, calls: int, seconds: float) -> None:
        """Set the expected number of calls of the next batch, after one that took this long."""
        if self._patience:
            self._expected = min(calls, self._limit or calls)
            self._expected_until = asyncio.get_running_loop().time() + min(seconds, self._patience)

    async def _gather(self) -> bool:
        """Wait until the expected calls have arrived, or the time is over; returns false if it waited in vain."""
        loop = asyncio.get_running_loop()
        if len(self._waiting) >= self._expected or loop.time() >= self._expected_until:
            return True
        self._complete = asyncio.Event()
        timer = loop.call_at(self._expected_until, self._complete.set)
        try:
            await self._complete.wait()
        finally:
            timer.cancel()
            self._complete = None
        return len(self._waiting) >= self._expected

    def _end_waits(self, calls: Sequence[_Call[Q, A]]) -> None:
        if self._waits:
            moment = time.perf_counter()
            for call in calls:
                self._waits.end(moment - call.began)

    async def _serve_batch(self, batch: Sequence[_Call[Q, A]]) -> None:
        try:
            answers = await self._serve([call.question for call in batch])
            for call, answer in zip(batch, answers, strict=True):
                _set_result(call.answer, answer)
        except Exception as error:  # each call of the batch gets the error
            for call in batch:
                _set_result(call.answer, error)
        finally:
            for call in batch:
                call.answer.cancel()  # the task was cancelled, so calls without an answer are, too


def _set_result(waiter: asyncio.Future[A], answer: A | Exception) -> None:
    if waiter.done():
        return
    if isinstance(answer, Exception):
        waiter.set_exception(answer)
    else:
        waiter.set_result(answer)
