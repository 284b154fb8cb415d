"""A dump of everything: every table of the schema moves, row for row, to either database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Boolean, Float, Integer, insert
from sqlalchemy import Table as SqlTable

from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.db.types import Document, UtcTimestamp
from normata.events.sealing import seal_all_now
from normata.tables import Table
from tests import world
from tests.cli.commands import Run, complaints, failed
from tests.history.rows import fill as fill_histories
from tests.pooled import opened

SOMETHING = 7
ONE_OF = {"outcome": "SENT"}  # values of columns that take no others
KEY = "the key of the events is not in the dump: copy its file to the path of NORMATA_EVENT_KEY"


def a_row(transaction: Transaction, table: SqlTable) -> dict[str, Any]:
    """A row with a value in every column; a reference names the first row that there is."""
    return {column.name: _a_value(transaction, table, column) for column in table.c}


def _a_value(transaction: Transaction, table: SqlTable, column: Any) -> Any:
    for key in column.foreign_keys:
        return transaction.scalar(key.column.table.select().with_only_columns(key.column).order_by(key.column).limit(1))
    match column.type:
        case UtcTimestamp():
            return world.EARLIER
        case Document():
            return [{"ß": [1, 2.5, None]}]
        case Boolean():
            return True
        case Integer() | Float():
            return SOMETHING
    return ONE_OF.get(column.name, f"{table.name[:4]} {column.name[:8]} é"[: column.type.length or 99])


def fill(database: Database) -> None:
    """Have a row in every table that the world leaves empty."""

    def work(transaction: Transaction) -> None:
        # Histories last, since triggers fill some of them.
        for table in sorted(Table.metadata.sorted_tables, key=lambda table: table.name.endswith("_history")):
            if transaction.row(table.select().limit(1)) is None:
                transaction.execute_many(insert(table), [a_row(transaction, table)])

    database.alter_now(lambda connection: [connection.exec_driver_sql(statement) for statement in fill_histories()])
    database.write_now(work)


across = pytest.mark.parametrize(
    ("database_url", "empty_url"), [("sqlite", "postgresql"), ("postgresql", "sqlite")], indirect=True
)


@across
def test_every_row_of_every_table_moves(
    normata: Run, database: Database, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    fill(database)
    seal_all_now(database)
    fill(database)  # sealing has emptied a table
    before = world.contents(database)
    assert all(before.values()), [table for table, rows in before.items() if not rows]
    path, again = tmp_path / "all.json", tmp_path / "again.json"
    assert normata("dump", "--all", "--output", path, "--database", database_url).code == 0
    done = normata("load", path, "--database", empty_url)
    assert done.code == 0
    with opened(empty_url) as moved:
        after = world.contents(moved)
    assert [name for name, rows in before.items() if rows != after[name]] == []
    assert "operators: 1\n" in done.out
    assert done.err == f"{KEY}\n"
    assert normata("dump", "--all", "--output", again, "--database", empty_url).code == 0
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.long
def test_a_moved_log_is_still_the_one_of_an_old_checkpoint(
    normata: Run, folder: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NORMATA_EVENT_KEY", str(folder / "key"))
    assert normata("init", "--organization", "Gamma", "--email", "g@gamma.example").code == 0
    assert normata("user", "operator", "g@gamma.example").code == 0
    (folder / "checkpoint.txt").write_text(normata("events", "checkpoint").out)
    (folder / "keys.txt").write_text(normata("events", "key").out)
    assert normata("dump", "--all", "--output", "all.json").code == 0
    assert normata("load", "all.json", "--database", empty_url).code == 0
    done = normata("check", "--database", empty_url)
    assert (done.code, complaints(done)) == (0, [])
    assert normata("events", "export", "--output", "log.jsonl", "--database", empty_url).code == 0
    proven = normata("events", "verify", "log.jsonl", "checkpoint.txt", "--key", "keys.txt")
    assert (proven.code, "match the checkpoint" in proven.out) == (0, True)


@pytest.fixture
def dump_file(normata: Run, sqlite_url: str, folder: Path) -> Path:
    """A dump of everything in the test world."""
    path = folder / "all.json"
    assert normata("dump", "--all", "--output", path, "--database", sqlite_url).code == 0
    return path


def test_it_loads_into_an_empty_database_only(normata: Run, database_url: str, dump_file: Path) -> None:
    told = failed(normata("load", dump_file, "--database", database_url))
    assert told.startswith(f"{dump_file} has everything, and loads into an empty database only; this one has rows of ")


def test_it_loads_alone(normata: Run, dump_file: Path, empty_url: str) -> None:
    told = failed(normata("load", dump_file, dump_file, "--database", empty_url))
    assert told == f"{dump_file} is a dump of everything, so it must be loaded alone"


def _without_an_array(document: dict[str, Any]) -> None:
    del document["operators"]


def _with_another_array(document: dict[str, Any]) -> None:
    document["colours"] = []


def _without_a_column(document: dict[str, Any]) -> None:
    del document["users"][0]["emailFolded"]


def _with_a_text_for_a_number(document: dict[str, Any]) -> None:
    document["tasks"][1]["shortId"] = "1"


def _with_null_for_a_name(document: dict[str, Any]) -> None:
    document["tasks"][0]["title"] = None


def _with_no_time(document: dict[str, Any]) -> None:
    document["users"][1]["removedAt"] = "yesterday"


def _of_another_schema(document: dict[str, Any]) -> None:
    document["schema"] = "20201231_01"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_without_an_array, "lacks operators"),
        (_with_another_array, "/colours: is not an array of a dump of everything"),
        (_without_a_column, "/users/0: must have just the fields id, email, name, emailFolded, organizationId, "),
        (_with_a_text_for_a_number, "/tasks/1/shortId: must be of type int"),
        (_with_null_for_a_name, "/tasks/0/title: must not be null"),
        (_with_no_time, "/users/1/removedAt: must be a time"),
        (_of_another_schema, "/schema: is 20201231_01, and the database has "),
    ],
)
def test_what_is_no_whole_dump_changes_nothing(
    normata: Run, empty_url: str, dump_file: Path, spoil: Any, reason: str
) -> None:
    document = json.loads(dump_file.read_text("utf-8"))
    spoil(document)
    dump_file.write_text(json.dumps(document), encoding="utf-8")
    done = normata("load", dump_file, "--database", empty_url)
    assert (done.code, done.out) == (1, "")
    fault, last = done.err.splitlines()
    assert reason in fault
    assert last == "normata: 1 fault found, nothing was changed"
    with opened(empty_url) as empty:
        assert not any(world.contents(empty).values())


def test_a_dump_that_was_cut_off_changes_nothing(
    normata: Run, empty: Database, empty_url: str, dump_file: Path
) -> None:
    before = world.contents(empty)
    content = dump_file.read_bytes()
    dump_file.write_bytes(content[: len(content) // 2])
    done = normata("load", dump_file, "--database", empty_url)
    assert (done.code, done.out, "is not JSON" in done.err) == (1, "", True)
    assert world.contents(empty) == before
