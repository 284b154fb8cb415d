"""Loading bundles and dumping them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from normata.core.db.database import Database
from tests import world
from tests.cli.commands import GAMMA, LABEL, Done, Run, break_last_array, bundle_file, failed
from tests.databases import on_sqlite
from tests.world import ALPHA

# --- load


def test_load_tells_what_it_did(normata: Run, database_url: str, folder: Path) -> None:
    live = {"id": "labels-live-org-alpha"}
    path = bundle_file(folder, {"labels": [LABEL, live | {"color": "red"}, {"id": "labels-taken-org-alpha"}]})
    other = bundle_file(folder, {"variables": [LABEL]}, "other.json")
    done = normata("load", path, other, "--database", database_url)
    assert done == Done(0, "labels: 1 new, 1 changed, 1 unchanged\nvariables: 1 new, 0 changed, 0 unchanged\n", "")
    again = normata("load", path, other, "--database", database_url)
    assert again.out == "labels: 0 new, 0 changed, 3 unchanged\nvariables: 0 new, 0 changed, 1 unchanged\n"


def test_load_of_nothing_says_so(normata: Run, folder: Path) -> None:
    done = normata("load", bundle_file(folder, {}))
    assert (done.code, done.out) == (0, "the files have no rows; nothing was changed\n")


def test_faults_are_told_with_file_and_place_and_nothing_stays(
    normata: Run, database: Database, database_url: str, folder: Path
) -> None:
    before = world.contents(database)
    good = bundle_file(folder, GAMMA, "good.json")
    bad = bundle_file(folder, {"labels": [LABEL, LABEL | {"id": "b", "colour": 1}, LABEL | {"id": "c", "name": 3}]})
    done = normata("load", good, bad, "--database", database_url)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        f"{bad}: /labels/1/colour: is not a known field",
        f"{bad}: /labels/2/name: must be a string",
        "normata: 2 faults found, nothing was changed",
    ]
    assert world.contents(database) == before


def test_faults_of_form_keep_no_other_fault_back(normata: Run, folder: Path) -> None:
    path = bundle_file(folder, {"labels": [LABEL | {"id": "c", "name": 3}], "colours": []})
    faults = normata("load", path).err.splitlines()
    assert any(fault.startswith(f"{path}: /colours: ") for fault in faults)
    assert f"{path}: /labels/0/name: must be a string" in faults


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (50, 50), (51, 50), (75, 50)])
def test_the_first_fifty_faults_are_shown(normata: Run, folder: Path, count: int, shown: int) -> None:
    path = bundle_file(folder, {"labels": [{"id": f"l{number}", "name": 3} for number in range(count)]})
    *faults, last = normata("load", path).err.splitlines()
    assert len(faults) == shown
    assert faults[-1] == f"{path}: /labels/{shown - 1}/name: must be a string"
    assert last.startswith(f"normata: {count} fault{'s' if count > 1 else ''} found, nothing was changed")
    assert last.endswith("; the first 50 are shown") == (count > 50)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"{", "is not JSON: "), (b"[]", "must be a JSON object"), (b"\xff", "is not JSON: "), (None, "cannot be read: ")],
)
def test_files_that_are_no_bundles(normata: Run, folder: Path, content: bytes | None, sentence: str) -> None:
    path = folder / "bundle.json"
    if content is not None:
        path.write_bytes(content)
    done = normata("load", path)
    assert (done.code, done.out) == (1, "")
    first, last = done.err.splitlines()
    assert first.startswith(f"{path}: {sentence}")
    assert last == "normata: 1 fault found, nothing was changed"


# --- dump


def test_dump_names_the_organization_by_id_or_slug(normata: Run, database_url: str) -> None:
    by_id = normata("dump", ALPHA, "--database", database_url)
    assert by_id == normata("dump", "alpha", "--database", database_url)
    assert (by_id.code, by_id.err) == (0, "")
    assert [row["id"] for row in json.loads(by_id.out)["organizations"]] == [ALPHA]


@pytest.mark.long
def test_dump_of_one_of_several_must_say_which(normata: Run, database_url: str, folder: Path) -> None:
    assert failed(normata("dump", "--database", database_url)) == "name an organization: there is alpha, beta"
    told = failed(normata("dump", "gamma", "--database", database_url))
    assert told == "no organization 'gamma'; there is alpha, beta"
    normata("load", bundle_file(folder, GAMMA))
    assert json.loads(normata("dump").out)["organizations"][0]["id"] == "org-gamma"


def test_dump_of_an_empty_database_says_what_to_do(normata: Run) -> None:
    normata("migrate")
    assert "there is none yet; `normata init` makes one" in failed(normata("dump"))


def test_dump_to_a_file_and_load_of_it(normata: Run, database_url: str, folder: Path) -> None:
    out = normata("dump", ALPHA, "--database", database_url).out
    done = normata("dump", ALPHA, "--output", "dump.json", "--database", database_url)
    assert done == Done(0, "", "")
    assert (folder / "dump.json").read_text(encoding="utf-8") == out
    assert normata("load", "dump.json").code == 0
    assert normata("dump").out == out
    assert {path.name for path in folder.iterdir()} == {"dump.json", "normata.db"}


@on_sqlite
def test_a_dump_that_fails_leaves_the_old_file_whole(normata: Run, database_url: str, folder: Path) -> None:
    output = folder / "dump.json"
    output.write_text("yesterday's")
    break_last_array(database_url)
    told = failed(normata("dump", ALPHA, "--output", output, "--force", "--database", database_url))
    assert told.startswith("the database cannot be used: ")
    assert output.read_text() == "yesterday's"
    assert list(folder.iterdir()) == [output]


def test_a_dump_that_cannot_be_written_is_told(normata: Run, database_url: str) -> None:
    told = failed(normata("dump", ALPHA, "--output", "missing/dump.json", "--database", database_url))
    assert "missing/dump.json" in told
    assert "No such file or directory" in told
