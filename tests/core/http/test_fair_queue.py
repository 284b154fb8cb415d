"""Turns: how many at once, whose is next, and who is refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from normata.core.http import fair_queue
from normata.core.http.fair_queue import FairQueue, QueueFull


class Calls:
    """Calls that wait for turns of a queue, and have them until they are told to end."""

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self.begun: list[str] = []
        self.refused: list[str] = []

    async def come(self, *names: str) -> None:
        """Calls of these names come, each of the key that is its first letter."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._call(name))
            await asyncio.sleep(0)

    async def end(self, *names: str) -> None:
        """These give their turns back."""
        for name in names:
            self._ends[name].set()
            await self._tasks[name]
            await asyncio.sleep(0)

    async def cancel(self, *names: str) -> None:
        """Nobody awaits these any more."""
        for name in names:
            self._tasks[name].cancel()
        await asyncio.gather(*(self._tasks[name] for name in names), return_exceptions=True)
        await asyncio.sleep(0)

    async def end_all(self) -> Sequence[str]:
        """All end in the order in which they have begun; the names in that order."""
        ended = 0
        while ended < len(self.begun):
            await self.end(self.begun[ended])
            ended += 1
        return self.begun

    async def _call(self, name: str) -> None:
        try:
            async with self._queue.turn(name[0]):
                self.begun.append(name)
                await self._ends[name].wait()
        except QueueFull:
            self.refused.append(name)


def test_turns_go_round_the_keys_and_within_a_key_by_arrival() -> None:
    async def walk() -> None:
        calls = Calls(FairQueue(1, waiting=3))
        await calls.come("a1", "a2", "a3", "a4", "b1", "b2", "c1")
        assert calls.begun == ["a1"]
        assert await calls.end_all() == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]
        assert calls.refused == []

    asyncio.run(walk())


def test_few_have_a_turn_at_once_and_few_of_a_key_wait() -> None:
    async def walk() -> None:
        calls = Calls(FairQueue(2, waiting=2))
        await calls.come("a1", "a2", "a3", "a4", "a5", "b1")
        assert calls.begun == ["a1", "a2"]
        assert calls.refused == ["a5"]
        await calls.end("a1")
        await calls.come("a6")  # one place is free again
        assert calls.refused == ["a5"]
        assert await calls.end_all() == ["a1", "a2", "a3", "b1", "a4", "a6"]
        await calls.come("c1", "c2")
        assert calls.begun[-2:] == ["c1", "c2"]

    asyncio.run(walk())


def test_all_keys_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "_MOST_WAITING", 3)

    async def walk() -> None:
        calls = Calls(FairQueue(1, waiting=3))
        await calls.come("a1", "b1", "c1", "d1", "e1")
        assert calls.refused == ["e1"]

    asyncio.run(walk())


def test_who_has_gone_takes_no_turn() -> None:
    async def walk() -> None:
        queue = FairQueue(1, waiting=3)
        calls = Calls(queue)
        await calls.come("a1", "b1", "b2", "c1")
        await calls.cancel("b1", "c1")
        await calls.end("a1")
        assert calls.begun == ["a1", "b2"]
        await calls.come("d1")
        await calls.cancel("b2")
        assert calls.begun == ["a1", "b2", "d1"]
        await calls.end("d1")
        await calls.come("e1")
        assert calls.begun[-1] == "e1"

    asyncio.run(walk())


def test_a_turn_that_comes_as_its_call_is_cancelled_is_passed_on() -> None:
    async def walk() -> None:
        queue = FairQueue(1, waiting=3)
        calls = Calls(queue)
        async with queue.turn("b"):
            await calls.come("c1")
        await calls.cancel("c1")  # before it has run with the turn that it was just given
        await calls.come("d1")
        assert calls.begun == ["d1"]

    asyncio.run(walk())


def test_whoever_is_cancelled_as_a_turn_ends_leaves_it_to_the_next() -> None:
    """Its task learns of that only after the turn was passed on."""

    async def walk() -> None:
        queue = FairQueue(1, waiting=8)
        calls = Calls(queue)
        await calls.come("A1", "A2", "B1", "A3")
        calls._ends["A1"].set()
        calls._tasks["A2"].cancel()
        await asyncio.gather(*(calls._tasks[name] for name in ("A1", "A2")), return_exceptions=True)
        assert not calls._tasks["A1"].exception()
        assert calls._tasks["A2"].cancelled()
        assert await calls.end_all() == ["A1", "B1", "A3"]
        assert queue.is_idle

    asyncio.run(walk())


@pytest.mark.parametrize("seed", range(20))
def test_turns_are_never_lost(seed: int) -> None:
    """However calls end and are cancelled within one turn of the loop."""

    async def walk() -> None:
        rng, queue = random.Random(seed), FairQueue(2, waiting=100)  # noqa: S311 - no secret
        calls = Calls(queue)
        names = [f"{rng.choice('ABC')}{number}" for number in range(30)]
        await calls.come(*names)
        for name in rng.sample(names, len(names)):
            if rng.random() < 0.5:
                calls._tasks[name].cancel()
            else:
                calls._ends[name].set()
            if rng.random() < 0.3:
                await asyncio.sleep(0)
        await asyncio.gather(*calls._tasks.values(), return_exceptions=True)
        assert all(one.cancelled() or one.exception() is None for one in calls._tasks.values())
        assert queue.is_idle
        await calls.come("D1")
        assert calls.begun[-1] == "D1"
        await calls.end("D1")

    asyncio.run(walk())
