"""Importing catalogs and mappings, and adopting frameworks."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from normata.app import create_app
from normata.core.db.database import Database
from normata.settings import Settings
from tests import world
from tests.catalogs.test_reading import published
from tests.cli.commands import Done, Run, bundle_file, failed, program
from tests.client import TestClient

pytestmark = pytest.mark.long


def test_import_tells_faults_like_load(normata: Run, folder: Path) -> None:
    (folder / "library.yaml").write_text("urn: x\nobjects: }")
    done = normata("import", "library.yaml", "absent.yaml")
    assert (done.code, done.out) == (1, "")
    first, second, last = done.err.splitlines()
    assert first.startswith("library.yaml: is neither JSON nor YAML: line 2, column 10")
    assert second == "absent.yaml: cannot be read: No such file or directory"
    assert last == "normata: 2 faults found, nothing was changed"


@pytest.mark.parametrize("url", ["sqlite", "postgresql"])
def test_an_identifier_has_at_most_255_characters(
    normata: Run, folder: Path, url: str, request: pytest.FixtureRequest
) -> None:
    database = ("--database", request.getfixturevalue("postgres_url")) if url == "postgresql" else ()
    longest = "urn:boat:" + "x" * 246

    def made(urn: str) -> Path:
        document = library((urn, urn))
        document["objects"]["framework"]["requirement_nodes"][0]["urn"] = urn
        return bundle_file(folder, document)

    done = normata("import", *database, made(longest + "x"))
    assert (done.code, done.out) == (1, "")
    assert "/objects/framework/requirement_nodes/0/urn: must be at most 255 characters" in done.err
    done = normata("import", *database, made(longest))
    assert (done.code, done.err) == (0, "")
    assert "controls: 1 new, 0 changed, 0 unchanged" in done.out.splitlines()


TABLE = "identifier;name;parent;mandatory\n1;Berths;;\n1.1;Locked at night;1;yes\n"


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_a_table_becomes_a_framework(normata: Run, folder: Path, form: str) -> None:
    """A centralized one, named after its file; or an organization's own."""
    path = folder / f"Dock Rules.{form}"
    if form == "csv":
        path.write_text(TABLE, encoding="utf-8")
    else:
        book = openpyxl.Workbook()
        for line in TABLE.splitlines():
            book.active.append(line.split(";"))
        book.save(path)
    assert normata("load", bundle_file(folder, {"organizations": [{"id": "o", "name": "Oh", "slug": "oh"}]})).code == 0
    for options in ((), ("--organization", "oh"), ("--organization", "o", "--name", "Ours")):
        for tally in ("{} new, 0 changed, 0 unchanged", "0 new, 0 changed, {} unchanged"):
            done = normata("import", path, *options)
            assert done == Done(0, f"frameworks: {tally.format(1)}\ncontrols: {tally.format(2)}\n", "")
    document = json.loads(normata("dump", "--all").out)
    assert {(row["name"], row["organizationId"], row["isCentralized"]) for row in document["frameworks"]} == {
        ("Dock Rules", None, True),
        ("Dock Rules", "o", False),
        ("Ours", "o", False),
    }
    assert normata("adopt", "o", "Dock Rules").code == 1  # there are two now that the organization can see
    assert normata("adopt", "o", "Ours").code == 0
    assert normata("check").code == 0


def test_an_import_says_which_wordings_change_and_which_assessments_become_stale(normata: Run, folder: Path) -> None:
    def imported(table: str, *options: str) -> list[str]:
        (folder / "docks.csv").write_text(table, encoding="utf-8")
        done = normata("import", "docks.csv", "--organization", "o", *options)
        assert (done.code, done.err) == (0, "")
        return done.out.splitlines()

    assert normata("load", bundle_file(folder, {"organizations": [{"id": "o", "name": "Oh"}]})).code == 0
    imported(TABLE)
    assert normata("adopt", "o", "docks").code == 0
    (folder / "said.csv").write_text("identifier,status\n1.1,FULL\n", encoding="utf-8")
    assert normata("assess", "o", "--file", "said.csv").code == 0
    assert not [line for line in imported(TABLE.replace("Locked at", "LOCKED  at")) if "wording" in line]
    document = json.loads(normata("dump", "o").out)
    [control] = [row["id"] for row in document["controls"] if row["identifier"] == "1.1"]
    told = ["1 control has another wording:", f"  {control} Locked by day (name)"]
    stale = f"assessments of o that become stale: 1 ({control})"
    newer = TABLE.replace("at night", "by day")
    assert imported(newer, "--dry-run")[-3:] == [*told, stale]
    assert imported(newer, "--dry-run", "--editorial")[-2:] == told
    assert imported(newer)[-3:] == [*told, stale]
    assert imported(TABLE, "--editorial")[-1].endswith("Locked at night (name)")
    [*_, last] = json.loads(normata("dump", "o").out)["controlWordings"]
    assert (last["name"], last["isEditorial"], last["staleSince"]) == ("Locked by day", True, None)
    assert normata("check").code == 0


