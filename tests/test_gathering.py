"""What is done for all that wait at once: in their order, for those only who still want it, a bounded number a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from normata.database import Unavailable
from normata.database.gathering import Gathering


class Hatch:
    """Answers each number with its text, an odd one with an error, and notes its turns; it serves when it is open."""

    def __init__(self) -> None:
        self.turns: list[list[int]] = []
        self.open = asyncio.Event()

    async def __call__(self, numbers: Sequence[int]) -> list[str | Exception]:
        self.turns.append(list(numbers))
        await self.open.wait()
        return [LookupError(str(number)) if number % 2 else str(number) for number in numbers]


async def a_moment() -> None:
    """Let everybody run who can."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_each_has_its_own_answer_and_a_turn_is_no_longer_than_it_may_be() -> None:
    async def run() -> None:
        hatch = Hatch()
        hatch.open.set()
        gathering = Gathering(hatch, 30, at_once=64)
        outcomes = await asyncio.gather(*(gathering.ask(number) for number in range(200)), return_exceptions=True)
        assert outcomes[::2] == [str(number) for number in range(0, 200, 2)]
        assert [str(error) for error in outcomes[1::2] if isinstance(error, LookupError)] == [
            str(number) for number in range(1, 200, 2)
        ]
        assert [len(turn) for turn in hatch.turns] == [64, 64, 64, 8]
        assert [number for turn in hatch.turns for number in turn] == list(range(200))

    asyncio.run(run())


def test_nobody_waits_longer_than_their_patience_for_a_turn_to_begin() -> None:
    async def run() -> None:
        hatch = Hatch()
        gathering = Gathering(hatch, 0.05)
        first = asyncio.create_task(gathering.ask(0))
        await a_moment()
        for number in (2, 4):
            with pytest.raises(Unavailable):
                await gathering.ask(number)
        assert not first.done(), "its turn has begun, so it is waited for"
        last = asyncio.create_task(gathering.ask(6))
        await a_moment()
        hatch.open.set()
        assert await first == "0"
        assert await last == "6"
        assert hatch.turns == [[0], [6]]

    asyncio.run(run())


def test_who_has_gone_away_takes_no_part_in_a_turn_and_an_empty_turn_is_none() -> None:
    async def run() -> None:
        hatch = Hatch()
        gathering = Gathering(hatch, 30)
        tasks = [asyncio.create_task(gathering.ask(number)) for number in (0, 2)]
        await a_moment()
        tasks.append(asyncio.create_task(gathering.ask(4)))
        await a_moment()
        tasks[1].cancel()
        tasks[2].cancel()
        await a_moment()
        hatch.open.set()
        assert await tasks[0] == "0"
        assert await gathering.ask(6) == "6"
        assert hatch.turns == [[0, 2], [6]]

    asyncio.run(run())


@pytest.mark.parametrize("answers", [[], ["0"], ["0", "1", "2"]], ids=["none", "too few", "too many"])
def test_where_the_answers_do_not_fit_nobody_is_left_waiting(answers: list[str]) -> None:
    async def run() -> None:
        async def serve(_questions: Sequence[int]) -> list[str | Exception]:
            return [*answers]

        gathering = Gathering(serve, 30)
        outcomes = await asyncio.wait_for(
            asyncio.gather(gathering.ask(0), gathering.ask(1), return_exceptions=True), 10
        )
        told = [outcome for outcome in outcomes if not isinstance(outcome, str)]
        assert told or len(answers) > 2
        assert all(isinstance(outcome, ValueError) for outcome in told)

    asyncio.run(run())


def test_who_waits_for_a_turn_that_is_cancelled_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async def serve(_questions: Sequence[int]) -> list[str | Exception]:
            raise asyncio.CancelledError

        gathering = Gathering(serve, 30)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(gathering.ask(0), 10)

    asyncio.run(run())
    assert caplog.records == []
