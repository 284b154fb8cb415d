"""Jobs: each is done, once as far as the database goes, and nobody waits for all of somebody else."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from normata.core.changes import jobs
from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import DueJob, JobType
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.events.model import AuditEvent
from normata.operations import SECURITY
from tests import stored
from tests.core.changes.labelling import MINUTE, SECOND, START, Clock, Labels, after, do_due, find, runners, waiting
from tests.world import ALPHA, BETA


@pytest.fixture
def labels(database: Database) -> Labels:
    return Labels(database)


def test_what_is_due_is_done_and_gone(database_url: str, labels: Labels) -> None:
    labels.schedule("a", "b")
    labels.schedule("a", owner=BETA)
    labels.schedule("later", due_at=after(SECOND))
    counted: Counter[tuple[str, str]] = Counter()
    do_due(database_url, labels.type(), count=lambda *one: counted.update([one]))
    assert labels.done() == {(ALPHA, "a"): 1, (ALPHA, "b"): 1, (BETA, "a"): 1}
    assert [row["key"] for row in waiting(labels.database)] == ["later"]
    assert counted == {("labels", "done"): 3}
    events = [row for row in stored.rows(labels.database, AuditEvent) if row["entity_type"] == "Label"]
    assert [(row["user_id"], row["action"], '"labels"' in row["body"]) for row in events] == [
        (None, "create", True)
    ] * 3
    do_due(database_url, labels.type(), moment=after(SECOND))
    assert labels.done()[ALPHA, "later"] == 1


def test_of_several_processes_each_job_is_done_by_one(database_url: str, labels: Labels) -> None:
    owners = [ALPHA, BETA]
    for owner in owners:
        labels.schedule(*map(str, range(20)), owner=owner)
    runners(
        database_url,
        lambda found: asyncio.gather(*(one.do_due() for one in found)),
        labels.type(),
        clocks=[Clock(), Clock(), Clock()],
    )
    assert labels.done() == {(owner, str(key)): 1 for owner in owners for key in range(20)}
    assert waiting(labels.database) == []


def test_nobody_waits_for_all_of_somebody_else(database_url: str, labels: Labels) -> None:
    """Beta's one job became due last. It is claimed in the first round, and may run beside several of Alpha's."""
    labels.schedule(*(f"{number:02}" for number in range(30)), due_at="2026-06-01T00:00:00.000Z")
    labels.schedule("only", owner=BETA)
    do_due(database_url, labels.type())
    assert labels.attempted.index((BETA, "only")) < 15
    assert [key for owner, key in labels.attempted if owner == ALPHA] == [f"{number:02}" for number in range(30)]


def test_a_slow_job_keeps_nobody_else_waiting(database_url: str, labels: Labels) -> None:
    labels.schedule("slow")
    labels.schedule("a", "b", "c", owner=BETA)

    async def act(_database: Database, job: DueJob) -> None:
        if job.key == "slow":
            await others_done.wait()

    others_done = asyncio.Event()

    def count(_type: str, _outcome: str) -> None:
        if len(labels.attempted) == 3:
            others_done.set()

    do_due(database_url, labels.type(act=act), count=count)
    assert labels.attempted[-1] == (ALPHA, "slow")
    assert labels.done().total() == 4


def test_what_fails_is_attempted_later_and_ever_later(database_url: str, labels: Labels) -> None:
    """And keeps no other from being done."""
    labels.fails = lambda job: job.key == "bad" and job.attempts < 12
    labels.schedule("bad", "good")
    with capture_logs() as logs:
        do_due(database_url, labels.type())
    assert labels.done() == {(ALPHA, "good"): 1}
    (row,) = waiting(labels.database)
    assert (row["attempts"], row["failure"], row["claim"]) == (1, "LookupError", None)
    (line,) = logs
    assert (line["event"], line["type"], line["organization"], line["key"]) == ("job_failed", "labels", ALPHA, "bad")
    pauses = []
    while waiting(labels.database):
        (row,) = waiting(labels.database)
        moment = row["due_at"]
        before = format_timestamp(datetime.fromisoformat(moment) - timedelta(milliseconds=1))
        do_due(database_url, labels.type(), moment=before)
        assert waiting(labels.database) == [row]
        do_due(database_url, labels.type(), moment=moment)
        pauses += [
            datetime.fromisoformat(later["due_at"]) - datetime.fromisoformat(moment)
            for later in waiting(labels.database)
        ]
    assert [pause.total_seconds() for pause in pauses] == [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]
    assert labels.done() == {(ALPHA, "good"): 1, (ALPHA, "bad"): 1}


def test_a_job_that_is_done_again_starts_anew(database_url: str, labels: Labels) -> None:
    tomorrow = after(timedelta(days=1))
    labels.next_at = lambda job: tomorrow if job.moment < tomorrow else None
    labels.fails = lambda job: job.attempts == 1 and job.moment == START
    labels.schedule("daily")
    do_due(database_url, labels.type())
    do_due(database_url, labels.type(), moment=after(MINUTE))
    (row,) = waiting(labels.database)
    assert (row["due_at"], row["attempts"], row["failure"], row["claim"]) == (tomorrow, 0, None, None)
    find(database_url, labels.type())
    assert waiting(labels.database) == [row]
    do_due(database_url, labels.type(), moment=tomorrow)
    assert labels.done() == {(ALPHA, "daily"): 2}
    assert waiting(labels.database) == []


def test_what_has_more_to_do_lets_others_go_first(database_url: str, labels: Labels) -> None:
    labels.schedule("much")
    labels.schedule("little", owner=BETA)
    others = (BETA, "little")

    def next_at(job: DueJob) -> str | None:
        """Never an end of "much" before "little" is done, but for the sake of a test that fails."""
        waits = others not in labels.attempted and len(labels.attempted) < 100
        return job.moment if job.key == "much" and (waits or len(labels.attempted) < 5) else None

    labels.next_at = next_at
    do_due(database_url, labels.type())
    assert labels.attempted.index(others) < 50
    assert labels.done()[ALPHA, "much"] >= 4
    assert waiting(labels.database) == []


def test_what_is_due_again_when_it_ends_is_done_again(
    database_url: str, labels: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where it ended just after somebody has looked for what is due."""
    labels.schedule("much")
    labels.schedule("little", owner=BETA)
    labels.next_at = lambda job: job.moment if labels.attempted.count((job.owner, "much")) == 1 else None
    look, little_is_done = JobRunner._claimed, asyncio.Event()

    async def look_slowly(runner: JobRunner, most: int) -> list[DueJob]:
        claimed = await look(runner, most)
        if not claimed:
            await asyncio.gather(*runner._running.values())
        return claimed

    async def wait_for_little(_database: Database, job: DueJob) -> None:
        if job.key == "much":
            await little_is_done.wait()
            await asyncio.sleep(0.1)  # so that somebody looks before it has ended

    monkeypatch.setattr(JobRunner, "_claimed", look_slowly)
    do_due(database_url, labels.type(act=wait_for_little), count=lambda *_: little_is_done.set())
    assert labels.done() == {(ALPHA, "much"): 2, (BETA, "little"): 1}
    assert waiting(labels.database) == []


