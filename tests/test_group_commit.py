"""On SQLite all scripts that wait are taken into one transaction, and each has an outcome of its own."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, column, insert, select, table, text, update
from sqlalchemy.exc import IntegrityError

from normata.database import Database, Script, Unavailable
from normata.errors import NotArchived, NotFound
from normata.identity.access import Caller
from normata.identity.model import AuditEvent, Organization
from normata.identity.tokens import digest
from normata.records.kinds import Label, Task
from normata.records.restore import restore
from tests import stored, world
from tests.databases import open_url, path_of
from tests.traced import traced
from tests.world import ALPHA, ARCHIVED

Make = Callable[[], Script[Any]]


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """These tests are about SQLite: PostgreSQL does this by itself."""
    return sqlite_url


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, database_url: str) -> list[str]:
    """Every statement that is sent to the file."""
    assert database_url
    return traced(monkeypatch)


@asynccontextmanager
async def held_up(database: Database) -> AsyncIterator[None]:
    """Keep the writer busy for a block, so that all who want to write wait together."""
    started, go_on = threading.Event(), threading.Event()

    def work(_connection: Connection) -> None:
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


async def performed(database: Database, scripts: list[Make]) -> list[Any]:
    """The outcomes, errors included, of scripts that are asked for at the same moment."""
    return await asyncio.gather(*(database.perform(script) for script in scripts), return_exceptions=True)


def together(database: Database, scripts: list[Make]) -> list[Any]:
    """:func:`performed`, for tests without an event loop."""
    return asyncio.run(performed(database, scripts))


def organizations(database: Database) -> set[str]:
    return database.read_now(lambda connection: set(connection.scalars(select(Organization.id))))


def looking() -> Script[set[str]]:
    """The organizations that a script sees."""
    rows = yield select(Organization.id), {}
    return {row["id"] for row in rows}


def adding(name: str, slug: str | None = None, *, then: Exception | None = None) -> Make:
    """Adds an organization and returns its name, or raises after that."""

    def script() -> Script[str]:
        yield insert(Organization).values(id=name, name=name, slug=slug or name, revision=""), {}
        if then is not None:
            raise then
        return name

    return script


def dangling() -> Script[None]:
    """Breaks a reference, which SQLite finds out at the commit."""
    yield update(Task).values(assignee_member_id="nobody"), {}


def unknown() -> Script[None]:
    """Wants a table that is not there."""
    yield update(table("nowhere", column("id"))).values(id=1), {}


def kinds(outcomes: list[Any]) -> list[Any]:
    """Names as they are, and what errors are."""
    return [outcome if isinstance(outcome, str) else type(outcome) for outcome in outcomes]


def test_each_has_its_own_outcome_and_what_fails_leaves_nothing(database: Database, sent: list[str]) -> None:
    before = organizations(database)
    scripts: list[Make] = []
    expected: list[Any] = []
    for number in range(40):
        name = f"org-{number:02}"
        if number % 5 == 1:
            scripts.append(adding(name, then=NotArchived()))
            expected.append(NotArchived)
        elif number % 5 == 3:
            scripts.append(adding(name, slug="alpha"))  # taken
            expected.append(IntegrityError)
        elif number % 20 == 4:
            scripts.append(adding(name, then=Unavailable("ask again")))
            expected.append(Unavailable)
        elif number % 20 == 5:
            scripts.append(unknown)
            expected.append(sqlite3.OperationalError)
        else:
            scripts.append(adding(name))
            expected.append(name)
    sent.clear()
    outcomes = together(database, scripts)
    assert sent.count("COMMIT") == 1
    assert kinds(outcomes) == expected
    assert organizations(database) - before == {name for name in expected if isinstance(name, str)}


def test_they_are_done_in_the_order_in_which_they_came(database: Database) -> None:
    seen: list[int] = []

    def noting(number: int) -> Make:
        def script() -> Script[None]:
            yield select(Organization.id), {}
            seen.append(number)

        return script

    together(database, [noting(number) for number in range(200)])
    assert seen == list(range(200))


def test_a_later_one_sees_what_an_earlier_one_of_the_same_transaction_did(database: Database) -> None:
    outcomes = together(database, [adding("one"), adding("two", then=NotFound()), looking])
    assert "one" in outcomes[2]
    assert "two" not in outcomes[2]


def test_of_several_that_want_the_same_the_first_has_it(database: Database) -> None:
    outcomes = together(database, [adding("first", "wanted"), adding("second", "wanted"), adding("third", "wanted")])
    assert kinds(outcomes) == ["first", IntegrityError, IntegrityError]


def test_where_the_commit_of_all_fails_only_the_guilty_ones_do(database: Database) -> None:
    """They are done again one by one, then."""
    outcomes = together(database, [dangling, adding("one"), adding("two", "alpha"), dangling, adding("three")])
    assert kinds(outcomes) == [IntegrityError, "one", IntegrityError, IntegrityError, "three"]
    assert organizations(database) >= {"one", "three"}
    assert stored.rows(database, AuditEvent) == []
    assert database.read_now(lambda c: list(c.exec_driver_sql("PRAGMA foreign_key_check"))) == []
    assert together(database, [adding("four"), adding("five")]) == ["four", "five"], "it goes on"


def test_what_writes_on_the_thread_and_scripts_take_turns(database: Database) -> None:
    async def run() -> None:
        seen: list[str] = []

        def script() -> Script[None]:
            yield select(Organization.id), {}
            seen.append("script")

        async with held_up(database):
            first = asyncio.create_task(database.perform(script))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(database.write(lambda _: seen.append("thread")))
            await asyncio.sleep(0.05)
            assert seen == []
        await asyncio.gather(first, second)
        assert seen == ["script", "thread"]

    asyncio.run(run())


def test_another_process_that_holds_the_lock_makes_all_of_them_unavailable(database_url: str) -> None:
    with closing(open_url(database_url, database_timeout=0.2)) as impatient:
        with locked(path_of(impatient)):
            outcomes = together(impatient, [adding(f"org-{number}") for number in range(5)])
        assert kinds(outcomes) == [Unavailable] * 5
        assert not any(name.startswith("org-0") for name in organizations(impatient))
        assert together(impatient, [adding("again")]) == ["again"]


def test_another_process_that_writes_for_a_moment_is_waited_for_and_keeps_nobody_else_waiting(
    database: Database, make_token: Callable[..., str]
) -> None:
    token = digest(make_token("editor"))

    async def run() -> None:
        with locked(path_of(database)):
            waiting = asyncio.create_task(performed(database, [adding("one"), adding("two")]))
            for _ in range(20):
                await asyncio.sleep(0.01)
                assert await asyncio.wait_for(database.admit(token, ALPHA), 1)
            assert not waiting.done()
        assert await waiting == ["one", "two"]

    asyncio.run(run())


def test_who_has_waited_too_long_is_told_so_and_nothing_of_theirs_is_done(database_url: str) -> None:
    with closing(open_url(database_url, database_timeout=0.2)) as impatient:

        async def run() -> None:
            async with held_up(impatient):
                first = asyncio.create_task(impatient.perform(adding("early")))
                await asyncio.sleep(0.01)
                with pytest.raises(Unavailable):
                    await impatient.perform(adding("late"))
                with pytest.raises(Unavailable):
                    await impatient.write(lambda connection: connection.execute(text("DELETE FROM label")))
                with pytest.raises(Unavailable):
                    await first
            assert await impatient.perform(adding("in-time")) == "in-time"

        asyncio.run(run())
        found = organizations(impatient)
    assert "in-time" in found
    assert not found & {"early", "late"}


def test_who_goes_away_before_their_turn_has_nothing_done(database: Database) -> None:
    async def run() -> None:
        async with held_up(database):
            first = asyncio.create_task(database.perform(adding("first")))
            await asyncio.sleep(0.01)  # it is the turn that waits
            gone = asyncio.create_task(database.perform(adding("gone")))
            await asyncio.sleep(0.01)
            gone.cancel()
        assert await first == "first"
        assert await database.perform(adding("next")) == "next"
        assert gone.cancelled()

    asyncio.run(run())
    found = organizations(database)
    assert found >= {"first", "next"}
    assert "gone" not in found


def test_what_is_done_when_its_asker_goes_away_is_done_for_the_others(database: Database) -> None:
    async def run() -> None:
        async with held_up(database):
            first, second = (asyncio.create_task(database.perform(adding(name))) for name in ("first", "second"))
            await asyncio.sleep(0.01)
            first.cancel()
        assert await second == "second"

    asyncio.run(run())
    assert organizations(database) >= {"first", "second"}


def test_a_file_that_is_replaced_is_not_written_to(database: Database) -> None:
    path = path_of(database)
    assert together(database, [adding("one")]) == ["one"]
    path.rename(path.with_name("moved.db"))
    assert kinds(together(database, [adding("two")])) == [Unavailable]
    shutil.copy(path.with_name("moved.db"), path)
    assert together(database, [adding("three")]) == ["three"]
    with closing(sqlite3.connect(path.with_name("moved.db"))) as moved:
        names = {name for (name,) in moved.execute("SELECT name FROM organization")}
    assert "three" not in names


def test_a_full_disk_makes_all_of_them_unavailable_and_then_it_goes_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
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
        outcomes = together(database, [adding("one"), adding("two", long), adding("three")])
    assert kinds(outcomes) == [Unavailable] * 3
    assert not organizations(database) & {"one", "two", "three"}
    assert together(database, [adding("one"), adding("two", long)]) == ["one", "two"]


def test_restores_that_wait_together_are_each_answered_for_themselves(database: Database, sent: list[str]) -> None:
    """Ten records, each asked for three times, and one whose slug is taken."""
    ids = [f"label-{number}" for number in range(10)]
    labels = [{"id": name, "organizationId": ALPHA, "name": name, "archivedAt": ARCHIVED} for name in ids]
    world.load(database, {"labels": labels})
    caller = Caller("user-editor", "Editor", "token", "write", (ALPHA,), "")

    def restoring(name: str) -> Make:
        return lambda: restore(Label, name, caller, request_id="r")

    taken = world.record_id(Label, "taken")
    wanted = [*ids, *ids, taken, *ids, "unknown"]
    sent.clear()
    outcomes = together(database, [restoring(name) for name in wanted])
    assert sent.count("COMMIT") == 1
    assert [outcome["id"] for outcome in outcomes[:10]] == ids
    assert [type(outcome) for outcome in outcomes[10:20]] == [NotArchived] * 10
    assert isinstance(outcomes[20], IntegrityError)
    assert [type(outcome) for outcome in outcomes[21:31]] == [NotArchived] * 10
    assert isinstance(outcomes[31], NotFound)
    assert sorted(row["entity_id"] for row in stored.rows(database, AuditEvent)) == sorted(ids)
    assert stored.row(database, Label, taken)["archived_at"] is not None


def test_a_parameter_that_is_missing_is_a_fault_and_not_null(database: Database) -> None:
    def forgetful() -> Script[None]:
        yield select(Organization.id).where(Organization.id == bindparam("wanted")), {}

    (outcome,) = together(database, [forgetful])
    assert isinstance(outcome, KeyError)


def test_those_that_are_committed_alone_are_told_so_though_the_next_one_fails(database: Database) -> None:
    path = path_of(database)
    alone = False

    def moving() -> Script[str]:
        """Takes the file away, when it is tried alone."""
        nonlocal alone
        if alone:
            path.rename(path.with_name("moved.db"))
        alone = True
        yield insert(Organization).values(id="two", name="two", slug="two", revision=""), {}
        return "two"

    outcomes = together(database, [adding("one"), dangling, moving, adding("three")])
    path.with_name("moved.db").rename(path)
    assert kinds(outcomes) == ["one", IntegrityError, "two", Unavailable]
    assert organizations(database) & {"one", "two", "three"} == {"one", "two"}


# --- Who is cancelled, and the end


@pytest.mark.parametrize("rounds", range(6))
def test_a_write_that_is_cancelled_ends(database: Database, rounds: int) -> None:
    go_on = threading.Event()

    async def run() -> None:
        task = asyncio.create_task(database.write(lambda _: go_on.wait(30)))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await database.perform(adding("next")) == "next"

    asyncio.run(run())


def test_a_write_that_is_cancelled_keeps_its_turn_until_its_thread_has_ended(database: Database) -> None:
    started, go_on = threading.Event(), threading.Event()

    def work(_connection: Connection) -> None:
        started.set()
        assert go_on.wait(30)

    async def run() -> None:
        task = asyncio.create_task(database.write(work))
        assert await asyncio.to_thread(started.wait, 30)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)
        after = asyncio.create_task(database.perform(adding("after")))
        await asyncio.sleep(0.05)
        assert not task.done()
        assert not after.done()
        go_on.set()
        assert await after == "after"
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


@pytest.mark.parametrize("microseconds", range(0, 4_000, 100))
def test_an_event_loop_that_ends_amid_a_commit_harms_nothing(database: Database, microseconds: int) -> None:
    """The commit's thread has a connection that must not be closed under it, or the process would die."""

    async def run() -> None:
        for number in range(5):
            asyncio.ensure_future(database.perform(adding(f"org-{number}"))).add_done_callback(_is_cancelled)
        await asyncio.sleep(microseconds / 1e6)

    asyncio.run(run())
    assert len(organizations(database) & {f"org-{number}" for number in range(5)}) in (0, 5)
    assert together(database, [adding("next")]) == ["next"]


