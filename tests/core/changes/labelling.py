"""Jobs that add labels, and the processes that do them: each with a clock, and with the rights of the service."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from normata.core.changes import jobs
from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import DueJob, Job, JobType, schedule
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import new_id
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.records.kinds import Label
from normata.records.writing import create, creation_writes
from normata.settings import Settings
from normata.wiring import changes_of
from tests import stored
from tests.databases import change
from tests.world import ALPHA

T = TypeVar("T")

START = "2026-06-15T12:00:00.000Z"
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def after(pause: timedelta, moment: str = START) -> str:
    return format_timestamp(datetime.fromisoformat(moment) + pause)


@dataclass
class Clock:
    """The clock of a machine, which tests set."""

    moment: str = START

    def __call__(self) -> str:
        return self.moment


@dataclass
class Labels:
    """A type of job that adds a label, and so leaves a trace of each time that it was done."""

    database: Database
    name: str = "labels"
    fails: Callable[[DueJob], bool] = lambda _: False
    next_at: Callable[[DueJob], str | None] = lambda _: None
    attempted: list[tuple[str, str]] = field(default_factory=list)

    def type(self, **more: Any) -> JobType:
        return JobType(self.name, self._run, writes=creation_writes(Label), **more)

    def _run(self, unit: UnitOfWork, job: DueJob) -> str | None:
        self.attempted.append((job.owner, job.key))
        create(unit, Label, job.owner, {"name": f"{self.name} {job.key} {new_id()}"})
        if self.fails(job):
            raise LookupError(job.key)
        return self.next_at(job)

    def done(self) -> Counter[tuple[str, str]]:
        """How often each job was done, as the database has it."""
        rows = [row for row in stored.rows(self.database, Label) if row["name"].startswith(f"{self.name} ")]
        return Counter((row["organization_id"], row["name"].split(" ")[1]) for row in rows)

    def schedule(self, *keys: str, owner: str = ALPHA, due_at: str = START) -> None:
        def work(unit: UnitOfWork) -> None:
            for key in keys:
                schedule(unit, self.name, owner, key, due_at)

        change(self.database, work)


def waiting(database: Database) -> list[dict[str, Any]]:
    return sorted(stored.rows(database, Job), key=lambda row: (row["owner"], row["type"], row["key"]))


def runners(
    url: str, work: Callable[[Sequence[JobRunner]], Awaitable[T]], *types: JobType, clocks: Sequence[Clock], **more: Any
) -> T:
    """What ``work`` returns of runners of processes, each with a clock, that have the rights of the service."""

    async def run() -> T:
        databases = [open_database(Settings(database_url=url), serving=True) for _ in clocks]
        try:
            return await work(
                [
                    JobRunner(one, changes_of(one), types, NEXT_ORGANIZATIONS, clock=clock, **more)
                    for one, clock in zip(databases, clocks, strict=True)
                ]
            )
        finally:
            for one in databases:
                await one.aclose()

    return asyncio.run(run())


def do_due(url: str, *types: JobType, moment: str = START, **more: Any) -> None:
    """Have one process do what is due at a moment."""
    runners(url, lambda found: found[0].do_due(), *types, clocks=[Clock(moment)], **more)


def find(url: str, *types: JobType, moment: str = START) -> None:
    """Have one process find what there is to do at a moment."""
    runners(url, lambda found: found[0].find(), *types, clocks=[Clock(moment)])


def claim_next(database: Database, moment: str) -> DueJob:
    """Claim the one job, as a process does that ends after that."""

    def work(transaction: Transaction) -> list[DueJob]:
        found = jobs.next_due(transaction, "", ["labels"], moment)
        return jobs.claim(transaction, [found], new_id, moment)

    (claimed,) = database.write_now(work)
    return claimed


@contextmanager
def paused() -> Iterator[tuple[Callable[[Database, DueJob], Awaitable[str]], asyncio.Event, asyncio.Event]]:
    """What a job does outside of the database: it says that it has begun, and waits the first time."""
    begun, goes_on = asyncio.Event(), asyncio.Event()
    times = 0

    async def act(_database: Database, job: DueJob) -> str:
        nonlocal times
        times += 1
        if times == 1:
            begun.set()
            await goes_on.wait()
        return f"outcome of {job.key}"

    yield act, begun, goes_on
