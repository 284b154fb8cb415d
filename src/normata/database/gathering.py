"""One turn for all that wait: what is asked while a turn is under way goes along with the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from normata.database import Unavailable

CROWDED = "too many others are waiting for the database"

Q = TypeVar("Q")
A = TypeVar("A")

Serve = Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]]


class Gathering(Generic[Q, A]):
    """Has ``serve`` answer many questions at once: with an answer or an error for each, in their order.

    Nobody is answered from before they came: a turn begins after those that it is for have asked. What ``serve`` raises
    is raised for all of its turn. Whoever waits longer than ``patience`` (seconds) for their turn to begin is told
    Unavailable, and nothing is done for them. ``at_once`` is how many a turn is for at most; null for no bound.
    """

    def __init__(self, serve: Serve[Q, A], patience: float, *, at_once: int | None = None) -> None:
        self._serve = serve
        self._patience = patience
        self._at_once = at_once
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
            _tell(asked[1], Unavailable(CROWDED))

    async def _serve_all(self) -> None:
        while self._waiting:
            turn = [asked for asked in self._waiting[: self._at_once] if not asked[1].done()]  # who has gone needs none
            del self._waiting[: self._at_once]
            if turn:
                await self._serve_turn(turn)

    async def _serve_turn(self, turn: Sequence[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._serve([question for question, _ in turn])
            for (_, waiter), answer in zip(turn, answers, strict=True):
                _tell(waiter, answer)
        except Exception as error:  # all of them wait for it, so all of them are told
            for _, waiter in turn:
                _tell(waiter, error)
        finally:
            for _, waiter in turn:
                waiter.cancel()  # as this has been, where they have no answer now


def _tell(waiter: asyncio.Future[A], answer: A | Exception) -> None:
    if waiter.done():
        return
    if isinstance(answer, Exception):
        waiter.set_exception(answer)
    else:
        waiter.set_result(answer)
