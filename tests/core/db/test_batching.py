"""Calls that wait are served together: in their order, only those that are still awaited, a bounded number a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from itertools import count

import pytest

from normata.core.db.batching import Batcher
from normata.errors import Unavailable


class Server:
    """Answers each number with its text, an odd one with an error, and notes its batches; it serves when it is open."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun = asyncio.Event()  # with each batch
        self.open = asyncio.Event()

    async def __call__(self, numbers: Sequence[int]) -> list[str | Exception]:
        self.batches.append(list(numbers))
        self.begun.set()
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


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch seems to take a minute, so that the next one may wait as long as that."""
    clock = count(step=60)
    monkeypatch.setattr("normata.core.db.batching.time.perf_counter", lambda: float(next(clock)))


@pytest.mark.usefixtures("slow")
def test_a_batch_waits_for_as_many_calls_as_were_served_and_left_waiting_before() -> None:
    async def run() -> None:
        server = Server()
        batcher = Batcher(server, 30, patience=30)
        first = [asyncio.create_task(batcher.ask(number)) for number in (0, 2)]
        await a_moment()
        left = asyncio.create_task(batcher.ask(4))
        await a_moment()
        server.open.set()
        assert await asyncio.gather(*first) == ["0", "2"]
        back = [asyncio.create_task(batcher.ask(6))]
        await a_moment()
        assert server.batches == [[0, 2]], "the third one is likely to come"
        back.append(asyncio.create_task(batcher.ask(8)))
        assert await asyncio.wait_for(asyncio.gather(left, *back), 10) == ["4", "6", "8"]
        assert server.batches == [[0, 2], [4, 6, 8]]

    asyncio.run(run())


def test_a_batch_waits_no_longer_than_its_patience_for_calls_that_do_not_come() -> None:
    async def run() -> None:
        server = Server()
        server.open.set()
        batcher = Batcher(server, 30, patience=0.01)
        await asyncio.gather(*(batcher.ask(number) for number in (0, 2, 4)))
        assert await asyncio.wait_for(batcher.ask(6), 10) == "6"
        assert server.batches == [[0, 2, 4], [6]]

    asyncio.run(run())


@pytest.mark.usefixtures("slow")
def test_after_a_wait_in_vain_the_next_batch_begins_at_once() -> None:
    async def run() -> None:
        server = Server()
        server.open.set()
        batcher = Batcher(server, 30, patience=0.05)
        await asyncio.gather(batcher.ask(0), batcher.ask(2))
        server.open.clear()
        server.begun.clear()
        alone = asyncio.create_task(batcher.ask(4))
        await server.begun.wait()
        behind = asyncio.create_task(batcher.ask(6))
        await a_moment()
        server.open.set()
        assert await alone == "4"
        await a_moment()
        assert server.batches == [[0, 2], [4], [6]]
        assert await behind == "6"

    asyncio.run(run())


@pytest.mark.usefixtures("slow")
def test_calls_that_come_alone_wait_for_nobody() -> None:
    async def run() -> None:
        server = Server()
        server.open.set()
        batcher = Batcher(server, 30, patience=30)
        for number in (0, 2, 4):
            assert await asyncio.wait_for(batcher.ask(number), 10) == str(number)

    asyncio.run(run())


@pytest.mark.usefixtures("slow")
def test_a_batch_that_is_full_waits_for_nobody() -> None:
    async def run() -> None:
        server = Server()
        server.open.set()
        batcher = Batcher(server, 30, limit=2, patience=30)
        for _ in range(2):
            await asyncio.wait_for(asyncio.gather(*(batcher.ask(number) for number in (0, 2, 4, 6))), 10)
        assert [len(batch) for batch in server.batches] == [2, 2, 2, 2]

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