def test_an_import_for_an_organization_that_is_not_there(normata: Run, folder: Path) -> None:
    (folder / "docks.csv").write_text(TABLE, encoding="utf-8")
    assert normata("load", bundle_file(folder, {"organizations": [{"id": "o", "name": "Oh"}]})).code == 0
    told = failed(normata("import", "docks.csv", "--organization", "x"))
    assert told == "no organization 'x'; there is oh"


# --- Mappings that name unknown controls


def library(*mappings: tuple[str, str]) -> dict[str, Any]:
    """A framework with one control, and a mapping set."""
    return {
        "urn": "urn:example:library:boat",
        "ref_id": "boat",
        "name": "Boat",
        "version": 1,
        "objects": {
            "framework": {
                "urn": "urn:example:framework:boat",
                "ref_id": "BOAT",
                "name": "Boat",
                "requirement_nodes": [{"urn": "urn:boat:1", "assessable": True, "ref_id": "1", "name": "Sails"}],
            },
            "requirement_mapping_sets": [
                {
                    "requirement_mappings": [
                        {"source_requirement_urn": source, "target_requirement_urn": target, "relationship": "superset"}
                        for source, target in mappings
                    ]
                }
            ],
        },
    }


UNKNOWN = library(("urn:boat:1", "urn:boat:1"), ("urn:boat:1", "urn:ship:1"), ("=urn:ship:2", "urn:boat:1"))


