"""On SQLite all writes that wait go in one transaction, and each has an outcome of its own."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import column, select, table, update

from normata.core.db.database import Database
from normata.core.db.transaction import ConstraintViolation, Transaction, Work
from normata.errors import NotArchived, NotFound, Unavailable
from tests.core.db.example import WHO, adding, faults, label, open_url
from tests.traced import traced

WRITTEN = select(label.c.id).where(label.c.id.not_in(["label-alpha", "label-beta"])).order_by(label.c.id)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, sqlite_url: str) -> list[str]:
    """Every statement that is sent to the file."""
    assert sqlite_url
    return traced(monkeypatch)


@asynccontextmanager
async def held_up(database: Database) -> AsyncIterator[None]:
    """Keep the writer busy for a block, so that all who want to write wait together."""
    started, go_on = threading.Event(), threading.Event()

    def work(_transaction: Transaction) -> None:
        started.set()
        assert go_on.wait(30)

    first = asyncio.create_task(database.write(work))
    assert await asyncio.to_thread(started.wait, 30)
    try:
        yield
    finally:
        go_on.set()
        await first


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """What another process that writes does to the file, for a block."""
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield


async def written(database: Database, works: Sequence[Work[Any]]) -> list[Any]:
    """The outcomes, errors included, of writes that are asked for at the same moment."""
    return await asyncio.gather(*(database.write(work) for work in works), return_exceptions=True)


def together(database: Database, works: Sequence[Work[Any]]) -> list[Any]:
    """:func:`written`, for tests without an event loop."""
    return asyncio.run(written(database, works))


def labels(database: Database) -> set[str]:
    """What the tests have added."""
    return set(database.read_now(look))


def look(transaction: Transaction) -> list[str]:
    return transaction.scalars(WRITTEN)


def dangle(transaction: Transaction) -> None:
    """Break a reference, which SQLite finds out at the commit."""
    transaction.rows(update(label).values(parent_id="nobody"))


def mistake(transaction: Transaction) -> None:
    """Change a table that is not there."""
    transaction.rows(update(table("nowhere", column("id"))).values(id=1))


def kinds(outcomes: list[Any]) -> list[Any]:
    """Names as they are, and the types of errors."""
    return [outcome if isinstance(outcome, str) else type(outcome) for outcome in outcomes]


def test_each_has_its_own_outcome_and_what_fails_leaves_nothing(sqlite: Database, sent: list[str]) -> None:
    works: list[Work[Any]] = []
    expected: list[Any] = []
    for number in range(40):
        name = f"{number:02}"
        if number % 5 == 1:
            works.append(adding(name, then=NotArchived()))
            expected.append(NotArchived)
        elif number % 5 == 3:
            works.append(adding(name, slug="first"))  # taken
            expected.append(ConstraintViolation)
        elif number % 20 == 4:
            works.append(adding(name, then=Unavailable("ask again")))
            expected.append(Unavailable)
        elif number % 20 == 5:
            works.append(mistake)
            expected.append(sqlite3.OperationalError)
        else:
            works.append(adding(name))
            expected.append(name)
    sent.clear()
    outcomes = together(sqlite, works)
    assert sent.count("COMMIT") == 1
    assert kinds(outcomes) == expected
    assert labels(sqlite) == {name for name in expected if isinstance(name, str)}


@pytest.mark.parametrize("has_written", [False, True], ids=["before it has written", "after it has written"])
def test_only_where_one_fails_after_it_has_written_are_the_others_run_again(
    sqlite: Database, sent: list[str], has_written: bool
) -> None:
    runs: Counter[str] = Counter()

    def counted(name: str, work: Work[Any]) -> Work[Any]:
        def run(transaction: Transaction) -> Any:
            runs[name] += 1
            return work(transaction)

        return run

    def refuse(_transaction: Transaction) -> None:
        raise NotArchived

    refused = adding("refused", then=NotArchived()) if has_written else refuse
    works = {"one": adding("one"), "refused": refused, "two": adding("two")}
    sent.clear()
    outcomes = together(sqlite, [counted(name, work) for name, work in works.items()])
    assert kinds(outcomes) == ["one", NotArchived, "two"]
    assert labels(sqlite) == {"one", "two"}
    assert runs == ({"one": 2, "refused": 2, "two": 1} if has_written else {"one": 1, "refused": 1, "two": 1})
    assert sent.count("SAVEPOINT work") == (3 if has_written else 0)
    assert sent.count("COMMIT") == 1


def test_no_more_than_a_bounded_number_go_in_one_transaction(sqlite: Database, sent: list[str]) -> None:
    names = [f"{number:03}" for number in range(200)]
    assert together(sqlite, [adding(name) for name in names]) == names
    assert sent.count("COMMIT") == 4


def test_they_are_done_in_the_order_in_which_they_came(sqlite: Database) -> None:
    seen: list[int] = []
    together(sqlite, [lambda _, number=number: seen.append(number) for number in range(200)])  # type: ignore[misc]
    assert seen == list(range(200))


def test_a_later_one_sees_what_an_earlier_one_of_the_same_transaction_did(sqlite: Database) -> None:
    outcomes = together(sqlite, [adding("one"), adding("two", then=NotFound()), look])
    assert outcomes[2] == ["one"]


def test_of_several_that_want_the_same_the_first_has_it(sqlite: Database) -> None:
    outcomes = together(sqlite, [adding("one", "wanted"), adding("two", "wanted"), adding("three", "wanted")])
    assert kinds(outcomes) == ["one", ConstraintViolation, ConstraintViolation]


def test_a_violation_that_one_keeps_silent_about_undoes_it_alone(sqlite: Database) -> None:
    def silent(transaction: Transaction) -> str:
        adding("before")(transaction)
        with pytest.raises(ConstraintViolation):
            adding("taken", "first")(transaction)
        return "done"

    outcomes = together(sqlite, [adding("one"), silent, adding("two")])
    assert kinds(outcomes) == ["one", ConstraintViolation, "two"]
    assert labels(sqlite) == {"one", "two"}


def test_where_the_commit_of_all_fails_only_the_guilty_ones_do(sqlite: Database) -> None:
    """They are done again one by one, then."""
    outcomes = together(sqlite, [dangle, adding("one"), adding("two", "first"), dangle, adding("three")])
    assert kinds(outcomes) == [ConstraintViolation, "one", ConstraintViolation, ConstraintViolation, "three"]
    assert labels(sqlite) == {"one", "three"}
    assert faults(sqlite) == []
    assert together(sqlite, [adding("four"), adding("five")]) == ["four", "five"], "it goes on"


def test_an_error_that_work_returns_is_no_failure(sqlite: Database) -> None:
    assert kinds([sqlite.write_now(lambda _: NotFound())]) == [NotFound]


def test_another_process_that_holds_the_lock_makes_all_of_them_unavailable(sqlite_url: str, path: Path) -> None:
    with closing(open_url(sqlite_url, database_timeout=0.2)) as impatient:
        with locked(path):
            outcomes = together(impatient, [adding(f"{number}") for number in range(5)])
        assert kinds(outcomes) == [Unavailable] * 5
        assert labels(impatient) == set()
        assert together(impatient, [adding("again")]) == ["again"]


def test_another_process_that_writes_for_a_moment_is_waited_for_and_keeps_nobody_else_waiting(
    sqlite: Database, path: Path
) -> None:
    async def run() -> None:
        with locked(path):
            waiting = asyncio.create_task(written(sqlite, [adding("one"), adding("two")]))
            for _ in range(20):
                await asyncio.sleep(0.01)
                assert await asyncio.wait_for(sqlite.look_up(WHO, "secret-alpha", None), 1)
            assert not waiting.done()
        assert await waiting == ["one", "two"]

    asyncio.run(run())


def test_who_has_waited_too_long_is_told_so_and_nothing_of_theirs_is_done(sqlite_url: str) -> None:
    with closing(open_url(sqlite_url, database_timeout=0.2)) as impatient:

        async def run() -> None:
            async with held_up(impatient):
                for name in ("early", "late"):
                    with pytest.raises(Unavailable, match="waiting"):
                        await impatient.write(adding(name))
            assert await impatient.write(adding("in-time")) == "in-time"

        asyncio.run(run())
        assert labels(impatient) == {"in-time"}


def test_who_goes_away_before_their_batch_has_nothing_done(sqlite: Database) -> None:
    async def run() -> None:
        async with held_up(sqlite):
            names = ("early", "gone", "late")
            early, gone, late = (asyncio.create_task(sqlite.write(adding(name))) for name in names)
            await asyncio.sleep(0.01)
            gone.cancel()
        assert await early == "early"
        assert await late == "late"
        assert gone.cancelled()

    asyncio.run(run())
    assert labels(sqlite) == {"early", "late"}


def test_what_is_done_when_its_asker_goes_away_is_done_for_the_others(sqlite: Database) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(transaction: Transaction) -> str:
        started.set()
        assert go_on.wait(30)
        return adding("slow")(transaction)

    async def run() -> None:
        async with held_up(sqlite):
            first, second = (asyncio.create_task(sqlite.write(work)) for work in (slow, adding("second")))
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(started.wait, 30)
        first.cancel()
        await asyncio.sleep(0.01)
        go_on.set()
        assert await second == "second"

    asyncio.run(run())
    assert labels(sqlite) == {"slow", "second"}


def test_a_file_that_is_replaced_is_not_written_to(sqlite: Database, path: Path) -> None:
    assert together(sqlite, [adding("one")]) == ["one"]
    path.rename(path.with_name("moved.db"))
    assert kinds(together(sqlite, [adding("two")])) == [Unavailable]
    shutil.copy(path.with_name("moved.db"), path)
    assert together(sqlite, [adding("three")]) == ["three"]
    with closing(sqlite3.connect(path.with_name("moved.db"))) as moved:
        assert "three" not in {name for (name,) in moved.execute("SELECT id FROM label")}


def test_a_full_disk_makes_all_of_them_unavailable_and_then_it_goes_on(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may not grow, as where the disk is full."""
    connect = sqlite3.connect
    limit = "PRAGMA max_page_count = 1"  # SQLite takes it for as many as there are

    def connect_bounded(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.execute(limit)
        return connection

    long = "x" * 100_000
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_bounded)
        outcomes = together(sqlite, [adding("one"), adding("two", long), adding("three")])
    assert kinds(outcomes) == [Unavailable] * 3
    assert labels(sqlite) == set()
    assert together(sqlite, [adding("one"), adding("two", long)]) == ["one", "two"]


