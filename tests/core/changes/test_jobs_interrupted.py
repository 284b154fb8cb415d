"""Jobs of processes that are killed, paused or ended, and of clocks that jump: each is done, and stored once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from normata.core.changes import job_runner, jobs
from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import DueJob
from normata.core.db.database import Database
from normata.errors import Unavailable
from tests.core.changes.labelling import (
    MINUTE,
    SECOND,
    START,
    Clock,
    Labels,
    after,
    claim_next,
    do_due,
    find,
    paused,
    runners,
    waiting,
)
from tests.world import ALPHA, BETA


@pytest.fixture
def labels(database: Database) -> Labels:
    return Labels(database)


def test_what_a_killed_process_had_begun_is_done_when_its_claim_ends(database_url: str, labels: Labels) -> None:
    labels.schedule("begun")
    claim_next(labels.database, START)
    do_due(database_url, labels.type(), moment=after(59 * SECOND))
    assert not labels.done()
    do_due(database_url, labels.type(), moment=after(MINUTE))
    assert labels.done() == {(ALPHA, "begun"): 1}


def test_what_kills_its_process_does_so_ever_less(labels: Labels) -> None:
    labels.schedule("deadly")
    moment, pauses = START, []
    for _ in range(13):
        claim_next(labels.database, moment)
        (row,) = waiting(labels.database)
        pauses.append(datetime.fromisoformat(row["due_at"]) - datetime.fromisoformat(moment))
        moment = row["due_at"]
    assert pauses[:4] == [MINUTE, MINUTE + 5 * SECOND, MINUTE + 10 * SECOND, MINUTE + 20 * SECOND]
    assert pauses[-1] == MINUTE + timedelta(hours=1)
    assert [row.key for row in labels.database.read_now(jobs.failing)] == ["deadly"]


def test_a_process_that_was_paused_beyond_its_claim_does_not_do_it_again(database_url: str, labels: Labels) -> None:
    labels.schedule("paused")
    outcomes: list[str] = []

    def count(_type: str, outcome: str) -> None:
        outcomes.append(outcome)

    async def work(found: Sequence[JobRunner]) -> None:
        first = asyncio.create_task(found[0].do_due())
        await begun.wait()
        clocks[1].moment = after(MINUTE)
        await found[1].do_due()
        assert outcomes == ["done"]
        goes_on.set()
        await first

    with paused() as (act, begun, goes_on):
        clocks = [Clock(), Clock()]
        runners(database_url, work, labels.type(act=act), clocks=clocks, count=count)
    assert outcomes == ["done", "lost"]
    assert labels.done() == {(ALPHA, "paused"): 1}


def test_what_is_scheduled_while_it_is_done_is_done_again(database_url: str, labels: Labels) -> None:
    """The first attempt has not seen what the second schedule is about, so nothing of it is stored."""
    labels.schedule("twice")

    async def work(found: Sequence[JobRunner]) -> None:
        doing = asyncio.create_task(found[0].do_due())
        await begun.wait()
        await asyncio.to_thread(labels.schedule, "twice")
        goes_on.set()
        await doing

    with paused() as (act, begun, goes_on):
        runners(database_url, work, labels.type(act=act), clocks=[Clock()])
    assert labels.attempted == [(ALPHA, "twice")] * 2
    assert labels.done() == {(ALPHA, "twice"): 1}
    assert waiting(labels.database) == []


def test_a_clock_that_was_far_ahead_blocks_nothing(database_url: str, labels: Labels) -> None:
    """A process claimed a job, and was killed, while its clock was a year ahead."""
    labels.schedule("begun", "failed")
    ahead = after(timedelta(days=365))
    claim_next(labels.database, ahead)
    labels.fails = lambda job: job.moment == ahead
    with capture_logs():
        do_due(database_url, labels.type(), moment=ahead)
    assert {row["due_at"] > after(timedelta(days=364)) for row in waiting(labels.database)} == {True}
    do_due(database_url, labels.type())
    assert not labels.done()
    find(database_url, labels.type())
    do_due(database_url, labels.type())
    assert labels.done() == {(ALPHA, "begun"): 1, (ALPHA, "failed"): 1}


def test_what_waits_as_it_should_goes_on_waiting(database_url: str, labels: Labels) -> None:
    """A claim, a failure that was one of many, and a moment that is far away."""
    labels.fails = lambda _: True
    labels.schedule("failed")
    following = START
    with capture_logs():
        for _ in range(12):
            moment = following
            do_due(database_url, labels.type(), moment=moment)
            (row,) = waiting(labels.database)
            following = row["due_at"]
    labels.schedule("begun", owner="org-aardvark", due_at=moment)
    claim_next(labels.database, moment)
    labels.schedule("far", due_at=after(timedelta(days=3_650)))
    before = waiting(labels.database)
    find(database_url, labels.type(), moment=moment)
    assert waiting(labels.database) == before


def test_a_clock_that_goes_back_does_nothing_twice(database_url: str, labels: Labels) -> None:
    labels.schedule("once")
    for moment in (after(timedelta(hours=1)), START, after(timedelta(hours=2))):
        find(database_url, labels.type(), moment=moment)
        do_due(database_url, labels.type(), moment=moment)
    assert labels.done() == {(ALPHA, "once"): 1}


def test_a_database_that_is_away_is_no_end(database_url: str, labels: Labels, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is attempted again: soon where its failure could be stored, else when its claim ends."""
    labels.schedule("a")

    async def away(*_: object, **__: object) -> None:
        raise Unavailable("it is away")

    async def work(found: Sequence[JobRunner]) -> None:
        monkeypatch.setattr(found[0]._changes, "make", away)
        await found[0].do_due()

    with capture_logs() as logs:
        runners(database_url, work, labels.type(), clocks=[Clock()])
    assert [(line["reason"], line["next_attempt"]) for line in logs] == [("it is away", after(5 * SECOND))]
    do_due(database_url, labels.type(), moment=after(5 * SECOND))
    assert labels.done() == {(ALPHA, "a"): 1}


def test_who_ends_finishes_what_has_begun(database_url: str, labels: Labels, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too long is left to the next."""
    monkeypatch.setattr(job_runner, "_FINISH_WITHIN", 0.05)
    labels.schedule("short")
    labels.schedule("long", owner=BETA)
    has_begun = asyncio.Event()

    async def act(_database: Database, job: DueJob) -> None:
        if job.key == "long":
            has_begun.set()
        await asyncio.sleep(60 if job.key == "long" else 0.01)

    async def work(found: Sequence[JobRunner]) -> None:
        doing = asyncio.create_task(found[0].do_due())
        await has_begun.wait()
        doing.cancel()
        await found[0].finish()

    runners(database_url, work, labels.type(act=act), clocks=[Clock()])
    assert labels.done() == {(ALPHA, "short"): 1}
    do_due(database_url, labels.type(), moment=after(MINUTE))
    assert labels.done() == {(ALPHA, "short"): 1, (BETA, "long"): 1}
