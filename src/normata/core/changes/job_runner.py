"""The runner of jobs: each process of the service has one, and they share the work through the table of jobs."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from normata.core.changes import jobs
from normata.core.changes.jobs import JOB_WRITES, DueJob, Find, JobType
from normata.core.changes.periodic import repeat
from normata.core.changes.unit_of_work import Actor, Changes, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import now
from normata.core.log import logger
from normata.core.schema.table import new_id
from normata.errors import Unavailable

Outcome = Literal["done", "failed", "lost"]

_PAUSE = 1.0  # seconds between two queries for due jobs
_FIND_EVERY = 20.0  # seconds between two searches for new jobs
_AT_ONCE = 4  # jobs that a process runs at the same time
_FINISH_WITHIN = 5.0  # seconds that jobs get when the process ends
_OVER = "\x01"  # sorts between an id and the next one, since ids have no control characters


class ClaimLost(Exception):
    """The claim of a job has ended before the job was done, and another process has it now. Nothing is stored."""


class JobRunner:
    """Finds and runs due jobs while the service runs.

    It takes the organizations with due jobs in turn, and does one job of each at a time, so that nobody waits for all
    jobs of somebody else. ``organizations`` iterates over all organizations in steps, ``count`` counts the outcome of a
    job, and ``clock`` is this machine's.
    """

    def __init__(
        self,
        database: Database,
        changes: Changes,
        types: Sequence[JobType],
        organizations: Lookup,
        *,
        count: Callable[[str, Outcome], None] = lambda _type, _outcome: None,
        clock: Callable[[], str] = now,
    ) -> None:
        self._database = database
        self._changes = changes
        self._types = {one.name: one for one in types}
        self._organizations = organizations
        self._count = count
        self._clock = clock
        self._running: dict[str, asyncio.Task[None]] = {}  # by owner
        self._next_owner = ""
        self._find_after = time.monotonic() + _FIND_EVERY

    async def run_periodically(self) -> None:
        """Find and run due jobs, until cancelled."""
        await repeat(self._round, pause=lambda: _PAUSE, failure="jobs_failed")

    async def finish(self) -> None:
        """Wait for running jobs; those that take too long are left to another process."""
        if self._running:
            _, late = await asyncio.wait(self._running.values(), timeout=_FINISH_WITHIN)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def find(self) -> None:
        """Add a job for each organization with something to do and no job yet. Raises Unavailable."""
        moment = self._clock()
        stuck = await self._database.read(lambda transaction: jobs.unreachable(transaction, moment))
        if stuck:
            await self._database.write(lambda transaction: jobs.make_due(transaction, stuck, moment))
        finders = {name: one.find for name, one in self._types.items() if one.find is not None}
        last = ""
        while organizations := await self._database.look_up(self._organizations, last):
            ids = tuple(str(row.organization_id) for row in organizations)
            last = ids[-1]
            for name, find in list(finders.items()):
                try:
                    found = await self._database.read(partial(_found, find, ids, moment), TenantScope(readable=ids))
                except Unavailable:
                    raise
                except Exception:  # an error of one type must not stop the others
                    del finders[name]
                    with suppress(OSError, ValueError):  # the runner must go on without a log
                        logger.exception("jobs_not_found", type=name)
                    continue
                if found:
                    await self._database.write(partial(_note, name, found, moment))

    async def do_due(self, until: float = math.inf) -> None:
        """Run due jobs until there are none, or until a time of the monotonic clock. Raises Unavailable."""
        while time.monotonic() < until:
            was_idle = not self._running  # else a job that has ended since may be due again
            claimed = await self._claimed(_AT_ONCE - len(self._running))
            for job in claimed:
                task = self._running[job.owner] = asyncio.create_task(self._do(job))
                task.add_done_callback(partial(self._ended, job.owner))
            if was_idle and not claimed:
                return
            if self._running:
                await asyncio.wait(self._running.values(), timeout=_PAUSE, return_when=asyncio.FIRST_COMPLETED)

    async def _round(self) -> None:
        if time.monotonic() >= self._find_after:
            await self.find()
            # From the end of a search, so that jobs are done however long it takes. Spread out, so that processes that
            # start together do not search at the same time.
            self._find_after = time.monotonic() + _FIND_EVERY * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
        await self.do_due(self._find_after)

    async def _claimed(self, most: int) -> list[DueJob]:
        """Claim due jobs, at most one of each owner."""
        if most <= 0:
            return []
        moment = self._clock()
        found = await self._database.read(lambda transaction: self._due(transaction, most, moment))
        if not found:
            return []
        self._next_owner = found[-1].owner + _OVER
        return await self._database.write(lambda transaction: jobs.claim(transaction, found, new_id, moment))

    def _due(self, transaction: Transaction, most: int, moment: str) -> list[Any]:
        """Due jobs, of the next owners and then of the first ones again."""
        found: list[Any] = []
        for start, end in ((self._next_owner, None), ("", self._next_owner)):
            here = start
            while len(found) < most and (end is None or here < end):
                job = jobs.next_due(transaction, here, list(self._types), moment)
                if job is None or (end is not None and job.owner >= end):
                    break
                here = job.owner + _OVER
                if job.owner not in self._running:
                    found.append(job)
        return found

    def _ended(self, owner: str, _task: asyncio.Task[None]) -> None:
        del self._running[owner]

    async def _do(self, job: DueJob) -> None:
        """Run a claimed job. If it fails, it is attempted again later."""
        job_type = self._types[job.type]
        outcome: Outcome = "done"
        try:
            if job_type.act is not None:
                async with asyncio.timeout(jobs.CLAIMED_FOR.total_seconds()):
                    job = replace(job, outcome=await job_type.act(self._database, job))
            await self._changes.make(
                partial(_run, job_type, job),
                actor=Actor(command=job_type.name),
                scope=TenantScope(readable=(job.owner,), writable=(job.owner,)),
                writes=(*job_type.writes, *JOB_WRITES),
                is_long=job_type.is_long,
            )
        except ClaimLost:
            outcome = "lost"
        except Exception as error:
            outcome = "failed"
            await self._note_failure(job, error)
        self._count(job.type, outcome)

    async def _note_failure(self, job: DueJob, error: Exception) -> None:
        moment, failure = self._clock(), type(error).__name__
        next_at: str | None = None
        # If the database cannot be reached, the claim expires instead.
        with suppress(Unavailable):
            next_at = await self._database.write(
                lambda transaction: jobs.note_failure(transaction, job, failure, moment)
            )
        with suppress(OSError, ValueError):  # the runner must go on without a log
            logger.error(
                "job_failed",
                type=job.type,
                organization=job.owner or None,
                key=job.key,
                attempts=job.attempts,
                next_attempt=next_at,
                exc_info=None if isinstance(error, Unavailable) else error,
                reason=str(error) if isinstance(error, Unavailable) else None,
            )


def _found(find: Find, organizations: Sequence[str], moment: str, transaction: Transaction) -> list[str]:
    return sorted(find(transaction, organizations, moment))


def _note(job_type: str, organizations: Sequence[str], moment: str, transaction: Transaction) -> None:
    jobs.note_found(transaction, job_type, organizations, moment)


def _run(job_type: JobType, job: DueJob, unit: UnitOfWork) -> None:
    next_at = job_type.run(unit, job)
    if not jobs.finish(unit, job, next_at):
        raise ClaimLost
