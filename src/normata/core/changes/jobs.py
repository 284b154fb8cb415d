"""Jobs: what the service does by itself at a certain time, such as a reminder. One table has the due and future ones.

A :class:`JobType` declares how the jobs of a type are found, unless they are scheduled, and how one is run. The runner
(:mod:`normata.core.changes.job_runner`) does the rest. A row has only the owner, the type and the key of a job: the
data is read when the job runs.

A process claims a job: that moves ``due_at`` to the end of the claim, and sets a new ``claim``. The transaction that
does the job ends by removing the row with this claim; if there is none any more, the transaction is rolled back. So if
a claim has ended because its process was killed, paused or had a wrong clock, another process does the job, and never
both. Only actions outside of the database may happen twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any

from sqlalchemy import Index, Insert, bindparam, case, delete, func, literal, select, update
from sqlalchemy import text as sql_text
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.changes.unit_of_work import UnitOfWork, delete_of, insert_of, update_of
from normata.core.db.database import Database
from normata.core.db.security import Write
from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp, text
from normata.core.schema.fields import Count, ShortName, Timestamp
from normata.core.schema.table import CODED, Table, sql_table

CLAIMED_FOR = timedelta(minutes=1)  # the time for a job before another process may claim it
_FIRST_DELAY = timedelta(seconds=5)  # after a failure; doubled after each further one
_LONGEST_DELAY = timedelta(hours=1)
NOTABLE_ATTEMPTS = 4  # from this number of failures on, it is reported as an error

_Code = Annotated[str, mapped_column(text(255), info=CODED)]


class Job(Table):
    """One job. It is removed once it is done.

    ``owner`` is its organization, or empty. The name differs from ``organization_id`` because the runner reads the jobs
    of all. ``key`` is empty if an organization has one job of the type at a time. ``attempts`` counts started attempts.
    ``failure`` is the class of the last error.
    """

    __tablename__ = "job"
    published = False

    owner: Mapped[_Code] = mapped_column(primary_key=True)
    type: Mapped[ShortName] = mapped_column(primary_key=True, info=CODED)
    key: Mapped[_Code] = mapped_column(primary_key=True)
    due_at: Mapped[Timestamp]
    attempts: Mapped[Count]
    claim: Mapped[str | None] = mapped_column(text(36), info=CODED)
    failure: Mapped[ShortName | None] = mapped_column(info=CODED)

    __table_args__ = (
        Index(None, "owner", "due_at"),
        # The few jobs that are claimed.
        Index(
            "ix_job_begun",
            "due_at",
            sqlite_where=sql_text("attempts > 0"),
            postgresql_where=sql_text("attempts > 0"),
        ),
    )


@dataclass(frozen=True, slots=True)
class DueJob:
    """A job that is running, at ``moment``. ``outcome`` is what :attr:`JobType.act` has returned."""

    owner: str
    type: str
    key: str
    attempts: int
    claim: str
    moment: str
    outcome: Any = None


Find = Callable[[Transaction, Sequence[str], str], Iterable[str]]


@dataclass(frozen=True, slots=True)
class JobType:
    """A type of job. Its ``name`` is in the rows, in metrics, and in the events of what it changes, as the command.

    ``run`` does one in a unit of work that reaches the job's organization, with the rights ``writes``. It returns null
    once there is no more to do, or the moment at which the same job is due again: that of the job for "at once", after
    the jobs of others. It must check what there is to do, because it may be called when there is nothing. See
    :meth:`normata.core.db.database.Database.read` for ``is_long``.

    ``find`` returns the organizations, among some, that have something to do at a moment. It is called every few
    seconds, so it needs an index. Each gets a job with an empty key. It is null if jobs are only scheduled, see
    :func:`schedule`.

    ``act`` is called before ``run``, for actions outside of the database, such as sending a mail. It may be called
    again if the process ends before ``run`` has finished.
    """

    name: str
    run: Callable[[UnitOfWork, DueJob], str | None]
    writes: Sequence[Write] = ()
    find: Find | None = None
    act: Callable[[Database, DueJob], Awaitable[Any]] | None = None
    is_long: bool = False


JOB_WRITES = (insert_of(Job), update_of(Job, "due_at", "attempts", "claim", "failure"), delete_of(Job))


def schedule(unit: UnitOfWork, job_type: str, organization_id: str, key: str, due_at: str) -> None:
    """Schedule a job at a moment, or at the earlier one if it is already scheduled.

    A process that is running it now does not see the changes of the unit of work, so the job is done again.
    """
    unit.rows(_schedule(), _row(organization_id, job_type, key, due_at))


def note_found(transaction: Transaction, job_type: str, organizations: Iterable[str], moment: str) -> None:
    """Add the found jobs of organizations, unless they exist."""
    transaction.execute_many(_note(), [_row(one, job_type, "", moment) for one in sorted(organizations)])


def next_due(transaction: Transaction, start: str, types: Sequence[str], moment: str) -> Any | None:
    """The oldest due job of the first owner from ``start`` on who has one."""
    return transaction.row(_NEXT, {"start": start, "types": types, "moment": moment})


def claim(transaction: Transaction, jobs: Sequence[Any], new_id: Callable[[], str], moment: str) -> list[DueJob]:
    """Claim found jobs, and return those that no other process has claimed meanwhile."""
    claimed = []
    for job in sorted(jobs, key=lambda one: (one.owner, one.type, one.key)):  # a fixed order prevents deadlocks
        attempts = job.attempts + 1
        values = {
            **_key(job),
            "found_at": job.due_at,
            "ends_at": _after(moment, _claimed_for(attempts)),
            "new_attempts": attempts,
            "new_claim": new_id(),
        }
        if transaction.rows(_CLAIM, values):
            claimed.append(DueJob(job.owner, job.type, job.key, attempts, values["new_claim"], moment))
    return claimed


def finish(unit: UnitOfWork, job: DueJob, next_at: str | None) -> bool:
    """Remove a finished job, or schedule it again at a moment. Returns false if another process has claimed it by now.

    This comes last, as scheduling does in a unit of work, so that the two cannot deadlock.
    """
    own = {**_key(job), "own_claim": job.claim}
    return bool(unit.rows(_REMOVE, own) if next_at is None else unit.rows(_REPEAT, {**own, "new_due_at": next_at}))


def note_failure(transaction: Transaction, job: DueJob, failure: str, moment: str) -> str | None:
    """Schedule a failed job again, and return when; null if another process has claimed it by now."""
    due_at = _after(moment, _delay(job.attempts))
    values = {**_key(job), "own_claim": job.claim, "new_due_at": due_at, "new_failure": failure[:64]}
    return due_at if transaction.rows(_FAIL, values) else None


def unreachable(transaction: Transaction, moment: str) -> list[Any]:
    """The started jobs that wait longer than a claim or a failure allows.

    The process that started them had a clock that was ahead.
    """
    found = transaction.rows(_BEGUN, {"latest": _after(moment, CLAIMED_FOR)})
    return [job for job in found if job.due_at > _after(moment, _claimed_for(job.attempts))]


def make_due(transaction: Transaction, jobs: Sequence[Any], moment: str) -> None:
    """Make jobs due now, whatever time they wait for."""
    for job in jobs:
        transaction.rows(_MAKE_DUE, {**_key(job), "found_at": job.due_at, "new_due_at": moment})


def job_figures(transaction: Transaction, moment: str) -> tuple[int, float, int]:
    """The number of due jobs without a claim, the age of the oldest in seconds, and the number of failed ones."""
    row = transaction.row(_FIGURES, {"moment": moment})
    assert row is not None  # noqa: S101 - a count always returns a row
    age = 0.0 if row.oldest is None else _seconds(row.oldest, moment)
    return row.due, age, transaction.scalar(_FAILED) or 0


def failing(transaction: Transaction) -> list[Any]:
    """The jobs that were started several times, and never finished."""
    return transaction.rows(_FAILING)


def _claimed_for(attempts: int) -> timedelta:
    """How long a claim lasts: longer after each attempt, so that a job that kills its process does so less often."""
    return CLAIMED_FOR + (_delay(attempts - 1) if attempts > 1 else timedelta())


def _delay(attempts: int) -> timedelta:
    """How long a job waits after a number of failed attempts."""
    return min(_FIRST_DELAY * (1 << min(attempts - 1, 20)), _LONGEST_DELAY)


def _after(moment: str, pause: timedelta) -> str:
    return format_timestamp(datetime.fromisoformat(moment) + pause)


def _seconds(earlier: str, later: str) -> float:
    return max(0.0, (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds())


def _row(owner: str, job_type: str, key: str, due_at: str) -> dict[str, Any]:
    return {"owner": owner, "type": job_type, "key": key, "due_at": due_at, "attempts": 0}


def _key(job: Any) -> dict[str, str]:
    return {"of_owner": job.owner, "of_type": job.type, "of_key": job.key}


_TABLE = sql_table(Job)
_DUE_AT = _TABLE.c.due_at.type
_IS_TARGET = (
    (_TABLE.c.owner == bindparam("of_owner"))
    & (_TABLE.c.type == bindparam("of_type"))
    & (_TABLE.c.key == bindparam("of_key"))
)
_IS_AS_FOUND = _TABLE.c.due_at == bindparam("found_at", type_=_DUE_AT)
_IS_OWN = _TABLE.c.claim == bindparam("own_claim")
_IS_DUE = _TABLE.c.due_at <= bindparam("moment", type_=_DUE_AT)

_NEXT = (
    select(*_TABLE.c)
    .where(_TABLE.c.owner >= bindparam("start"), _IS_DUE, _TABLE.c.type.in_(bindparam("types", expanding=True)))
    .order_by(_TABLE.c.owner, _TABLE.c.due_at, _TABLE.c.type, _TABLE.c.key)
    .limit(1)
)
_CLAIM = (
    update(_TABLE)
    .where(_IS_TARGET, _IS_AS_FOUND)
    .values(
        due_at=bindparam("ends_at", type_=_DUE_AT), attempts=bindparam("new_attempts"), claim=bindparam("new_claim")
    )
    .returning(_TABLE.c.key)
)
_REMOVE = delete(_TABLE).where(_IS_TARGET, _IS_OWN).returning(_TABLE.c.key)
_REPEAT = (
    update(_TABLE)
    .where(_IS_TARGET, _IS_OWN)
    .values(due_at=bindparam("new_due_at", type_=_DUE_AT), attempts=0, claim=None, failure=None)
    .returning(_TABLE.c.key)
)
_FAIL = (
    update(_TABLE)
    .where(_IS_TARGET, _IS_OWN)
    .values(due_at=bindparam("new_due_at", type_=_DUE_AT), claim=None, failure=bindparam("new_failure"))
    .returning(_TABLE.c.key)
)
_BEGUN = select(*_TABLE.c).where(
    _TABLE.c.attempts > literal(0, literal_execute=True), _TABLE.c.due_at > bindparam("latest", type_=_DUE_AT)
)
_MAKE_DUE = (
    update(_TABLE).where(_IS_TARGET, _IS_AS_FOUND).values(due_at=bindparam("new_due_at", type_=_DUE_AT), claim=None)
)
_FIGURES = select(func.count().label("due"), func.min(_TABLE.c.due_at).label("oldest")).where(_IS_DUE)
_FAILED = select(func.count()).where(_TABLE.c.failure.is_not(None))
_FAILING = (
    select(*_TABLE.c).where(_TABLE.c.attempts >= NOTABLE_ATTEMPTS).order_by(_TABLE.c.owner, _TABLE.c.type, _TABLE.c.key)
)


@cache
def _inserted() -> postgresql.Insert:
    values = {name: bindparam(name, type_=_TABLE.c[name].type) for name in ("owner", "type", "key", "due_at")}
    # SQLite's compiler accepts PostgreSQL's construct.
    return postgresql.insert(_TABLE).values(**values, attempts=bindparam("attempts"))


@cache
def _note() -> Insert:
    return _inserted().on_conflict_do_nothing(index_elements=[_TABLE.c.owner, _TABLE.c.type, _TABLE.c.key])


@cache
def _schedule() -> Insert:
    insert = _inserted()
    new = insert.excluded.due_at
    return insert.on_conflict_do_update(
        index_elements=[_TABLE.c.owner, _TABLE.c.type, _TABLE.c.key],
        set_={"due_at": case((_TABLE.c.due_at < new, _TABLE.c.due_at), else_=new), "claim": None},
    )
