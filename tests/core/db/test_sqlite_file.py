"""The file of the embedded database: how it is opened, when it goes away, and what is found wrong with it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, update
from sqlalchemy.exc import OperationalError

from normata.core.db.database import BadDatabaseUrl, Database
from normata.core.db.sqlite.database import SQLite
from normata.core.db.sqlite.transaction import SQLiteTransaction
from normata.core.db.transaction import ConstraintViolation, Transaction, Work
from normata.core.db.types import format_timestamp
from normata.errors import Unavailable
from tests.core.db.example import ALPHA, METADATA, faults, open_url, organization

pytestmark = pytest.mark.usefixtures("sqlite_url")


def pragma(transaction: Transaction, name: str) -> Any:
    assert isinstance(transaction, SQLiteTransaction)
    return transaction.fetch(f"PRAGMA {name}")[0][0]


def names(transaction: Transaction) -> list[str]:
    return transaction.scalars(select(organization.c.name).order_by(organization.c.name))


def rename(name: str) -> Work[Any]:
    return lambda transaction: transaction.rows(
        update(organization).values(name=name).where(organization.c.id == ALPHA)
    )


def one(transaction: Transaction) -> Any:
    return transaction.scalar(select(1))


# --- How it is opened


def test_every_connection_is_durable_and_keeps_references(sqlite: Database) -> None:
    """Two that read, at the same time so that they are two connections, and one that writes."""
    gate = threading.Barrier(2)

    def look(transaction: Transaction) -> tuple[Any, ...]:
        gate.wait(timeout=10)
        return tuple(pragma(transaction, name) for name in ("journal_mode", "synchronous", "foreign_keys"))

    with ThreadPoolExecutor(2) as threads:
        seen = list(threads.map(lambda _: sqlite.read_now(look), range(2)))
    assert seen == [("wal", 2, 1)] * 2
    gate = threading.Barrier(1)
    assert sqlite.write_now(look) == ("wal", 2, 1)


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
    path = tmp_path / "new" / "normata.db"
    path.parent.mkdir()
    with closing(open_url(f"sqlite:///{path}")) as opened:
        assert opened.exists() == f"no file {path}"
        with pytest.raises(Unavailable):
            opened.read_now(one)
    assert list(path.parent.iterdir()) == []
    with closing(open_url(f"sqlite:///{path}", create=True)) as opened:
        assert opened.write_now(one) == 1
        assert opened.exists() is None
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_database_that_was_made_and_goes_away_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with closing(open_url(f"sqlite:///{path}", create=True)) as opened:
        opened.write_now(one)
        path.unlink()
        for attempt in (opened.read_now, opened.write_now):
            with pytest.raises(Unavailable):
                attempt(one)
    assert not path.exists()


@pytest.mark.parametrize("name", ["with space.db", "ümläut?#%41.db"])
def test_odd_file_names(tmp_path: Path, name: str) -> None:
    with closing(open_url(f"sqlite:///{tmp_path / name.replace('?', '%3F')}", create=True)) as opened:
        opened.write_now(one)
        assert isinstance(opened, SQLite)
        assert opened.path.exists()


@pytest.mark.parametrize("kind", ["folder", "no database", "missing folder"])
def test_what_is_no_database_is_unavailable(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    if kind == "folder":
        target.mkdir()
    elif kind == "no database":
        target.write_text("Dear diary, " * 100)
    else:
        target /= "normata.db"
    with closing(open_url(f"sqlite:///{target}", create=True)) as opened:
        for attempt in (opened.read_now, opened.write_now):
            with pytest.raises(Unavailable):
                attempt(names)
        with pytest.raises(Unavailable):
            opened.alter_now(lambda connection: connection.exec_driver_sql("CREATE TABLE t (x)"))


# --- When it goes away


def test_a_file_that_is_moved_away_is_unavailable_and_comes_back(sqlite: Database, path: Path) -> None:
    assert sqlite.read_now(names) == ["Alpha", "Beta"]
    aside = path.with_name("aside.db")
    path.rename(aside)
    for attempt in (lambda: sqlite.read_now(names), lambda: sqlite.write_now(rename("Lost"))):
        with pytest.raises(Unavailable):
            attempt()
    assert not path.exists()
    aside.rename(path)
    sqlite.write_now(rename("Found"))
    assert sqlite.read_now(names) == ["Beta", "Found"]


def test_a_file_that_is_replaced_is_noticed(sqlite: Database, path: Path, tmp_path: Path) -> None:
    """What is written after a restore from backup must not go into the file that is no longer there."""
    assert sqlite.read_now(names) == ["Alpha", "Beta"]
    backup = tmp_path / "backup.db"
    shutil.copy(path, backup)
    with closing(open_url(f"sqlite:///{backup}")) as opened:
        opened.write_now(rename("Backup"))
    os.replace(backup, path)  # noqa: PTH105 - as tools do it
    assert sqlite.read_now(names) == ["Backup", "Beta"]
    sqlite.write_now(rename("Written"))
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM organization ORDER BY name").fetchall() == [("Beta",), ("Written",)]


# --- What changes the schema


def test_a_table_that_others_refer_to_can_be_made_anew(sqlite: Database) -> None:
    """SQLite changes most of a table in no other way."""

    def work(connection: Connection) -> None:
        for statement in (
            "CREATE TABLE anew (id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT UNIQUE, size INTEGER)",
            "INSERT INTO anew SELECT id, name, slug, 1 FROM organization",
            "DROP TABLE organization",
            "ALTER TABLE anew RENAME TO organization",
        ):
            connection.exec_driver_sql(statement)

    sqlite.alter_now(work)
    assert sqlite.read_now(names) == ["Alpha", "Beta"]
    assert faults(sqlite) == []
    with pytest.raises(ConstraintViolation):
        sqlite.write_now(lambda transaction: transaction.rows(update(organization).values(id="x")))


@pytest.mark.parametrize("breaks", ["a reference", "a key", "itself"])
def test_what_fails_leaves_the_schema_as_it_was(sqlite: Database, breaks: str) -> None:
    def work(connection: Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE half (x)")
        if breaks == "a reference":
            connection.exec_driver_sql("DELETE FROM account")
        elif breaks == "a key":
            connection.exec_driver_sql("UPDATE organization SET slug = 'same'")
        else:
            connection.exec_driver_sql("SELECT nothing")

    with pytest.raises(OperationalError if breaks == "itself" else ConstraintViolation):
        sqlite.alter_now(work)
    assert sqlite.read_now(lambda transaction: transaction.tables()) == {"alembic_version", *METADATA.tables}
    assert sqlite.read_now(lambda transaction: transaction.scalar(select(func.count()).select_from(organization))) == 2


def test_it_has_the_lock_of_those_who_write(sqlite_url: str, sqlite: Database) -> None:
    with closing(open_url(sqlite_url, database_timeout=0.05)) as other:

        def work(connection: Connection) -> None:
            connection.exec_driver_sql("SELECT 1")
            with pytest.raises(Unavailable, match="locked"):
                other.write_now(rename("Meanwhile"))
            with pytest.raises(Unavailable, match="locked"):
                other.alter_now(lambda second: second.exec_driver_sql("SELECT 1"))

        sqlite.alter_now(work)


# --- What is found wrong with it


def test_a_whole_database_has_no_faults(sqlite: Database) -> None:
    assert faults(sqlite) == []


def test_a_damaged_page_is_found(sqlite: Database, path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        [root] = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'uq_label_slug'").fetchone()
        [size] = other.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * 100)
    found = faults(sqlite)
    assert "malformed" in found[-1] or found[-1].startswith("the database is damaged: ")


def test_a_broken_reference_is_found(sqlite: Database, path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA foreign_keys = OFF")
        other.execute("UPDATE label SET parent_id = 'nobody' WHERE id = 'label-alpha'")
        other.commit()
    [found] = faults(sqlite)
    assert " of label refers to a row of label that is not there" in found


def test_timestamps_sort_as_text() -> None:
    early = datetime(2026, 1, 1, 12, tzinfo=UTC)
    late = datetime(2026, 1, 1, 8, 0, 1, 999_999, tzinfo=timezone(timedelta(hours=-4)))
    assert format_timestamp(early) == "2026-01-01T12:00:00.000Z" < format_timestamp(late) == "2026-01-01T12:00:01.999Z"