def test_those_that_are_committed_alone_are_told_so_though_the_next_one_fails(sqlite: Database, path: Path) -> None:
    alone = False

    def moving(transaction: Transaction) -> str:
        """Takes the file away, when it is tried alone."""
        nonlocal alone
        if alone:
            path.rename(path.with_name("moved.db"))
        alone = True
        return adding("two")(transaction)

    outcomes = together(sqlite, [adding("one"), dangle, moving, adding("three")])
    path.with_name("moved.db").rename(path)
    assert kinds(outcomes) == ["one", ConstraintViolation, "two", Unavailable]
    assert labels(sqlite) == {"one", "two"}


# --- Who is cancelled, and the end


@pytest.mark.parametrize("rounds", range(6))
def test_a_write_that_is_cancelled_ends(sqlite: Database, rounds: int) -> None:
    go_on = threading.Event()

    async def run() -> None:
        task = asyncio.create_task(sqlite.write(lambda _: go_on.wait(30)))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await sqlite.write(adding("next")) == "next"

    asyncio.run(run())


@pytest.mark.parametrize("microseconds", range(0, 4_000, 100))
def test_an_event_loop_that_ends_amid_a_commit_harms_nothing(sqlite: Database, microseconds: int) -> None:
    names = {f"{number}" for number in range(5)}

    async def run() -> None:
        for name in sorted(names):
            asyncio.ensure_future(sqlite.write(adding(name))).add_done_callback(_looked_at)
        await asyncio.sleep(microseconds / 1e6)

    asyncio.run(run())
    assert together(sqlite, [adding("next")]) == ["next"]
    assert len(labels(sqlite) & names) in (0, 5)


def _looked_at(task: asyncio.Future[Any]) -> bool:
    """Looks at how a task has ended, so that nobody misses it."""
    return task.cancelled() or task.exception() is not None


def test_who_still_waits_when_the_database_is_closed_is_told(sqlite_url: str) -> None:
    async def run() -> list[Any]:
        closing_soon = open_url(sqlite_url)
        tasks = [asyncio.create_task(closing_soon.write(adding(f"{number}"))) for number in range(130)]
        await asyncio.sleep(0)
        await closing_soon.aclose()
        late = [closing_soon.write(lambda _: None), closing_soon.look_up(WHO, "secret-alpha", None)]
        return await asyncio.gather(*tasks, *late, return_exceptions=True)

    outcomes = asyncio.run(run())
    done = {outcome for outcome in outcomes if isinstance(outcome, str)}
    assert {type(outcome) for outcome in outcomes if not isinstance(outcome, str)} == {Unavailable}
    with closing(open_url(sqlite_url)) as opened:
        assert labels(opened) == done
