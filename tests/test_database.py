"""The database that the service embeds: durable, patient, and honest about being away."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from normata.database import BadDatabaseUrl, Database, Unavailable, format_timestamp
from normata.identity.model import Organization
from normata.records.kinds import Label
from tests import world
from tests.databases import open_url, path_of


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """These tests are about SQLite; tests/postgresql has those about the other."""
    return sqlite_url


def pragma(connection: Connection, name: str) -> Any:
    return connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()


def names(connection: Connection) -> list[str]:
    return list(connection.scalars(select(Organization.name).order_by(Organization.name)))


def rename(name: str) -> Any:
    return lambda connection: connection.execute(
        update(Organization).values(name=name).where(Organization.id == world.ALPHA)
    )


@pytest.fixture
def path(database_url: str) -> Path:
    return Path(database_url.removeprefix("sqlite:///"))


@pytest.fixture
def impatient(database_url: str) -> Iterator[Database]:
    """The test world, through connections that wait for almost nothing."""
    opened = open_url(database_url, database_timeout=0.05, database_pool_size=1)
    yield opened
    opened.close()


# --- How it is opened


def test_every_connection_is_durable_and_keeps_references(database: Database) -> None:
    """All of the pool's connections at once, so that none is looked at twice: the reader's and the writer's."""
    gate = threading.Barrier(2)

    def look(connection: Connection) -> tuple[Any, ...]:
        gate.wait(timeout=10)
        return tuple(pragma(connection, name) for name in ("journal_mode", "synchronous", "foreign_keys"))

    with ThreadPoolExecutor(2) as threads:
        seen = list(threads.map(lambda _: database.read_now(look), range(2)))
    assert seen == [("wal", 2, 1)] * 2
    assert database.write_now(lambda connection: pragma(connection, "foreign_keys")) == 1


def test_a_broken_reference_is_refused(database: Database) -> None:
    row = {"id": "l", "organization_id": "nowhere", "slug": "s", "name": "L", "created_at": "", "updated_at": ""}
    with pytest.raises(IntegrityError):
        database.write_now(lambda connection: connection.execute(insert(Label).values(row)))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("normata.db", "cannot be read"),
        ("", "cannot be read"),
        ("://", "cannot be read"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("mysql://localhost/normata", "names mysql"),
    ],
)
def test_a_bad_url_is_told_in_a_sentence(url: str, reason: str) -> None:
    with pytest.raises(BadDatabaseUrl, match=reason) as caught:
        open_url(url)
    assert "\n" not in str(caught.value)


def test_a_password_in_a_bad_url_is_not_repeated() -> None:
    with pytest.raises(BadDatabaseUrl) as caught:
        open_url("mysql://root:hunter2@localhost/normata")
    assert "hunter2" not in str(caught.value)


def test_a_database_is_made_only_where_that_was_asked_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    with closing(open_url(url)) as opened, pytest.raises(Unavailable):
        opened.read_now(lambda connection: connection.execute(text("SELECT 1")))
    assert list(tmp_path.iterdir()) == []
    with closing(open_url(url, create=True)) as opened:
        assert opened.write_now(lambda connection: connection.scalar(text("SELECT 1"))) == 1
    assert (tmp_path / "new.db").exists()


@pytest.mark.parametrize("name", ["with space.db", "ümläut?#%41.db"])
def test_odd_file_names(tmp_path: Path, name: str) -> None:
    with closing(open_url(f"sqlite:///{tmp_path / name.replace('?', '%3F')}", create=True)) as opened:
        opened.write_now(lambda connection: connection.execute(text("CREATE TABLE t (x)")))
        assert path_of(opened).exists()


