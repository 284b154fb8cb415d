"""Work that is tried: it does everything, and nothing of it is kept."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from normata.core.db.database import Database
from normata.core.db.delegating import InsertRecorder
from normata.core.db.transaction import ConstraintViolation, Transaction, Work
from normata.errors import NotFound, Unavailable
from tests.core.db.example import ALPHA, IN_ALPHA, LABELS, adding, framework, label, open_url
from tests.core.db.sessions import Service, session

WRITTEN = select(label.c.id).where(label.c.id.not_in(["label-alpha", "label-beta"])).order_by(label.c.id)


@dataclass(frozen=True)
class Opened:
    """A database with an event loop of its own: connections to PostgreSQL cannot move between loops."""

    database: Database
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    def labels(self) -> Any:
        """What the tests have added."""
        return self.run(self.database.read(lambda transaction: transaction.scalars(WRITTEN)))

    def dry_run(self, work: Work[Any]) -> Any:
        """What comes of a dry run."""
        return self.run(self.database.dry_run(work))


@pytest.fixture(params=["sqlite", "postgresql"])
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    """A fresh copy of the example; the test runs once on each database."""
    database = open_url(request.getfixturevalue(f"{'postgres' if request.param == 'postgresql' else 'sqlite'}_url"))
    with asyncio.Runner() as runner:
        yield Opened(database, runner.run)
        runner.run(database.aclose())


def counted(transaction: Transaction) -> list[str]:
    """Adds a label, and tells which there are then."""
    adding("new")(transaction)
    return transaction.scalars(WRITTEN)


def test_it_sees_what_it_does_and_leaves_nothing(opened: Opened) -> None:
    assert opened.dry_run(counted) == ["new"]
    assert opened.labels() == []


@pytest.mark.parametrize("error", [NotFound(), ValueError("mine"), KeyError("k")])
def test_it_raises_what_the_work_raises(opened: Opened, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        opened.dry_run(adding("new", then=error))
    assert caught.value is error
    assert opened.labels() == []


def test_a_unique_key_that_is_taken_is_told(opened: Opened) -> None:
    with pytest.raises(ConstraintViolation):
        opened.dry_run(adding("new", "first"))


def test_a_statement_that_has_failed_is_told_though_the_work_keeps_silent(opened: Opened) -> None:
    def work(transaction: Transaction) -> None:
        with pytest.raises(ConstraintViolation):
            adding("new", "first")(transaction)

    with pytest.raises(Exception):  # noqa: B017, PT011 - on PostgreSQL it is the next statement that fails
        opened.dry_run(work)
    assert opened.labels() == []


def dangle(transaction: Transaction) -> None:
    transaction.rows(update(label).values(parent_id="nobody"))


@pytest.mark.parametrize("opened", ["postgresql"], indirect=True)
def test_references_are_checked_as_the_commit_would(opened: Opened) -> None:
    """SQLite cannot: there it is the rules of a change that look at them."""
    for call in (opened.database.dry_run, opened.database.write):
        with pytest.raises(ConstraintViolation):
            opened.run(call(dangle))


def test_others_at_the_same_moment_are_stored_and_run_once(opened: Opened) -> None:
    runs: Counter[str] = Counter()

    def once(name: str) -> Work[str]:
        def work(transaction: Transaction) -> str:
            runs[name] += 1
            return adding(name)(transaction)

        return work

    stored = [once(f"stored-{number}") for number in range(20)]
    planned = [adding(f"planned-{number}") for number in range(20)]
    broken = adding("broken", then=NotFound())

    async def all_at_once() -> Sequence[Any]:
        calls: list[Any] = [opened.database.dry_run(broken)]
        for one, other in zip(stored, planned, strict=True):
            calls += [opened.database.write(one), opened.database.dry_run(other)]
        return await asyncio.gather(*calls, return_exceptions=True)

    failed, *outcomes = opened.run(all_at_once())
    assert isinstance(failed, NotFound)
    assert outcomes == [f"{how}-{number}" for number in range(20) for how in ("stored", "planned")]
    assert sorted(opened.labels()) == sorted(f"stored-{number}" for number in range(20))
    assert set(runs.values()) == {1}


# --- Writers beside it


class Pausing:
    """Work that stops at a point until it may go on, as where it computes for long; it counts how often it is run."""

    def __init__(self, *, before: Work[Any] | None = None, after: Work[Any] | None = None) -> None:
        self.runs = 0
        self.started, self.go_on = threading.Event(), threading.Event()
        self._before, self._after = before, after

    def __call__(self, transaction: Transaction) -> list[str]:
        self.runs += 1
        if self._before is not None:
            self._before(transaction)
        self.started.set()
        assert self.go_on.wait(30)
        if self._after is not None:
            self._after(transaction)
        return transaction.scalars(WRITTEN)


async def beside(opened: Opened, work: Pausing, *writes: Work[Any], run: Work[Any] | None = None) -> Any:
    """What comes of a dry run of ``work``, or of ``run`` around it: while it computes, all the writes are done."""
    dry_run = asyncio.create_task(opened.database.dry_run(run or work, is_long=True))
    try:
        assert await asyncio.to_thread(work.started.wait, 30)
        for write in writes:
            await asyncio.wait_for(opened.database.write(write), 2)
        assert not dry_run.done()
    finally:
        work.go_on.set()
    return await dry_run


def test_no_writer_waits_for_what_it_does_before_it_writes(opened: Opened) -> None:
    work = Pausing(before=lambda transaction: transaction.scalars(WRITTEN), after=adding("planned"))
    assert "planned" in opened.run(beside(opened, work, adding("one"), adding("two")))
    assert opened.labels() == ["one", "two"]


def test_no_writer_waits_while_it_computes_after_it_has_written(opened: Opened) -> None:
    """On SQLite a writer interrupts it, and it begins anew; on PostgreSQL the two have different rows."""
    work = Pausing(before=adding("planned"))
    found = opened.run(beside(opened, work, adding("one"), adding("two")))
    assert {"planned"} <= set(found) <= {"one", "planned", "two"}
    assert opened.labels() == ["one", "two"]


@pytest.mark.parametrize("opened", ["sqlite"], indirect=True)
@pytest.mark.parametrize("error", [None, ValueError("mine")], ids=["returns", "raises"])
def test_one_that_was_interrupted_is_run_again_whatever_it_makes_of_that(
    opened: Opened, error: Exception | None
) -> None:
    pausing = Pausing(before=adding("planned"))

    def stubborn(transaction: Transaction) -> list[str]:
        try:
            return pausing(transaction)
        except Exception:
            if error is not None:
                raise error from None
        return ["wrong"]

    found = opened.run(beside(opened, pausing, adding("one"), run=stubborn))
    assert found == ["one", "planned"]
    assert pausing.runs == 2
    assert opened.labels() == ["one"]


@pytest.mark.parametrize("opened", ["sqlite"], indirect=True)
def test_it_comes_to_its_end_however_many_write(opened: Opened) -> None:
    """After some attempts no writer interrupts it any more."""
    runs = 0

    async def run() -> list[str]:
        database, is_over = opened.database, False

        def slow(transaction: Transaction) -> list[str]:
            nonlocal runs
            runs += 1
            adding("planned")(transaction)
            time.sleep(0.1)
            return transaction.scalars(WRITTEN)

        async def write_on() -> None:
            for number in count():
                if is_over:
                    return
                await database.write(adding(f"{number:06}"))

        writing = asyncio.create_task(write_on())
        found = await database.dry_run(slow)
        is_over = True
        await writing
        return found

    assert opened.run(run())[-1] == "planned"
    assert runs == 4
    assert "planned" not in opened.labels()


@pytest.mark.parametrize("opened", ["sqlite"], indirect=True)
def test_what_another_process_has_locked_it_may_read_and_waits_for_to_write(opened: Opened, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert opened.dry_run(lambda transaction: transaction.scalars(WRITTEN)) == []

        async def run() -> str:
            waiting = asyncio.create_task(opened.database.dry_run(adding("planned")))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            holder.execute("ROLLBACK")
            return await waiting

        assert opened.run(run()) == "planned"


@pytest.mark.parametrize("opened", ["postgresql"], indirect=True)
def test_it_takes_no_lock_by_its_name(opened: Opened) -> None:
    def locking(transaction: Transaction) -> None:
        transaction.lock("load")
        assert transaction.try_lock("key")

    work = Pausing(before=locking)
    assert opened.run(beside(opened, work, locking)) == []


def test_on_postgresql_it_gives_up_a_lock_before_the_server_looks_for_deadlocks(postgres_url: str) -> None:
    rename = update(label).values(name="new").where(label.c.id == "label-alpha")
    with closing(Service(postgres_url)) as service, session(postgres_url) as holder:
        holder.run("BEGIN", "UPDATE label SET name = 'other' WHERE id = 'label-alpha'")
        began = time.monotonic()
        with pytest.raises(Unavailable) as caught:
            service.run(service.database.dry_run(lambda transaction: transaction.rows(rename), IN_ALPHA))
        assert caught.value.reason == "locked"
        assert 0.4 < time.monotonic() - began < 1
        holder.run("ROLLBACK")
        assert service.run(service.database.dry_run(lambda transaction: transaction.rows(rename), IN_ALPHA)) == []


# --- InsertRecorder


def test_what_is_inserted_into_a_table_is_seen_however(opened: Opened) -> None:
    copied = insert(framework).from_select(
        ["id", "organization_id", "name"], select(label.c.id, label.c.organization_id, label.c.name)
    )

    def work(transaction: Transaction) -> list[str]:
        watching = InsertRecorder(transaction, "framework")
        watching.execute_many(insert(label), LABELS)
        watching.rows(copied)
        watching.execute_many(insert(framework), [{"id": one, "organization_id": ALPHA, "name": one} for one in "ab"])
        watching.rows(update(framework).values(name="new"))
        assert {row.organization_id for row in watching.added[-2:]} == {ALPHA}
        return [row.id for row in watching.added]

    seen = opened.dry_run(work)
    assert sorted(seen) == sorted([*(row["id"] for row in LABELS), "label-alpha", "label-beta", "a", "b"])