def left_out(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_unknown_controls_are_a_fault_that_names_the_way_out(normata: Run, folder: Path) -> None:
    done = normata("import", bundle_file(folder, UNKNOWN))
    assert (done.code, done.out) == (1, "")
    assert "--skip-unknown" in done.err


def test_mappings_to_unknown_controls_are_left_out_and_listed(normata: Run, folder: Path) -> None:
    path = bundle_file(folder, UNKNOWN)
    done = normata("import", "--skip-unknown", "--left-out", "list.csv", path)
    assert (done.code, done.err) == (0, "")
    *row_counts, last = done.out.splitlines()
    assert row_counts == [
        "frameworks: 1 new, 0 changed, 0 unchanged",
        "controls: 1 new, 0 changed, 0 unchanged",
        "mappingDocuments: 1 new, 0 changed, 0 unchanged",
        "controlMatches: 1 new, 0 changed, 0 unchanged",
    ]
    assert last == "2 mappings were left out; list.csv lists them"
    places = [f"/objects/requirement_mapping_sets/0/requirement_mappings/{number}" for number in (1, 2)]
    assert left_out(folder / "list.csv") == [
        {
            "file": str(path), "place": places[0], "source": "urn:boat:1", "relationship": "superset",
            "target": "urn:ship:1", "unknown": "urn:ship:1",
        },
        {
            "file": str(path), "place": places[1], "source": "'=urn:ship:2", "relationship": "superset",
            "target": "urn:boat:1", "unknown": "'=urn:ship:2",
        },
    ]  # fmt: skip


def test_the_list_has_a_name_of_its_own_unless_one_is_given(normata: Run, folder: Path) -> None:
    done = normata("import", "--skip-unknown", bundle_file(folder, UNKNOWN))
    [path] = folder.glob("left-out-*.csv")
    assert done.out.splitlines()[-1] == f"2 mappings were left out; {path.name} lists them"
    assert len(left_out(path)) == 2


def test_where_nothing_is_left_out_there_is_no_list(normata: Run, folder: Path) -> None:
    done = normata("import", "--skip-unknown", bundle_file(folder, library()))
    assert done.code == 0
    assert "left out" not in done.out
    assert list(folder.glob("*.csv")) == []


def test_a_list_that_cannot_be_written_is_told_before_anything_is_imported(normata: Run, folder: Path) -> None:
    (folder / "list.csv").write_text("mine")
    path = bundle_file(folder, UNKNOWN)
    told = failed(normata("import", "--skip-unknown", "--left-out", "list.csv", path))
    assert told == "list.csv exists already; name another file with --left-out"
    assert not (folder / "normata.db").exists()
    assert failed(normata("import", "--left-out", "x.csv", path), code=2) == "--left-out goes with --skip-unknown"


# --- What is published


CSF_1, CSF_2 = "urn:intuitem:risk:framework:nist-csf-1.1", "urn:intuitem:risk:framework:nist-csf-2.0"
SP_800_53 = "urn:intuitem:risk:framework:nist-sp-800-53-rev5"
SOURCE, TARGET = "urn:intuitem:risk:req_node:nist-csf-1.1:id.be-2", "urn:intuitem:risk:req_node:nist-csf-2.0:gv.oc-01"


@pytest.fixture(scope="module")
def imported(catalogs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """A database with all that is published, imported twice by the program; what it printed the second time."""
    url = f"sqlite:///{tmp_path_factory.mktemp('imported') / 'normata.db'}"
    files = [str(path) for path in published(catalogs)]
    for _ in range(2):
        done = program("import", *files, "--database", url, stdout=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (0, "")
    return url, done.stdout.splitlines()


def test_importing_everything_again_changes_nothing(imported: tuple[str, list[str]]) -> None:
    _, second = imported
    *row_counts, last = second
    assert [re.sub(r"[0-9]+ unchanged", "N unchanged", line) for line in row_counts] == [
        f"{array}: 0 new, 0 changed, N unchanged"
        for array in (
            "frameworks",
            "controls",
            "baselines",
            "baselineControls",
            "sourceDocuments",
            "mappingDocuments",
            "controlMatches",
        )
    ]
    assert last.startswith("not imported: ")
    for sort in ("assessment objectives", "translations", "withdrawn controls"):
        assert re.search(rf"[0-9]+ {sort}", last)


def test_imported_catalogs_are_listed_whole_and_in_order_and_coverage_flows(
    normata: Run, imported: tuple[str, list[str]], catalogs: Path, folder: Path
) -> None:
    shutil.copy(imported[0].removeprefix("sqlite:///"), folder / "normata.db")
    document = {
        "organizations": [{"id": "o", "name": "O"}],
        "users": [{"id": "u", "email": "u@o.example"}],
        "memberships": [{"id": "m", "organizationId": "o", "userId": "u"}],
        "controlCoverages": [{"id": "s", "organizationId": "o", "controlId": SOURCE, "coverageStatus": "FULL"}],
    }
    assert normata("load", bundle_file(folder, document)).code == 0
    assert normata("adopt", "o", "NIST-CSF-1.1", CSF_2, "NIST-SP-800-53-rev5").code == 0
    token = normata("token", "create", "--user", "u@o.example").out.strip()
    application = create_app(Settings(database_url="sqlite:///normata.db", log_level="error"))
    with TestClient(application, headers={"Authorization": f"Bearer {token}"}) as client:

        def listed(framework_id: str) -> list[dict[str, Any]]:
            items: list[dict[str, Any]] = []
            for page in range(1, 21):
                query: dict[str, str | int] = {"organizationId": "o", "frameworks": framework_id, "page": page}
                answer = client.get("/controls/", params=query).json()
                items += answer["items"]
                if page * 100 >= answer["total"]:
                    break
            assert len(items) == answer["total"]
            return items

        published = (catalogs / "ciso-assistant" / "nist-sp-800-53-rev5.yaml").read_text(encoding="utf-8")
        nodes = re.findall(r"^    - urn: (\S+)", published, re.MULTILINE)
        assert [item["id"] for item in listed(SP_800_53)] == nodes
        assert len(nodes) == 1_209

        source = {item["id"]: item for item in listed(CSF_1)}[SOURCE]
        assert (source["effectiveCoverageStatus"], source["isIndirectlyCovered"]) == ("FULL", False)
        target = {item["id"]: item for item in listed(CSF_2)}[TARGET]
        assert target["coverage"] == {"coverageStatus": "NONE", "coverageGap": None}
        assert (target["effectiveCoverageStatus"], target["isIndirectlyCovered"]) == ("PARTIAL", True)
        assert SOURCE in {match["matchedControl"]["id"] for match in target["sourceMatches"]}
    assert normata("check").code == 0


# --- adopt


def test_adopt_tells_what_is_new(run: Run, normata: Run, database_url: str) -> None:
    done = run("adopt", "alpha", "STAR", "fw-sun")
    assert done == Done(0, "fw-star: adopted\nfw-sun: was adopted already\n", "")
    assert normata("check", "--database", database_url).code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nobody", "STAR"), "no organization 'nobody'; there is alpha"),
        (("alpha", "STAR", "fw-foreign"), "the organization can see no framework 'fw-foreign'; "),
    ],
)
def test_adopt_refuses_what_is_not_there_as_a_whole(
    run: Run, database: Database, arguments: tuple[str, ...], sentence: str
) -> None:
    before = _unsealed(world.contents(database))
    assert failed(run("adopt", *arguments)).startswith(sentence)
    assert _unsealed(world.contents(database)) == before


def _unsealed(contents: dict[str, list[str]]) -> dict[str, list[str]]:
    """Contents without what a server seals at any time."""
    sealing = {"unsealed_event", "event_leaf", "event_checkpoint"}
    return {table: rows for table, rows in contents.items() if table not in sealing}
