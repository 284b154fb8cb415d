"""A lookup of SQLite's goes past the reader and the writer, and waits for nobody."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from normata.core.db.database import Database
from normata.errors import Unavailable
from tests.core.db.example import ALPHA, BETA, NOON, WHO, member, open_url
from tests.core.db.test_sqlite_batches import held_up
from tests.traced import traced

ANSWER = [("user-alpha", ALPHA, NOON)]


def ask(database: Database, *arguments: str | None) -> list[Any]:
    """The rows of the lookup, for tests without an event loop."""
    return list(asyncio.run(database.look_up(WHO, *arguments)))


def test_it_answers_with_rows_that_have_names(sqlite: Database) -> None:
    (row,) = ask(sqlite, "secret-alpha", None)
    assert (row.account_id, row.organization_id, row.since) == ANSWER[0]
    assert ask(sqlite, "secret-alpha", ALPHA) == ANSWER
    assert ask(sqlite, "secret-alpha", BETA) == [("user-alpha", None, None)]
    assert ask(sqlite, "secret-nobody", None) == [("user-nobody", None, None)]
    assert ask(sqlite, "' OR 1=1 --", None) == []


def test_it_sees_what_was_just_written(sqlite: Database) -> None:
    assert ask(sqlite, "secret-alpha", None) == ANSWER
    sqlite.write_now(lambda transaction: transaction.rows(update(member).values(since=None)))
    assert ask(sqlite, "secret-alpha", None) == [("user-alpha", ALPHA, None)]


def test_it_is_answered_while_the_writer_is_busy(sqlite: Database) -> None:
    async def run() -> None:
        async with held_up(sqlite):
            for _ in range(3):
                assert await sqlite.look_up(WHO, "secret-alpha", ALPHA) == ANSWER

    asyncio.run(run())


def test_a_turn_of_the_event_loop_asks_once(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = traced(monkeypatch)

    async def run() -> list[list[str]]:
        turns = []
        for _ in range(2):
            before = len(seen)
            for _ in range(3):
                assert await sqlite.look_up(WHO, "secret-alpha", ALPHA) == ANSWER
            turns.append(seen[before:])
            await asyncio.sleep(0)
        return turns

    first, second = asyncio.run(run())
    assert (first[-1].startswith("SELECT  account"), first.count(first[-1])) == (True, 1), "then it is kept"
    assert second == ["PRAGMA data_version"]


def test_what_another_process_has_committed_is_seen_in_the_next_turn(sqlite: Database, path: Path) -> None:
    async def run() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as another:
            for number in range(20):
                moment = f"2026-01-{number + 1:02}T00:00:00.000000Z"
                another.execute("UPDATE member SET since = ?", (moment,))
                await asyncio.sleep(0)  # as a request does that another has sent after its answer
                for _ in range(2):
                    ((_, _, since),) = await sqlite.look_up(WHO, "secret-alpha", ALPHA)
                    assert since == moment
            another.execute("BEGIN IMMEDIATE")
            another.execute("UPDATE member SET since = NULL")
            await asyncio.sleep(0)
            ((_, _, since),) = await sqlite.look_up(WHO, "secret-alpha", ALPHA)
            assert since == moment, "it is not committed"
            another.execute("COMMIT")
            await asyncio.sleep(0)
            assert await sqlite.look_up(WHO, "secret-alpha", ALPHA) == [("user-alpha", ALPHA, None)]

    asyncio.run(run())


def test_its_connection_is_kept(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = traced(monkeypatch)
    assert ask(sqlite, "secret-alpha", None) == ANSWER
    before = len(seen)
    for _ in range(3):
        assert ask(sqlite, "secret-alpha", None) == ANSWER
    assert seen[before:] == ["PRAGMA data_version"] * 3


def test_a_file_that_is_moved_away_is_noticed(sqlite: Database, path: Path) -> None:
    assert ask(sqlite, "secret-alpha", ALPHA) == ANSWER
    path.rename(path.with_name("moved.db"))
    with pytest.raises(Unavailable):
        ask(sqlite, "secret-alpha", ALPHA)
    path.with_name("moved.db").rename(path)
    assert ask(sqlite, "secret-alpha", ALPHA) == ANSWER


def test_a_lock_that_keeps_readers_out_is_unavailable(sqlite_url: str, path: Path) -> None:
    """No program of ours takes it, but one that repairs or copies the file may."""
    with closing(open_url(sqlite_url, database_timeout=0.1)) as impatient:
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("PRAGMA locking_mode = EXCLUSIVE")
            holder.execute("BEGIN IMMEDIATE")
            holder.execute("UPDATE organization SET name = name")
            holder.execute("COMMIT")
            with pytest.raises(Unavailable):
                ask(impatient, "secret-alpha", ALPHA)
        assert ask(impatient, "secret-alpha", ALPHA) == ANSWER


def test_where_it_would_have_to_wait_the_readers_thread_does(sqlite_url: str, path: Path) -> None:
    with closing(open_url(sqlite_url, database_timeout=10)) as opened:

        async def run() -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as holder:
                holder.execute("PRAGMA locking_mode = EXCLUSIVE")
                holder.execute("BEGIN IMMEDIATE")
                holder.execute("UPDATE organization SET name = name")
                holder.execute("COMMIT")
                asked = asyncio.create_task(opened.look_up(WHO, "secret-alpha", ALPHA))
                await asyncio.sleep(0.1)
                assert not asked.done()
            assert await asked == ANSWER

        asyncio.run(run())


def test_damage_is_unavailable(sqlite_url: str, path: Path) -> None:
    """Not a fault of the program: 503, as any other look into such a file."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((root,),) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'account'")
        ((size,),) = other.execute("PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    with closing(open_url(sqlite_url)) as opened, pytest.raises(Unavailable):
        ask(opened, "secret-alpha", ALPHA)