@pytest.mark.parametrize("kind", ["folder", "no database", "missing folder"])
def test_what_is_no_database_is_unavailable(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    if kind == "folder":
        target.mkdir()
    elif kind == "no database":
        target.write_text("Dear diary, " * 100)
    else:
        target /= "normata.db"
    with closing(open_url(f"sqlite:///{target}", create=True)) as opened, pytest.raises(Unavailable):
        opened.read_now(names)


# --- When the file goes away


def test_a_file_that_is_moved_away_is_unavailable_and_comes_back(database: Database, path: Path) -> None:
    assert database.read_now(names) == ["Alpha", "Beta"]
    aside = path.with_name("aside.db")
    path.rename(aside)
    for attempt in (lambda: database.read_now(names), lambda: database.write_now(rename("Lost"))):
        with pytest.raises(Unavailable):
            attempt()
    assert not path.exists()
    aside.rename(path)
    database.write_now(rename("Found"))
    assert database.read_now(names) == ["Beta", "Found"]


def test_a_file_that_is_replaced_is_noticed(database: Database, path: Path, tmp_path: Path) -> None:
    """What is written after a restore from backup must not go into the file that is no longer there."""
    assert database.read_now(names) == ["Alpha", "Beta"]
    backup = tmp_path / "backup.db"
    shutil.copy(path, backup)
    with closing(open_url(f"sqlite:///{backup}")) as opened:
        opened.write_now(rename("Backup"))
    os.replace(backup, path)  # noqa: PTH105 - as tools do it
    assert database.read_now(names) == ["Backup", "Beta"]
    database.write_now(rename("Written"))
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM organization ORDER BY name").fetchall() == [("Beta",), ("Written",)]


# --- Transactions


def test_a_write_is_seen_elsewhere_as_soon_as_it_is_acknowledged(database: Database, path: Path) -> None:
    database.write_now(rename("Renamed"))
    with closing(open_url(f"sqlite:///{path}")) as other:
        assert other.read_now(names) == ["Beta", "Renamed"]


def test_a_write_that_raises_leaves_nothing(database: Database) -> None:
    before = world.contents(database)

    def work(connection: Connection) -> None:
        rename("Half")(connection)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        database.write_now(work)
    assert world.contents(database) == before


def test_a_commit_that_fails_leaves_nothing(database: Database) -> None:
    """References between records are looked at when the transaction ends."""
    before = world.contents(database)
    values = {"assignee_member_id": "nobody"}
    statement = text("UPDATE task SET assignee_member_id = :assignee_member_id")
    with pytest.raises(IntegrityError):
        database.write_now(lambda connection: connection.execute(statement, values))
    assert world.contents(database) == before
    database.write_now(rename("Goes on"))


def test_a_read_sees_one_moment_and_keeps_nobody_waiting(database: Database) -> None:
    def work(connection: Connection) -> tuple[list[str], list[str]]:
        first = names(connection)
        database.write_now(rename("Meanwhile"))
        return first, names(connection)

    assert database.read_now(work) == (["Alpha", "Beta"], ["Alpha", "Beta"])
    assert database.read_now(names) == ["Beta", "Meanwhile"]


# --- Queues and time-outs


def test_writers_queue_and_none_is_lost(database: Database) -> None:
    counting = text("UPDATE organization SET name = CAST(CAST(name AS INTEGER) + 1 AS TEXT) WHERE id = 'org-alpha'")
    database.write_now(rename("0"))

    async def all_at_once() -> None:
        await asyncio.gather(*(database.write(lambda connection: connection.execute(counting)) for _ in range(40)))

    asyncio.run(all_at_once())
    assert database.read_now(names) == ["40", "Beta"]


PROCESS = """
import sys
from sqlalchemy import text
from normata.database import open_database
from normata.settings import Settings
database = open_database(Settings(database_url=sys.argv[1], database_timeout=30))
counting = text("UPDATE organization SET name = CAST(CAST(name AS INTEGER) + 1 AS TEXT) WHERE id = 'org-alpha'")
print("ready", flush=True)
for _ in range(40):
    database.write_now(lambda connection: connection.execute(counting))
database.close()
"""


def test_writers_of_two_processes_and_several_threads_wait_for_each_other(database_url: str) -> None:
    counting = text("UPDATE organization SET name = CAST(CAST(name AS INTEGER) + 1 AS TEXT) WHERE id = 'org-alpha'")
    with closing(open_url(database_url, database_timeout=30)) as database:
        database.write_now(rename("0"))
        process = subprocess.Popen([sys.executable, "-c", PROCESS, database_url], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            with ThreadPoolExecutor(2) as threads:
                list(threads.map(lambda _: database.write_now(lambda c: c.execute(counting)), range(40)))
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            process.wait(timeout=10)
            process.stdout.close()
        assert database.read_now(names) == ["80", "Beta"]


def test_a_lock_that_is_not_let_go_is_unavailable_for_writers_only(impatient: Database, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            impatient.write_now(rename("Late"))
        assert impatient.read_now(names) == ["Alpha", "Beta"]
        holder.execute("ROLLBACK")
    impatient.write_now(rename("In time"))
    assert impatient.read_now(names) == ["Beta", "In time"]


def test_no_free_connection_is_unavailable(impatient: Database) -> None:
    def nested(connection: Connection, depth: int) -> None:
        names(connection)
        impatient.read_now(lambda inner: nested(inner, depth + 1) if depth < 5 else None)

    with pytest.raises(Unavailable):
        impatient.read_now(lambda connection: nested(connection, 0))
    assert impatient.read_now(names) == ["Alpha", "Beta"]


# --- What it finds wrong with itself


def test_a_whole_database_has_no_damage(database: Database) -> None:
    assert database.read_now(lambda connection: list(database.damage(connection))) == []


def test_a_damaged_page_is_found(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        [root] = other.execute(
            "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND sql LIKE 'CREATE INDEX ix_notification%'"
        ).fetchone()
        [size] = other.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * 100)
    try:
        found = database.read_now(lambda connection: list(database.damage(connection)))
    except Unavailable as refused:  # some damage lets SQLite read on, some does not
        found = [str(refused)]
    assert "malformed" in found[-1] or found[-1].startswith("the database is damaged: ")


def test_a_broken_reference_is_found(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA foreign_keys = OFF")
        other.execute("UPDATE task SET assignee_member_id = 'nobody' WHERE id = 'tasks-live-org-alpha'")
        other.commit()
    [found] = database.read_now(lambda connection: list(database.damage(connection)))
    assert " of task refers to a row of membership that is not there" in found


def test_timestamps_sort_as_text() -> None:
    early = datetime(2026, 1, 1, 12, tzinfo=UTC)
    late = datetime(2026, 1, 1, 8, 0, 1, 999_999, tzinfo=timezone(timedelta(hours=-4)))
    assert format_timestamp(early) == "2026-01-01T12:00:00.000Z" < format_timestamp(late) == "2026-01-01T12:00:01.999Z"
