"""Batches: all calls that wait are served together, and those that come meanwhile go with the next batch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Generic, TypeVar

from normata.errors import Unavailable

CROWDED = "too many others are waiting for the database"
ENDING = "the service is ending"

Q = TypeVar("Q")
A = TypeVar("A")

Serve = Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]]


class Batcher(Generic[Q, A]):
    """Has ``serve`` answer many calls at once: with an answer or an error for each, in their order.

    A batch begins after all its calls were made, so no answer is older than its call. What ``serve`` raises is raised
    for all calls of its batch. A call that waits longer than ``timeout`` seconds for its batch to begin raises
    Unavailable, and nothing is done for it. A batch has at most ``limit`` calls; null for no bound.
    """

    def __init__(self, serve: Serve[Q, A], timeout: float, *, limit: int | None = None) -> None:
        self._serve = serve
        self._timeout = timeout
        self._limit = limit
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        """The answer to a question."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        call = question, answer
        self._waiting.append(call)
        if self._serving is None or self._serving.done():
            # Not in the context of this call: the batches are others' as well.
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

    def _refuse(self, call: tuple[Q, asyncio.Future[A]]) -> None:
        with suppress(ValueError):  # its batch has begun, so it gets its answer
            self._waiting.remove(call)
            _settle(call[1], Unavailable(CROWDED))

    async def _serve_all(self) -> None:
        while self._waiting:
            batch = [call for call in self._waiting[: self._limit] if not call[1].done()]  # nobody awaits the others
            del self._waiting[: self._limit]
            if batch:
                await self._serve_batch(batch)

    async def _serve_batch(self, batch: Sequence[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._serve([question for question, _ in batch])
            for (_, waiter), answer in zip(batch, answers, strict=True):
                _settle(waiter, answer)
        except Exception as error:  # every call of the batch awaits it, so every one gets the error
            for _, waiter in batch:
                _settle(waiter, error)
        finally:
            for _, waiter in batch:
                waiter.cancel()  # this task was cancelled, where a call has no answer by now


def _settle(waiter: asyncio.Future[A], answer: A | Exception) -> None:
    if waiter.done():
        return
    if isinstance(answer, Exception):
        waiter.set_exception(answer)
    else:
        waiter.set_result(answer)
