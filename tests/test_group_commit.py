"""SQLite's one writer takes all writes that wait into one transaction, and each has an outcome of its own."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select, text
from sqlalchemy.exc import IntegrityError, OperationalError

from normata.database import Database, Unavailable, follow
from normata.errors import NotArchived, NotFound
from normata.identity.access import Caller
from normata.identity.model import AuditEvent, Organization
from normata.identity.tokens import digest
from normata.records.kinds import Label
from normata.records.restore import restore
from tests import stored, world
from tests.databases import open_url, path_of
from tests.world import ALPHA, ARCHIVED

Work = Callable[[Connection], Any]


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """These tests are about SQLite: PostgreSQL does this by itself."""
    return sqlite_url


@pytest.fixture
def commits(database: Database) -> Iterator[list[int]]:
    """One entry a commit."""
    seen: list[int] = []

    def note(_connection: Connection) -> None:
        seen.append(1)

    event.listen(database.engine, "commit", note)
    yield seen
    event.remove(database.engine, "commit", note)


@asynccontextmanager
async def held_up(database: Database) -> AsyncIterator[None]:
    """Keep the writer busy for a block, so that all writes of it wait together."""
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


def together(database: Database, works: list[Work]) -> list[Any]:
    """The outcomes, errors included, of writes that wait at the same time."""

    async def run() -> list[Any]:
        async with held_up(database):
            tasks = [asyncio.create_task(database.write(work)) for work in works]
            await asyncio.sleep(0)  # each has queued up by then
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(run())


def organizations(connection: Connection) -> set[str]:
    return set(connection.scalars(select(Organization.id)))


def adding(name: str, slug: str | None = None, *, then: Exception | None = None) -> Work:
    """Adds an organization and returns its name, or raises after that."""

    def work(connection: Connection) -> str:
        values = {"id": name, "name": name, "slug": slug or name, "revision": ""}
        connection.execute(insert(Organization).values(values))
        if then is not None:
            raise then
        return name

    return work


def test_each_has_its_own_outcome_and_what_fails_leaves_nothing(database: Database, commits: list[int]) -> None:
    before = database.read_now(organizations)
    commits.clear()
    works: list[Work] = []
    expected: list[Any] = []
    for number in range(40):
        name = f"org-{number:02}"
        if number % 5 == 1:
            works.append(adding(name, then=NotArchived()))
            expected.append(NotArchived)
        elif number % 5 == 3:
            works.append(adding(name, slug="alpha"))  # taken
            expected.append(IntegrityError)
        elif number % 20 == 4:
            works.append(adding(name, then=Unavailable("ask again")))
            expected.append(Unavailable)
        else:
            works.append(adding(name))
            expected.append(name)
    outcomes = together(database, works)
    assert [outcome if isinstance(outcome, str) else type(outcome) for outcome in outcomes] == expected
    assert database.read_now(organizations) - before == {name for name in expected if isinstance(name, str)}
    assert len(commits) == 3, "the one that held them up, all the rest, and the look at them"


def test_they_are_done_in_the_order_in_which_they_came(database: Database) -> None:
    seen: list[int] = []
    together(database, [lambda _connection, number=number: seen.append(number) for number in range(30)])  # type: ignore[misc]
    assert seen == list(range(30))


def test_a_later_write_sees_what_an_earlier_one_of_the_same_transaction_did(database: Database) -> None:
    outcomes = together(database, [adding("one"), adding("two", then=NotFound()), organizations])
    assert outcomes[2] >= {"one"}
    assert "two" not in outcomes[2]


def test_of_several_that_want_the_same_the_first_has_it(database: Database) -> None:
    outcomes = together(database, [adding("first", "wanted"), adding("second", "wanted"), adding("third", "wanted")])
    assert outcomes[0] == "first"
    assert [type(outcome) for outcome in outcomes[1:]] == [IntegrityError] * 2


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        pytest.param("UPDATE task SET assignee_member_id = 'nobody'", IntegrityError, id="found at the commit"),
        pytest.param("UPDATE nowhere SET id = 1", OperationalError, id="found at once"),
    ],
)
def test_where_the_transaction_of_all_fails_only_the_guilty_one_does(
    database: Database, commits: list[int], statement: str, error: type[Exception]
) -> None:
    """They are done again one by one, then."""
    commits.clear()
    works = [adding("one"), lambda connection: connection.execute(text(statement)), adding("two"), adding("three")]
    outcomes = together(database, works)
    assert [outcome if isinstance(outcome, str) else type(outcome) for outcome in outcomes] == [
        "one",
        error,
        "two",
        "three",
    ]
    assert database.read_now(organizations) >= {"one", "two", "three"}
    assert stored.rows(database, AuditEvent) == []
    assert database.read_now(lambda c: list(c.exec_driver_sql("PRAGMA foreign_key_check"))) == []
    assert together(database, [adding("four"), adding("five")]) == ["four", "five"], "it goes on"


def test_two_guilty_ones_are_told_apart(database: Database) -> None:
    dangling = text("UPDATE task SET assignee_member_id = 'nobody'")
    outcomes = together(
        database,
        [lambda c: c.execute(dangling), adding("one", "alpha"), adding("two"), lambda c: c.execute(dangling)],
    )
    assert [type(outcome) for outcome in outcomes] == [IntegrityError, IntegrityError, str, IntegrityError]


def test_another_process_that_holds_the_lock_makes_all_of_them_unavailable(database_url: str) -> None:
    with closing(open_url(database_url, database_timeout=0.2)) as impatient:
        path = path_of(impatient)

        async def run() -> list[Any]:
            with closing(sqlite3.connect(path, isolation_level=None)) as holder:
                holder.execute("BEGIN IMMEDIATE")
                tasks: list[Awaitable[Any]] = [impatient.write(adding(f"org-{number}")) for number in range(5)]
                return await asyncio.gather(*tasks, return_exceptions=True)

        assert [type(outcome) for outcome in asyncio.run(run())] == [Unavailable] * 5
        assert not any(name.startswith("org-0") for name in impatient.read_now(organizations))
        assert together(impatient, [adding("again")]) == ["again"]


def test_who_has_waited_too_long_is_told_so_and_nothing_of_theirs_is_done(database_url: str) -> None:
    with closing(open_url(database_url, database_timeout=0.2)) as impatient:

        async def run() -> None:
            async with held_up(impatient):
                with pytest.raises(Unavailable):
                    await impatient.write(adding("late"))
            assert await impatient.write(adding("in-time")) == "in-time"

        asyncio.run(run())
        found = impatient.read_now(organizations)
    assert "late" not in found
    assert "in-time" in found


def test_restores_that_wait_together_are_each_answered_for_themselves(database: Database, commits: list[int]) -> None:
    """Ten records, each asked for three times, and one whose slug is taken."""
    ids = [f"label-{number}" for number in range(10)]
    labels = [{"id": name, "organizationId": ALPHA, "name": name, "archivedAt": ARCHIVED} for name in ids]
    world.load(database, {"labels": labels})
    caller = Caller("user-editor", "Editor", "token", "write", (ALPHA,), "")

    def restoring(name: str) -> Work:
        return lambda connection: follow(connection, restore(Label, name, caller, request_id="r"))["id"]

    taken = world.record_id(Label, "taken")
    commits.clear()
    wanted = [*ids, *ids, taken, *ids, "unknown"]
    outcomes = together(database, [restoring(name) for name in wanted])
    assert outcomes[:10] == ids
    assert [type(outcome) for outcome in outcomes[10:20]] == [NotArchived] * 10
    assert isinstance(outcomes[20], IntegrityError)
    assert [type(outcome) for outcome in outcomes[21:31]] == [NotArchived] * 10
    assert isinstance(outcomes[31], NotFound)
    assert len(commits) == 2
    assert sorted(row["entity_id"] for row in stored.rows(database, AuditEvent)) == sorted(ids)
    assert stored.row(database, Label, taken)["archived_at"] is not None


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
