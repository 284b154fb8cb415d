"""Who asks is asked for many at once, and nobody is answered from before they came."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from normata.database import Unavailable
from normata.database.admission import Admission, Counter

Asked = tuple[list[str], list[str | None]]


def admission(digest: str, organization_id: str | None) -> Admission:
    return Admission(f"user of {digest}", "Name", digest, "read", None, None, organization_id, "revision")


class Desk:
    """Stands in for the database: answers each question when it is told to, and remembers all of them."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._answers: asyncio.Queue[Exception | None] = asyncio.Queue()
        self._came = asyncio.Condition()

    async def __call__(self, digests: list[str], organizations: list[str | None]) -> Sequence[tuple[int, Admission]]:
        async with self._came:
            self.asked.append((digests, organizations))
            self._came.notify_all()
        error = await self._answers.get()
        if error is not None:
            raise error
        found = list(enumerate(zip(digests, organizations, strict=True), 1))
        # Unknown tokens have no admission, and those of two organizations have two.
        return [
            (number, admission(digest, place))
            for number, (digest, organization) in found
            for place in (("one", "two") if digest == "both" else (organization,))
            if digest != "unknown"
        ]

    def answer(self, error: Exception | None = None) -> None:
        """Let one question be answered."""
        self._answers.put_nowait(error)

    async def questions(self, number: int) -> None:
        """Return once so many questions have been asked."""
        async with self._came:
            await asyncio.wait_for(self._came.wait_for(lambda: len(self.asked) >= number), 10)


async def settle() -> None:
    """Let everybody run who can."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_single_one_is_asked_for_at_once() -> None:
    async def run() -> None:
        desk = Desk()
        desk.answer()
        assert await Counter(desk, 30).admit("a", "alpha") == [admission("a", "alpha")]
        assert desk.asked == [(["a"], ["alpha"])]

    asyncio.run(run())


def test_those_that_come_together_are_asked_for_together_and_each_is_told_its_own() -> None:
    async def run() -> None:
        desk = Desk()
        counter = Counter(desk, 30)
        desk.answer()
        wanted = [("a", "alpha"), ("b", None), ("unknown", "alpha"), ("both", None), ("a", "alpha"), ("a", "beta")]
        found = await asyncio.gather(*(counter.admit(*one) for one in wanted))
        assert desk.asked == [([digest for digest, _ in wanted], [place for _, place in wanted])]
        assert found == [
            [admission("a", "alpha")],
            [admission("b", None)],
            [],
            [admission("both", "one"), admission("both", "two")],
            [admission("a", "alpha")],
            [admission("a", "beta")],
        ]

    asyncio.run(run())


def test_who_comes_while_an_answer_is_on_its_way_is_asked_for_after_it() -> None:
    """Though the question on its way is for the very same token: its answer may be from before."""

    async def run() -> None:
        desk = Desk()
        counter = Counter(desk, 30)
        first = asyncio.create_task(counter.admit("a", "alpha"))
        await desk.questions(1)
        later = [asyncio.create_task(counter.admit("a", "alpha")) for _ in range(5)]
        await settle()
        assert len(desk.asked) == 1
        desk.answer()
        assert await first == [admission("a", "alpha")]
        await desk.questions(2)
        assert not any(task.done() for task in later), "the first answer is none of theirs"
        desk.answer()
        assert await asyncio.gather(*later) == [[admission("a", "alpha")]] * 5
        assert desk.asked == [(["a"], ["alpha"]), (["a"] * 5, ["alpha"] * 5)]

    asyncio.run(run())


def test_an_error_is_told_to_all_that_wait_for_it_and_to_nobody_else() -> None:
    async def run() -> None:
        desk = Desk()
        counter = Counter(desk, 30)
        first = [asyncio.create_task(counter.admit(name, None)) for name in "ab"]
        await desk.questions(1)
        second = [asyncio.create_task(counter.admit(name, None)) for name in "cd"]
        await settle()
        desk.answer(Unavailable("away"))
        results = await asyncio.gather(*first, return_exceptions=True)
        assert [str(result) for result in results] == ["away", "away"]
        assert all(isinstance(result, Unavailable) for result in results)
        await desk.questions(2)
        assert not any(task.done() for task in second)
        desk.answer()
        assert await asyncio.gather(*second) == [[admission("c", None)], [admission("d", None)]]
        desk.answer()
        assert await counter.admit("e", None) == [admission("e", None)]

    asyncio.run(run())


@pytest.mark.parametrize("outcome", [None, Unavailable("away")], ids=["answer", "error"])
def test_who_goes_away_harms_nobody(outcome: Exception | None) -> None:
    async def run() -> None:
        desk = Desk()
        counter = Counter(desk, 30)
        first = [asyncio.create_task(counter.admit(name, None)) for name in "abc"]
        await desk.questions(1)
        waiting = [asyncio.create_task(counter.admit(name, None)) for name in "de"]
        await settle()
        first[1].cancel()
        waiting[0].cancel()
        await settle()
        desk.answer(outcome)
        results = await asyncio.gather(*first, return_exceptions=True)
        assert isinstance(results[1], asyncio.CancelledError)
        told = [admission("a", None)], [admission("c", None)]
        assert (results[0], results[2]) == (told if outcome is None else (outcome, outcome))
        desk.answer()
        assert await waiting[1] == [admission("e", None)]
        assert waiting[0].cancelled()
        desk.answer()
        assert await counter.admit("f", None) == [admission("f", None)]

    asyncio.run(run())


def test_when_all_have_gone_away_the_next_is_still_asked_for() -> None:
    async def run() -> None:
        desk = Desk()
        counter = Counter(desk, 30)
        gone = asyncio.create_task(counter.admit("a", None))
        await desk.questions(1)
        gone.cancel()
        await settle()
        next_one = asyncio.create_task(counter.admit("b", None))
        desk.answer()
        desk.answer()
        assert await next_one == [admission("b", None)]

    asyncio.run(run())


def test_of_many_few_questions_are_asked() -> None:
    async def run() -> None:
        desk = Desk()
        counter = Counter(desk, 30)
        tasks = []
        for number in range(100):
            tasks.append(asyncio.create_task(counter.admit(str(number), None)))
            if number % 10 == 9:
                desk.answer()
                await settle()
        desk.answer()
        found = await asyncio.gather(*tasks)
        assert found == [[admission(str(number), None)] for number in range(100)]
        assert len(desk.asked) <= 11
        assert [digest for digests, _ in desk.asked for digest in digests] == [str(number) for number in range(100)]

    asyncio.run(run())
