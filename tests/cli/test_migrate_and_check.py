"""Bringing a database up to date, and checking it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from normata.core.db.database import Database
from normata.core.db.types import now
from normata.core.schema import migrations
from normata.notifications.model import Notification
from tests import stored, world
from tests.cli.commands import GAMMA, Done, Run, break_last_array, bundle_file, complaints, failed, mode
from tests.databases import on_sqlite, tamper
from tests.world import ALPHA


def test_migrate_makes_a_database_and_leaves_a_current_one_alone(normata: Run, folder: Path) -> None:
    first = normata("migrate")
    assert first == Done(0, f"the schema is at {migrations.head()}\n", "")
    before = (folder / "normata.db").read_bytes()
    assert normata("migrate") == first
    assert (folder / "normata.db").read_bytes() == before


def a_database_of_something_else(folder: Path) -> Path:
    path = folder / "normata.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE recipe (id INTEGER PRIMARY KEY)")
        other.commit()
    return path


@pytest.mark.parametrize("arguments", [("migrate",), ("load", "bundle.json"), ("check",), ("dump",)], ids=" ".join)
def test_a_database_of_something_else_is_not_touched(normata: Run, folder: Path, arguments: tuple[str, ...]) -> None:
    bundle_file(folder, GAMMA)
    path = a_database_of_something_else(folder)
    before = path.read_bytes()
    done = normata(*arguments)
    assert done.code == 1
    assert "Traceback" not in done.err
    assert path.read_bytes() == before
    assert {file.name for file in folder.iterdir()} == {"normata.db", "bundle.json"}


def test_migrate_says_that_the_database_is_of_something_else(normata: Run, folder: Path) -> None:
    a_database_of_something_else(folder)
    assert failed(normata("migrate")) == (
        "the database holds tables of something else; name another one with --database"
    )


@pytest.mark.parametrize("arguments", [("migrate",), ("dump", ALPHA), ("token", "list")], ids=" ".join)
def test_a_newer_schema_is_not_touched(
    normata: Run, database: Database, database_url: str, arguments: tuple[str, ...]
) -> None:
    tamper(database, "UPDATE alembic_version SET version_num = '9999'")
    before = world.contents(database)
    told = failed(normata(*arguments, "--database", database_url))
    assert told == "the database was made by a newer version of Normata; upgrade the program"
    assert world.contents(database) == before


# --- check


def test_check_of_a_good_database(normata: Run, database_url: str) -> None:
    done = normata("check", "--database", database_url)
    assert (done.code, complaints(done)) == (0, [])
    settings, schema, integrity, events, *contents = done.out.splitlines()
    assert (settings, integrity) == ("settings: good", "integrity: good")
    assert events == "events: 0 verified, in 0 logs"
    assert schema == f"schema: current ({migrations.head()})"
    assert contents[0] == "organization org-alpha: Alpha"


@on_sqlite
@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (
            "UPDATE effective_coverage SET status = 2 WHERE control_id = 'moon.A.9'",
            "the stored coverage of organization org-alpha does not follow from its assessments",
        ),
        (
            "UPDATE task SET assignee_member_id = 'nobody' WHERE id = 'tasks-live-org-alpha'",
            "of task refers to a row of membership that is not there",
        ),
    ],
)
def test_check_finds_what_does_not_hold(normata: Run, database_url: str, statement: str, sentence: str) -> None:
    with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as other:
        other.execute("PRAGMA foreign_keys = OFF")
        other.create_function("normata_moment", 0, now)
        other.execute(statement)
        other.commit()
    done = normata("check", "--database", database_url)
    assert done.code == 1
    assert "integrity: good" not in done.out
    fault, *_, last = done.err.splitlines()
    assert sentence in fault
    assert last == "normata: the database is damaged"


@on_sqlite
@pytest.mark.parametrize("damage", ["a page", "half of it", "its head"])
def test_check_of_a_damaged_database(normata: Run, database_url: str, damage: str) -> None:
    path = Path(database_url.removeprefix("sqlite:///"))
    if damage == "a page":
        break_last_array(database_url)
    else:
        with path.open("r+b") as file:
            file.write(b"\xff" * 100) if damage == "its head" else file.truncate(path.stat().st_size // 2)
    done = normata("check", "--database", database_url)
    assert done.code == 1
    assert "integrity: good" not in done.out
    assert done.err.splitlines()[-1].startswith("normata: the database ")
    assert "Traceback" not in done.err


def test_check_of_a_schema_that_is_not_current(normata: Run, folder: Path) -> None:
    path = folder / "normata.db"
    path.touch(0o600)
    done = normata("check")
    assert done.code == 1
    assert done.err == "normata: the schema of the database is not current; run `normata migrate`\n"


@on_sqlite
def test_check_warns_of_files_that_others_may_read(normata: Run, database_url: str) -> None:
    path = Path(database_url.removeprefix("sqlite:///"))
    log = path.with_name("normata.db-wal")
    log.touch(0o640)
    path.chmod(0o604)
    done = normata("check", "--database", database_url)
    assert done.code == 0
    assert [line for line in done.err.splitlines() if line.startswith("warning: ")] == [
        f"warning: {path} is not for its owner alone (its mode is 0604); run chmod 600 {path}",
        f"warning: {log} is not for its owner alone (its mode is 0640); run chmod 600 {log}",
    ]


def test_migrate_makes_a_file_that_nobody_else_may_read(normata: Run, folder: Path) -> None:
    normata("migrate")
    assert mode(folder / "normata.db") == 0o600
    assert normata("check").err == ""


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_after_an_upgrade_all_coverage_is_what_follows(normata: Run, database: Database, database_url: str) -> None:
    """While both versions served, the one before has stored coverage by rules of its own."""
    gap = {"id": "say-moon", "organizationId": ALPHA, "controlId": "moon.A.1", "coverageStatus": "NONE"}
    world.load(database, {"controlCoverages": [gap | {"coverageGap": "All of it."}]})
    tamper(
        database,
        "UPDATE effective_coverage SET status = 2, is_indirect = true WHERE control_id = 'moon.A.2'",
        "UPDATE effective_coverage SET conflict = NULL WHERE control_id = 'moon.A.1'",
        "DELETE FROM notification WHERE type LIKE 'coverage.%'",
    )
    assert normata("migrate", "--database", database_url).code == 0
    assert "the stored coverage of" in normata("check", "--database", database_url).err
    for _ in range(2):
        assert normata("migrate", "--after", "--database", database_url).code == 0
        assert normata("check", "--database", database_url).code == 0
        found = [row for row in stored.rows(database, Notification) if row["type"].startswith("coverage.")]
        assert sorted((row["user_id"], row["type"]) for row in found) == [
            ("user-admin", "coverage.rules_changed"),
            ("user-owner", "coverage.rules_changed"),
        ]


@pytest.mark.parametrize(
    ("public_url", "is_warned"),
    [("http://normata.example.org", True), ("http://localhost:8000", False), ("https://normata.example.org", False)],
)
def test_check_warns_where_nobody_can_sign_in(
    normata: Run, monkeypatch: pytest.MonkeyPatch, public_url: str, is_warned: bool
) -> None:
    normata("migrate")
    monkeypatch.setenv("NORMATA_PUBLIC_URL", public_url)
    done = normata("check")
    assert done.code == 0
    assert ("warning: nobody can sign in" in done.err) is is_warned
