"""Long reads are limited by organization and by caller; the others wait in turn, and cheap reads never do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from httpx2 import Response

from normata.core.http import long_reads
from normata.core.http.long_reads import LongReads
from normata.core.http.operation import ReadOperation
from normata.core.http.problems import TooManyRequests
from normata.operations import OPERATIONS
from normata.settings import Settings
from tests.databases import on_both
from tests.served import Headers, Served, refused, served
from tests.world import ALPHA, BETA

REPORT = "/frameworks/fw-sun/gaps/"


class Reads:
    """Long reads, each of an organization and a caller, that last until they are told to end."""

    def __init__(self, turns: LongReads) -> None:
        self._turns = turns
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.begun: list[str] = []
        self.refused: list[str] = []
        self.reasons: set[tuple[str, str]] = set()

    async def come(self, *names: str) -> None:
        """Reads come: the first letter is the organization, the second the caller."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._read(name))
            await asyncio.sleep(0)

    async def end(self, name: str) -> None:
        """One of them ends."""
        self._ends[name].set()
        await self._tasks[name]
        await asyncio.sleep(0)

    async def _read(self, name: str) -> None:
        try:
            async with self._turns.turn(name[0], name[1]):
                self.begun.append(name)
                await self._ends[name].wait()
        except TooManyRequests as error:
            self.refused.append(name)
            self.reasons.add((error.reason, error.headers["Retry-After"]))


def test_a_caller_has_two_and_an_organization_three() -> None:
    async def walk() -> None:
        reads = Reads(LongReads(3, 2))
        await reads.come("AA1", "AA2", "AA3", "AB1", "AB2", "AC1", "BC1")
        assert reads.begun == ["AA1", "AA2", "AB1", "BC1"], (
            "AA3 waits for its caller, AB2 and AC1 for their organization"
        )
        await reads.end("AA1")  # whose caller's next one then comes after those who wait already
        assert reads.begun[4:] == ["AB2"]
        await reads.end("AA2")
        await reads.end("AB1")
        assert reads.begun[4:] == ["AB2", "AC1", "AA3"]
        assert reads.refused == []

    asyncio.run(walk())


def test_who_waits_too_long_or_in_too_large_a_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_reads, "_PATIENCE", 0.05)

    async def walk() -> None:
        turns = LongReads(1, 1)
        reads = Reads(turns)
        await reads.come(*(f"AA{number}" for number in range(long_reads._MOST_WAITING + 2)))
        assert reads.refused == [f"AA{long_reads._MOST_WAITING + 1}"]
        await asyncio.sleep(0.2)
        assert len(reads.refused) == long_reads._MOST_WAITING + 1
        assert reads.reasons == {("long_reads", "1")}
        await reads.end("AA0")
        assert not turns._callers._queues
        assert not turns._organizations._queues
        await reads.come("AA99")
        assert reads.begun == ["AA0", "AA99"]

    asyncio.run(walk())


def test_workers_share_the_limit_and_none_is_no_limit() -> None:
    async def walk() -> None:
        reads = Reads(LongReads(4, 2, workers=2))
        await reads.come("AA1", "AA2", "AB1", "AC1")
        assert reads.begun == ["AA1", "AB1"]
        reads = Reads(LongReads(0, 0))
        await reads.come(*(f"AA{number}" for number in range(50)))
        assert len(reads.begun) == 50

    asyncio.run(walk())


@contextmanager
def slow_reports(instance: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Event]:
    """Reports last until the block ends; nothing else does."""
    database = instance.app.services.database
    read = database.read
    portal = instance.client.portal
    assert portal is not None
    go_on = portal.call(_event)

    async def held_open(work: Any, *args: Any, is_long: bool = False, **more: Any) -> Any:
        if is_long:
            await go_on.wait()
        return await read(work, *args, is_long=is_long, **more)

    monkeypatch.setattr(database, "read", held_open)
    try:
        yield go_on
    finally:
        portal.call(go_on.set)


async def _event() -> asyncio.Event:
    return asyncio.Event()


@pytest.mark.long
@on_both
def test_reports_of_one_wait_and_are_refused_while_all_else_goes_on(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the limits that are the default."""
    limits = Settings.model_fields
    assert (limits["organization_long_reads"].default, limits["caller_long_reads"].default) == (4, 2)
    monkeypatch.setattr(long_reads, "_PATIENCE", 0.5)
    with served(database_url) as instance, ThreadPoolExecutor(12) as crowd:
        mine, others = instance.bearer("admin"), instance.bearer("editor")

        def report(headers: Headers) -> Response:
            return instance.client.get(REPORT, params={"organizationId": ALPHA}, headers=headers)

        with slow_reports(instance, monkeypatch):
            asked: list[Future[Response]] = [crowd.submit(report, mine) for _ in range(6)]
            refusals = [one for one in map(_done_within_two_seconds, asked) if one is not None]
            assert len(refusals) == 4, "two have their turns, and four have waited in vain"
            for answer in refusals:
                refused(answer, 429, "too_many_requests")
                assert answer.headers["retry-after"] == "1"
            theirs = [crowd.submit(report, others) for _ in range(2)]
            for path in ("/controls/", "/frameworks/", "/notifications/"):
                for headers in (mine, others):
                    query = {"organizationId": ALPHA, "limit": "5"}
                    assert instance.client.get(path, params=query, headers=headers).status_code == 200
            restored = instance.client.post("/tasks/tasks-archived-org-alpha/restore/", headers=mine)
            assert restored.status_code == 200
        ended = [one.result(30) for one in (*asked, *theirs)]
        assert [one.status_code for one in ended].count(200) == 4
        assert report(mine).status_code == 200


def _done_within_two_seconds(one: Future[Response]) -> Response | None:
    try:
        return one.result(2)
    except TimeoutError:
        return None


@pytest.mark.parametrize("path", ["/controls/", "/frameworks/", "/notifications/"])
def test_first_pages_of_the_three_lists_are_never_dear(path: str) -> None:
    operation = next(one for one in OPERATIONS if one.path == path and isinstance(one, ReadOperation))
    for more in ([], [("search", "word")], [("limit", "5")]):
        query = operation.query.read([("organizationId", ALPHA), *more])
        assert not operation.is_dear(query)
    far = operation.query.read([("organizationId", ALPHA), ("page", "11")])
    assert operation.is_dear(far)


def test_reports_and_searches_are_dear() -> None:
    by_path = {operation.path: operation for operation in OPERATIONS if isinstance(operation, ReadOperation)}
    for path in (REPORT.replace("fw-sun", "{id}"), "/frameworks/{id}/statement-of-applicability/"):
        assert by_path[path].is_long
    search = by_path["/search/"]
    assert search.is_dear(search.query.read([("organizationId", BETA), ("search", "x")]))
    assert not search.is_dear(search.query.read([("organizationId", BETA)]))
