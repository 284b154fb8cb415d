"""Calls that wait are served together: in their order, only those that are still awaited, a bounded number a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar

import pytest

from normata.core.db.batching import Batcher
from normata.errors import Unavailable


class Server:
    """Answers each number with its text, an odd one with an error, and notes its batches; it serves when it is open."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.open = asyncio.Event()

    async def __call__(self, numbers: Sequence[int]) -> list[str | Exception]:
        self.batches.append(list(numbers))
        await self.open.wait()
        return [LookupError(str(number)) if number % 2 else str(number) for number in numbers]


async def a_moment() -> None:
    """Let every task run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_each_call_has_its_own_answer_and_a_batch_has_its_bound() -> None:
    async def run() -> None:
        server = Server()
        server.open.set()
        batcher = Batcher(server, 30, limit=64)
        outcomes = await asyncio.gather(*(batcher.ask(number) for number in range(200)), return_exceptions=True)
        assert outcomes[::2] == [str(number) for number in range(0, 200, 2)]
        assert [str(error) for error in outcomes[1::2] if isinstance(error, LookupError)] == [
            str(number) for number in range(1, 200, 2)
        ]
        assert [len(batch) for batch in server.batches] == [64, 64, 64, 8]
        assert [number for batch in server.batches for number in batch] == list(range(200))

    asyncio.run(run())


def test_no_call_waits_longer_than_the_time_out_for_its_batch_to_begin() -> None:
    async def run() -> None:
        server = Server()
        batcher = Batcher(server, 0.05)
        first = asyncio.create_task(batcher.ask(0))
        await a_moment()
        for number in (2, 4):
            with pytest.raises(Unavailable):
                await batcher.ask(number)
        assert not first.done(), "its batch has begun, so it is waited for"
        last = asyncio.create_task(batcher.ask(6))
        await a_moment()
        server.open.set()
        assert await first == "0"
        assert await last == "6"
        assert server.batches == [[0], [6]]

    asyncio.run(run())


def test_a_call_that_is_cancelled_is_left_out_and_an_empty_batch_is_none() -> None:
    async def run() -> None:
        server = Server()
        batcher = Batcher(server, 30)
        tasks = [asyncio.create_task(batcher.ask(number)) for number in (0, 2)]
        await a_moment()
        tasks.append(asyncio.create_task(batcher.ask(4)))
        await a_moment()
        tasks[1].cancel()
        tasks[2].cancel()
        await a_moment()
        server.open.set()
        assert await tasks[0] == "0"
        assert await batcher.ask(6) == "6"
        assert server.batches == [[0, 2], [6]]

    asyncio.run(run())


@pytest.mark.parametrize("answers", [[], ["0"], ["0", "1", "2"]], ids=["none", "too few", "too many"])
def test_where_the_answers_do_not_fit_no_call_waits_for_ever(answers: list[str]) -> None:
    async def run() -> None:
        async def serve(_questions: Sequence[int]) -> list[str | Exception]:
            return [*answers]

        batcher = Batcher(serve, 30)
        outcomes = await asyncio.wait_for(asyncio.gather(batcher.ask(0), batcher.ask(1), return_exceptions=True), 10)
        errors = [outcome for outcome in outcomes if not isinstance(outcome, str)]
        assert errors or len(answers) > 2
        assert all(isinstance(outcome, ValueError) for outcome in errors)

    asyncio.run(run())


def test_a_call_whose_batch_is_cancelled_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async def serve(_questions: Sequence[int]) -> list[str | Exception]:
            raise asyncio.CancelledError

        batcher = Batcher(serve, 30)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(batcher.ask(0), 10)

    asyncio.run(run())
    assert caplog.records == []


def test_a_batch_is_served_in_the_context_of_none_of_its_calls() -> None:
    caller: ContextVar[str] = ContextVar("caller", default="nobody")

    async def run() -> None:
        async def serve(questions: Sequence[int]) -> list[str | Exception]:
            return [caller.get()] * len(questions)

        caller.set("somebody")
        assert await Batcher(serve, 30).ask(0) == "nobody"

    asyncio.run(run())


def test_a_batch_begins_at_once_and_waits_for_nobody() -> None:
    """Also where the one before had several calls: who comes later goes with the next one."""

    async def run() -> None:
        server = Server()
        server.open.set()
        batcher = Batcher(server, 30)
        await asyncio.gather(*(batcher.ask(number) for number in (0, 2, 4)))
        back = asyncio.create_task(batcher.ask(6))
        await a_moment()
        assert server.batches == [[0, 2, 4], [6]]
        assert await back == "6"

    asyncio.run(run())


def test_it_finishes_once_no_call_is_left() -> None:
    async def run() -> None:
        server = Server()
        batcher = Batcher(server, 30)
        await batcher.finish()
        tasks = [asyncio.create_task(batcher.ask(number)) for number in (0, 2)]
        await a_moment()
        finishing = asyncio.create_task(batcher.finish())
        await a_moment()
        assert not finishing.done()
        server.open.set()
        await asyncio.wait_for(finishing, 10)
        assert [task.result() for task in tasks] == ["0", "2"]

    asyncio.run(run())