def test_the_earlier_moment_counts(labels: Labels) -> None:
    for pause in (2 * MINUTE, MINUTE, 3 * MINUTE):
        labels.schedule("once", due_at=after(pause))
    (row,) = waiting(labels.database)
    assert row["due_at"] == after(MINUTE)


def test_what_is_outside_comes_first_and_is_bounded(
    database_url: str, labels: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "CLAIMED_FOR", timedelta(milliseconds=50))
    seen: list[Any] = []

    async def act(_database: Database, job: DueJob) -> str:
        if job.key == "slow":
            await asyncio.sleep(60)
        return f"sent {job.key}"

    def run(_unit: UnitOfWork, job: DueJob) -> None:
        seen.append(job.outcome)

    labels.schedule("quick", "slow")
    with capture_logs() as logs:
        do_due(database_url, JobType("labels", run, act=act))
    assert seen == ["sent quick"]
    (row,) = waiting(labels.database)
    assert (row["key"], row["failure"]) == ("slow", "TimeoutError")
    assert len(logs) == 1


def test_what_is_found_is_done_once_for_each_organization(database_url: str, labels: Labels) -> None:
    def finds(_transaction: Transaction, organizations: Sequence[str], moment: str) -> list[str]:
        return [one for one in organizations if one in (ALPHA, BETA) and moment >= START]

    found = labels.type(find=finds)
    find(database_url, found, moment=after(-SECOND))
    assert waiting(labels.database) == []
    for _ in range(2):
        find(database_url, found)
    assert [(row["owner"], row["key"]) for row in waiting(labels.database)] == [(ALPHA, ""), (BETA, "")]
    do_due(database_url, found)
    assert labels.done() == {(ALPHA, ""): 1, (BETA, ""): 1}


def test_one_type_that_cannot_be_found_keeps_no_other(database_url: str, labels: Labels) -> None:
    def broken(transaction: Transaction, _organizations: Sequence[str], _moment: str) -> list[str]:
        return transaction.scalars(None)  # type: ignore[arg-type] # that is what is wrong

    bad = Labels(labels.database, "bad")
    with capture_logs() as logs:
        find(database_url, bad.type(find=broken), labels.type(find=lambda *_: [ALPHA]))
    assert [(line["event"], line["type"]) for line in logs] == [("jobs_not_found", "bad")]
    assert [(row["owner"], row["type"]) for row in waiting(labels.database)] == [(ALPHA, "labels")]


def test_jobs_of_another_version_are_left_to_it(database_url: str, labels: Labels) -> None:
    other = Labels(labels.database, "unknown")
    other.schedule("a")
    labels.schedule("a")
    do_due(database_url, labels.type())
    assert [row["type"] for row in waiting(labels.database)] == ["unknown"]


def test_where_nothing_is_due_nothing_is_written(
    database_url: str, labels: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels.schedule("later", due_at=after(SECOND))

    async def no_write(*_: object, **__: object) -> None:
        raise AssertionError("it has written")

    async def work(found: Sequence[JobRunner]) -> None:
        monkeypatch.setattr(found[0]._database, "write", no_write)
        await found[0].find()
        await found[0].do_due()

    runners(database_url, work, labels.type(find=lambda *_: []), clocks=[Clock()])


def test_a_write_that_is_not_declared_is_a_failure(database_url: str, labels: Labels) -> None:
    labels.schedule("a")
    with capture_logs():
        do_due(database_url, JobType("labels", labels.type().run))
    (row,) = waiting(labels.database)
    assert row["failure"] == "UndeclaredWrite"
    assert not labels.done()


def test_the_service_may_do_what_jobs_declare() -> None:
    assert set(jobs.JOB_WRITES) <= set(SECURITY.writes)