def _is_cancelled(task: asyncio.Future[Any]) -> bool:
    """Looks at how a task has ended, so that nobody misses it."""
    return task.cancelled() or task.exception() is not None


def test_who_still_waits_when_the_database_is_closed_is_told(database_url: str) -> None:
    async def run() -> list[Any]:
        closing_soon = open_url(database_url)
        scripts = [asyncio.create_task(closing_soon.perform(adding(f"org-{number}"))) for number in range(130)]
        await asyncio.sleep(0)
        await closing_soon.aclose()
        late = asyncio.create_task(closing_soon.write(lambda _: None))
        return await asyncio.gather(*scripts, late, return_exceptions=True)

    outcomes = asyncio.run(run())
    done = {outcome for outcome in outcomes if isinstance(outcome, str)}
    assert {type(outcome) for outcome in outcomes if not isinstance(outcome, str)} == {Unavailable}
    with closing(open_url(database_url)) as opened:
        assert {name for name in organizations(opened) if name.startswith("org-") and name[4:].isdigit()} == done


# --- Who asks is looked up past all that


def test_who_asks_is_known_while_the_writer_is_busy(database: Database, make_token: Callable[..., str]) -> None:
    """The statement is prepared once, on a connection of its own, and waits for nobody."""
    token = digest(make_token("editor"))

    async def run() -> None:
        async with held_up(database):
            for _ in range(3):
                (admission,) = await database.admit(token, ALPHA)
                assert admission.user_id == "user-editor"

    asyncio.run(run())


