"""Records on the command line: the same on the database and over HTTP."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from normata.cli import calls
from normata.core.db.database import Database
from normata.records.archive.queries import KINDS
from tests import mostly_sqlite, world
from tests.cli.commands import Done, Run, failed
from tests.databases import on_both
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


def test_every_kind_is_known() -> None:
    assert set(calls.KINDS) == set(KINDS)


@on_both
def test_a_record_through_its_life(run: Run) -> None:
    done = run("record", "create", "alpha", "vendors", "name=Mail & more", "status=ACTIVE")
    assert (done.code, done.err) == (0, "")
    name, _, title = done.out.strip().partition(": ")
    assert title == "Mail & more"
    shown = run("record", "show", ALPHA, "vendors", "mail-more").out.splitlines()
    assert f"id: {name}" in shown
    assert "status: ACTIVE" in shown
    assert not any(line.startswith("archivedAt") for line in shown)

    assert run("record", "change", "alpha", "vendors", name, "name=Post", "ownerId:=null").out == f"{name}: Post\n"
    listed = run("record", "list", "alpha", "vendors", "--search", "post").out.splitlines()
    assert listed[0] == "id\tshortId\tslug\tname\tstatus\tarchivedAt"
    assert [line.split("\t")[3:] for line in listed[1:]] == [["Post", "ACTIVE", "-"]]

    assert run("record", "archive", "alpha", "vendors", name, "--reason", "Merged.") == Done(
        0, f"{name}: archived\n", ""
    )
    assert failed(run("record", "change", "alpha", "vendors", name, "name=X")) == (
        "The record is archived and therefore read-only; restore it before changing it."
    )
    only = run("record", "list", "alpha", "vendors", "slug=mail-more", "--archived", "only", "--format", "json").out
    assert [one["id"] for one in map(json.loads, only.splitlines())] == [name]
    assert run("record", "restore", "alpha", "vendors", "mail-more") == Done(0, f"{name}: restored\n", "")
    assert failed(run("record", "restore", "alpha", "vendors", name)) == (
        "The record is not archived, so it cannot be restored."
    )


def test_a_list_has_all_pages(run: Run, database: Database) -> None:
    many = [{"id": f"many-{number}", "organizationId": ALPHA, "name": f"Many {number}"} for number in range(205)]
    world.load(database, {"labels": many})
    lines = run("record", "list", "alpha", "labels", "--search", "many", "--column", "id").out.splitlines()
    assert lines[0] == "id"
    assert sorted(lines[1:]) == sorted(one["id"] for one in many)


def test_fields_from_a_file(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "label.json").write_text('{"name": "From a file", "color": "#112233"}', encoding="utf-8")
    assert run("record", "create", "alpha", "labels", "--json", "label.json", "name=Größe ☃").out.endswith(
        ": Größe ☃\n"
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"name": "From a pipe"}')))
    assert run("record", "create", "alpha", "labels", "--json", "-").out.endswith(": From a pipe\n")


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        (
            ("create", "alpha", "labels", "nome=x", "name:=3"),
            ["name: must be a string", "nome: is not a known field"],
        ),
        (("list", "alpha", "tasks", "statsu=x"), ["statsu: is not a known parameter; did you mean status?"]),
        (("list", "alpha", "labels", "sortColumn=colour"), None),
    ],
)
def test_every_fault_is_listed_with_its_place(run: Run, arguments: tuple[str, ...], faults: list[str] | None) -> None:
    done = run("record", *arguments)
    assert (done.code, done.out) == (1, "")
    *found, last = done.err.splitlines()
    if faults is not None:
        assert found == faults
    assert last == f"normata: {len(found)} fault{'' if len(found) == 1 else 's'} found, nothing was changed"


def test_records_that_are_none(run: Run) -> None:
    for name in ("nothing", "..", "", "a/b", "\U0001f600"):
        told = failed(run("record", "show", "alpha", "labels", name))
        assert told == f"the organization has no record {name!r} of the kind labels"
    told = failed(run("record", "show", "alpha", "entitlement-reviews", "x"))
    assert told.startswith("the organization has no record 'x'"), "the kind has no slugs"


def test_all_records_must_exist_before_one_is_archived(run: Run) -> None:
    name = run("record", "create", "alpha", "labels", "name=Left").out.partition(":")[0]
    failed(run("record", "archive", "alpha", "labels", name, "nothing"))
    assert "archivedAt" not in run("record", "show", "alpha", "labels", name).out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("list", "alpha", "bananas"), "there is no kind 'bananas'; there are tasks, "),
        (("list", "alpha", "labels", "red"), "'red' is not FIELD=TEXT"),
        (("list", "alpha", "labels", "limit=5"), "limit is no filter; "),
        (("create", "alpha", "labels"), "name at least one field"),
        (("create", "alpha", "labels", "name:=x"), "the value of name is not JSON; for a text write name=TEXT"),
        *(
            (("create", "alpha", "labels", f"name:={value}"), "the value of name is not JSON")
            for value in ("NaN", "1e999", "[-Infinity]", '"\\ud800"')
        ),
        (("create", "alpha", "labels", "organizationId=x"), "organizationId is no field"),
        (("create", "alpha", "labels", "--json", "list.json"), "list.json must have one JSON object"),
    ],
)
def test_wrong_arguments(normata: Run, folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (folder / "list.json").write_text("[]")
    assert failed(normata("record", *arguments), 2).startswith(sentence)
