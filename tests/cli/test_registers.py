"""Registers as files on the command line: the same bytes from the database and over HTTP."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from normata.core.db.database import Database
from tests import mostly_sqlite, world
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
