"""One turn for all that wait: what is asked while a turn is under way goes along with the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from normata.database import Unavailable

Q = TypeVar("Q")
A = TypeVar("A")

# A turn is as long as what is done for all of it, and whoever else the event loop serves may have to wait for that.
_AT_ONCE = 64

Serve = Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]]


class Gathering(Generic[Q, A]):
    """Has ``serve`` answer many questions at once: with an answer or an error for each, in their order.

    Nobody is answered from before they came: a turn begins after those that it is for have asked. What ``serve`` raises
    is raised for all of its turn. Whoever waits longer than ``patience`` (seconds) for their turn to begin is told
    Unavailable, and nothing is done for them.
    """

    def __init__(self, serve: Serve[Q, A], patience: float) -> None:
        self._serve = serve
        self._patience = patience
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        """The answer to a question."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        asked = question, answer
        self._waiting.append(asked)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve_all())
        timer = loop.call_later(self._patience, self._send_away, asked)
        try:
            return await answer
        finally:
            timer.cancel()

    def _send_away(self, asked: tuple[Q, asyncio.Future[A]]) -> None:
        with suppress(ValueError):  # its turn has begun, so it is waited for
            self._waiting.remove(asked)
            asked[1].set_exception(Unavailable("too many others are waiting for the database"))

    async def _serve_all(self) -> None:
        while self._waiting:
            turn = [asked for asked in self._waiting[:_AT_ONCE] if not asked[1].done()]  # who has gone away needs none
            del self._waiting[:_AT_ONCE]
            if not turn:
                continue
            try:
                answers = await self._serve([question for question, _ in turn])
            except asyncio.CancelledError:
                for _, waiter in turn:
                    waiter.cancel()
                raise
            except Exception as error:  # all of them wait for it, so all of them are told
                answers = [error] * len(turn)
            for (_, waiter), answer in zip(turn, answers, strict=True):
                if waiter.done():
                    continue
                if isinstance(answer, Exception):
                    waiter.set_exception(answer)
                else:
                    waiter.set_result(answer)