def test_a_file_that_is_replaced_is_noticed_by_who_asks(
    database: Database, make_token: Callable[..., str], sqlite_url: str
) -> None:
    token = digest(make_token("editor"))
    path = path_of(database)

    async def run() -> None:
        assert len(await database.admit(token, ALPHA)) == 1
        path.rename(path.with_name("moved.db"))
        with pytest.raises(Unavailable):
            await database.admit(token, ALPHA)
        path.with_name("moved.db").rename(path)
        assert len(await database.admit(token, ALPHA)) == 1

    asyncio.run(run())
    assert str(path) in sqlite_url


def test_a_lock_that_keeps_readers_out_is_unavailable_for_who_asks(
    database_url: str, make_token: Callable[..., str], database: Database
) -> None:
    """No program of ours takes it, but one that repairs or copies the file may."""
    token = digest(make_token("editor"))
    path = path_of(database)
    database.close()
    with closing(open_url(database_url, database_timeout=0.1)) as impatient:

        async def run() -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as holder:
                holder.execute("PRAGMA locking_mode = EXCLUSIVE")
                holder.execute("BEGIN IMMEDIATE")
                holder.execute("UPDATE organization SET name = name")
                holder.execute("COMMIT")
                with pytest.raises(Unavailable):
                    await impatient.admit(token, ALPHA)
            assert len(await impatient.admit(token, ALPHA)) == 1

        asyncio.run(run())


def test_damage_that_who_asks_comes_upon_is_unavailable(
    database_url: str, make_token: Callable[..., str], database: Database
) -> None:
    """Not a fault of the program: 503, as any other look into such a file."""
    token = digest(make_token("editor"))
    path = path_of(database)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((root,),) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'access_token'")
        ((size,),) = other.execute("PRAGMA page_size")
    database.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    with closing(open_url(database_url)) as opened, pytest.raises(Unavailable):
        asyncio.run(_admitted(opened, token))


async def _admitted(database: Database, token: str) -> int:
    return len(await database.admit(token, ALPHA))
