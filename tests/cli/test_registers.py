"""Registers as files on the command line: the same bytes from the database and over HTTP."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from normata.cli import calls
from normata.core.db.database import Database
from normata.records.imports import operations as imports
from tests import mostly_sqlite, stored, world
from tests.cli.commands import Done, Run, failed, mode
from tests.client import TestClient
from tests.databases import on_both
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@on_both
@pytest.mark.parametrize("name", ["csv", "xlsx"])
def test_an_export_has_the_bytes_that_http_answers(
    run: Run, client: TestClient, bearer: Callable[..., dict[str, str]], name: str
) -> None:
    assert run("export-records", "alpha", "tasks", f"tasks.{name}", "--archived", "include") == Done(0, "", "")
    query = {"organizationId": ALPHA, "format": name, "archived": "include"}
    answer = client.get("/tasks/", params=query, headers=bearer("viewer"))
    assert Path(f"tasks.{name}").read_bytes() == answer.content
    assert mode(Path(f"tasks.{name}")) == 0o600


def test_an_export_has_all_records_that_are_chosen(run: Run, database: Database) -> None:
    many = [{"id": f"many-{number}", "organizationId": ALPHA, "name": f"Many {number}"} for number in range(205)]
    world.load(database, {"labels": many})
    assert run("export-records", "alpha", "labels", "labels.txt", "--format", "csv", "--search", "many").code == 0
    rows = list(csv.DictReader(io.StringIO(Path("labels.txt").read_text("utf-8-sig"))))
    assert {row["id"] for row in rows} == {one["id"] for one in many}
    assert run("export-records", "alpha", "labels", "one.csv", "slug=many-7").code == 0
    assert len(Path("one.csv").read_text("utf-8").splitlines()) == 2


def test_a_file_is_not_replaced_by_accident_nor_by_a_failure(run: Run, folder: Path) -> None:
    (folder / "tasks.csv").write_text("yesterday's")
    told = failed(run("export-records", "alpha", "tasks", "tasks.csv"))
    assert told == "tasks.csv exists already; --force replaces it"
    assert run("export-records", "alpha", "tasks", "tasks.csv", "colour=red", "--force").code == 1
    assert (folder / "tasks.csv").read_text() == "yesterday's"
    assert run("export-records", "alpha", "tasks", "tasks.csv", "--force").code == 0
    assert [path.name for path in folder.iterdir()] == ["tasks.csv"]


# --- Importing


def rewritten(path: Path, change: Callable[[list[dict[str, str]]], None]) -> None:
    """Change the rows of a CSV file."""
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    names = list(rows[0])
    change(rows)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, restval="")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), "utf-8")


@pytest.mark.parametrize("name", ["csv", "xlsx"])
def test_what_was_exported_changes_nothing(run: Run, database: Database, name: str) -> None:
    path = f"vendors.{name}"
    assert run("export-records", "alpha", "vendors", path).code == 0
    before = stored.everything(database)
    done = run("import-records", "alpha", "vendors", path)
    count = len(run("record", "list", "alpha", "vendors").out.splitlines()) - 1
    assert done == Done(0, f"0 new, 0 changed, {count} unchanged\n", "")
    assert stored.everything(database) == before


@on_both
def test_rows_change_and_make_records(run: Run, database: Database, folder: Path) -> None:
    world.load(database, {"labels": [{"id": f"l{one}", "organizationId": ALPHA, "name": f"L {one}"} for one in "12"]})
    path = folder / "labels.csv"
    run("export-records", "alpha", "labels", path.name, "--search", "L")

    def change(rows: list[dict[str, str]]) -> None:
        [one] = [row for row in rows if row["id"] == "l1"]
        one["name"] = "Größe"
        rows[:] = [one, {"name": "Another"}, *(row for row in rows if row["id"] == "l2")]

    rewritten(path, change)
    before = stored.everything(database)
    preview = run("import-records", "alpha", "labels", path.name, "--dry-run")
    assert preview.out.splitlines() == [
        "nothing was changed; the import would result in:",
        "row 2: updated: Größe",
        "row 3: created: Another",
        "1 new, 1 changed, 1 unchanged",
    ]
    assert stored.everything(database) == before
    done = run("import-records", "alpha", "labels", path.name)
    assert done == Done(0, "1 new, 1 changed, 1 unchanged\n", "")
    assert "name: Größe" in run("record", "show", "alpha", "labels", "l1").out


def test_faults_have_their_cells(run: Run, database: Database, folder: Path) -> None:
    (folder / "labels.csv").write_text("name,slug\nGood,good\n,bad\n", "utf-8")
    before = stored.everything(database)
    done = run("import-records", "alpha", "labels", "labels.csv")
    assert (done.code, done.out) == (1, "")
    fault, last = done.err.splitlines()
    assert fault.startswith("row 3, name: ")
    assert last == "normata: 1 fault found, nothing was changed"
    assert stored.everything(database) == before

    done = run("import-records", "alpha", "labels", "labels.csv", "--mode", "each")
    assert (done.code, done.out) == (1, "1 new, 0 changed, 0 unchanged\n")
    assert done.err.splitlines() == [fault, "normata: 1 row was refused"]


def test_a_file_that_is_no_register(run: Run, folder: Path) -> None:
    (folder / "labels.csv").write_text("colour\nred\n")
    done = run("import-records", "alpha", "labels", "labels.csv")
    assert (done.code, "nothing was changed" in done.err) == (1, True)
    assert "cannot be read: No such file" in failed(run("import-records", "alpha", "labels", "missing.csv"))


def test_every_kind_can_be_imported() -> None:
    declared = {(one.method, one.path) for one in imports.OPERATIONS}
    assert {calls.importing(kind)[:2] for kind in calls.KINDS} == declared
    assert calls.importing("labels").module == imports.__name__
