"""Catalogs that an organization imports as its own."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from functools import partial
from typing import Any

import openpyxl
import pytest
import yaml
from httpx2 import Response

from normata.catalogs import tables, uploads
from normata.catalogs.reading import Input, read_inputs
from normata.core.changes.row_counts import RowCounts
from normata.core.db.database import Database
from normata.frameworks.model import Control, ControlMatch, Framework
from tests import stored
from tests.catalogs.test_reading import CATALOG, LIBRARY
from tests.databases import change, on_both
from tests.own_frameworks.conftest import Asked
from tests.own_frameworks.test_controls import is_current, places
from tests.world import ALPHA, BETA

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
JSON, YAML, CSV = "application/json", "application/yaml", "text/csv"
TABLE = """\
identifier,name,parent,purpose,description,mandatory
1,Berths,,,,
1.1,Locked at night,1,So that nobody sails away,"From ten, to six",yes
1.2,,1,,Lit at night. By lamps.,
"""
NEW = {"new": 1, "changed": 0, "unchanged": 0}
NONE = NEW | {"new": 0}


def upload(
    ask: Asked,
    content: bytes | str,
    media_type: str,
    *,
    user: str = "admin",
    organization_id: str = ALPHA,
    **query: str,
) -> Response:
    headers = ask.headers[user] | {"Content-Type": media_type}
    return ask.client.post(
        "/imports/", content=content, headers=headers, params={"organizationId": organization_id} | query
    )


def done(ask: Asked, content: bytes | str, media_type: str, **kwargs: Any) -> dict[str, Any]:
    response = upload(ask, content, media_type, **kwargs)
    assert response.status_code == 200, response.text[:500]
    result: dict[str, Any] = response.json()
    return result


def faults(ask: Asked, content: bytes | str, media_type: str, **kwargs: Any) -> list[tuple[str, str, str]]:
    response = upload(ask, content, media_type, **kwargs)
    assert (response.status_code, response.json()["code"]) == (400, "validation"), response.text[:500]
    return [(fault["in"], fault["name"], fault["message"]) for fault in response.json()["errors"]]


def workbook(*rows: tuple[Any, ...]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def catalog(database: Database, framework_id: str) -> list[tuple[Any, ...]]:
    """The controls of a framework in catalog order: identifier, name, the parent's identifier, type, mandatory."""
    rows = sorted(stored.rows(database, Control, framework_id=framework_id), key=lambda row: row["position"])
    identifiers = {row["id"]: row["identifier"] for row in rows}
    return [
        (row["identifier"], row["name"], identifiers.get(row["parent_id"]), row["type"], row["is_mandatory"])
        for row in rows
    ]


BERTHS = [
    ("1", "Berths", None, "CATEGORY", False),
    ("1.1", "Locked at night", "1", "CONTROL", True),
    ("1.2", "Lit at night", "1", "CONTROL", False),
]


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (TABLE, CSV),
        ("\ufeff" + TABLE.replace(",", ";").replace("ten;", "ten,"), f"{CSV}; charset=utf-8"),
        (
            workbook(
                ("Mandatory", "Identifier", "NAME", "parent", "purpose", "description"),
                (None, "1", "Berths"),
                (),
                (True, "1.1", "Locked at night", 1, "So that nobody sails away", "From ten, to six"),
                (False, "1.2", None, "1", None, "Lit at night. By lamps."),
            ),
            XLSX,
        ),
    ],
    ids=["commas", "semicolons", "XLSX"],
)
@on_both
def test_a_table_becomes_a_framework_of_ones_own(
    ask: Asked, database: Database, content: bytes | str, media_type: str
) -> None:
    result = done(ask, content, media_type, name="Dock Rules")
    [framework_id] = result["frameworkIds"]
    assert result == {
        "frameworkIds": [framework_id],
        "frameworks": NEW,
        "controls": NEW | {"new": 3},
        "baselines": NONE,
        "baselineControls": NONE,
        "controlMatches": NONE,
        "leftOut": 0,
        "firstLeftOut": [],
        "retired": 0,
        "firstRetired": [],
        "returned": 0,
        "reworded": 0,
        "firstReworded": [],
        "omitted": [],
    }
    assert catalog(database, framework_id) == BERTHS
    framework = ask.done("GET", f"/frameworks/{framework_id}/")
    assert (framework["name"], framework["organizationId"], framework["isCentralized"]) == ("Dock Rules", ALPHA, False)
    assert (framework["_count"], framework["lastSyncAt"]) == ({"controls": 3}, framework["createdAt"])
    events = stored.events(database, action="import")
    assert {event["entity_type"] for event in events} == {"Organization", "Framework"}
    before = stored.everything(database)
    again = done(ask, content, media_type, name="Dock Rules")
    assert (again["frameworks"], again["controls"]) == (NONE | {"unchanged": 1}, NONE | {"unchanged": 3})
    assert stored.everything(database) == before


@on_both
def test_a_newer_version_changes_what_it_has_and_deletes_nothing(ask: Asked, database: Database) -> None:
    [framework_id] = done(ask, TABLE, CSV, name="Dock Rules")["frameworkIds"]
    assert ask.client.put(
        f"/frameworks/{framework_id}/adoption/", params={"organizationId": ALPHA}, headers=ask.headers["admin"]
    ).is_success
    newer = "identifier,name,parent\n1.1,Locked,\n1.3,New,1.1\n"
    result = done(ask, newer, CSV, name="Dock Rules")
    assert result["controls"] == {"new": 1, "changed": 1, "unchanged": 0}
    assert [row[:3] for row in catalog(database, framework_id)] == [
        ("1", "Berths", None),
        ("1.1", "Locked", None),
        ("1.2", "Lit at night", "1"),
        ("1.3", "New", "1.1"),
    ]
    assert places(database, framework_id) == [0, 1, 2, 3]
    assert is_current(database)


@pytest.mark.parametrize(("document", "count"), [(LIBRARY, 2), (CATALOG, 2)], ids=["CISO Assistant", "OSCAL"])
@pytest.mark.parametrize("media_type", [JSON, YAML])
def test_what_is_published_becomes_ones_own_under_ids_of_ones_own(
    ask: Asked, database: Database, document: dict[str, Any], count: int, media_type: str
) -> None:
    text = json.dumps if media_type == JSON else yaml.safe_dump
    made = {}
    for user, organization_id in (("admin", ALPHA), ("foreigner", BETA)):
        result = done(ask, text(document), media_type, user=user, organization_id=organization_id)
        assert (result["frameworks"], result["controls"]["new"]) == (NEW, count)
        [made[organization_id]] = result["frameworkIds"]
    assert made[ALPHA] != made[BETA]
    for organization_id, framework_id in made.items():
        assert stored.row(database, Framework, framework_id)["organization_id"] == organization_id
        controls = stored.rows(database, Control, framework_id=framework_id)
        assert {(row["organization_id"], row["is_centralized"]) for row in controls} == {(organization_id, False)}
    again = done(ask, text(document), media_type)
    assert (again["frameworks"]["unchanged"], again["controls"]["unchanged"]) == (1, count)
    assert ask.refused("GET", f"/frameworks/{made[BETA]}/") == 404


def mapping(*pairs: tuple[str, str], library: str = "mapping", relationship: str = "superset") -> dict[str, Any]:
    mappings = [
        {"source_requirement_urn": source, "target_requirement_urn": target, "relationship": relationship}
        for source, target in pairs
    ]
    sets = {"source_framework_urn": "fw-a", "target_framework_urn": "fw-b", "requirement_mappings": mappings}
    return {"urn": f"urn:example:library:{library}", "objects": {"requirement_mapping_sets": [sets]}}


@on_both
def test_mappings_lead_to_ones_own_imports_and_to_what_is_in_sight(ask: Asked, database: Database) -> None:
    done(ask, json.dumps(LIBRARY), JSON)
    pair = ("urn:example:node:boat:2", "sun.A.9")
    result = done(ask, json.dumps(mapping(pair, ("sun.A.1", "moon.A.9"))), JSON)
    assert (result["controlMatches"], result["frameworkIds"]) == (NONE | {"new": 4}, [])
    made = [row for row in stored.rows(database, ControlMatch, organization_id=ALPHA) if len(row["id"]) == 36]
    assert {("sun.A.1", "moon.A.9"), ("moon.A.9", "sun.A.1")} < {
        (row["source_control_id"], row["target_control_id"]) for row in made
    }
    assert is_current(database)
    assert ask.done("GET", "/controls/", search="moon control 9")["items"][0]["effectiveCoverageStatus"] == "FULL"


def between(database: Database, source: str, target: str) -> list[tuple[str, str | None]]:
    """Level and justification of alpha's own matches from one control to another."""
    found = stored.rows(
        database, ControlMatch, organization_id=ALPHA, source_control_id=source, target_control_id=target
    )
    return [(row["match_level"], row["justification"]) for row in found]


def test_each_mapping_gives_its_own_match_beside_those_that_people_make(ask: Asked, database: Database) -> None:
    """What an import gives it may change; what a person has made, or another import gives, stays beside it."""
    body = {"sourceControlId": "sun.A.1", "targetControlId": "moon.A.9", "matchLevel": "PARTIAL", "justification": "So"}
    ask.done("POST", "/matches/", {"organizationId": ALPHA, "matches": [body]})
    pair = ("sun.A.1", "moon.A.9")
    planned = done(ask, json.dumps(mapping(pair)), JSON, dryRun="true")["answer"]
    for result in (planned, done(ask, json.dumps(mapping(pair)), JSON)):
        assert result["controlMatches"] == {"new": 2, "changed": 0, "unchanged": 0}
    other = done(ask, json.dumps(mapping(pair, library="other", relationship="equal")), JSON)
    assert other["controlMatches"] == NONE | {"new": 2}
    assert sorted(between(database, *pair), key=str) == [("FULL", None), ("FULL", None), ("PARTIAL", "So")]
    newer = done(ask, json.dumps(mapping(pair, relationship="equal")), JSON)
    assert newer["controlMatches"] == {"new": 0, "changed": 1, "unchanged": 1}
    assert sorted(between(database, *pair), key=str) == [("FULL", None), ("FULL", None), ("PARTIAL", "So")]
    assert is_current(database)


def test_of_two_mappings_of_one_import_each_gives_its_match(database: Database) -> None:
    """Several files are one import on the command line."""
    pair = ("sun.A.1", "moon.A.9")
    documents = [
        json.dumps(mapping(pair, library=name, relationship=relationship)).encode()
        for name, relationship in (("one", "intersect"), ("other", "equal"))
    ]
    inputs = [Input(f"{number}.json", "", partial(bytes, content)) for number, content in enumerate(documents)]
    published = uploads.Upload(read_inputs(inputs))
    for tally in (RowCounts(inserted=4), RowCounts(unchanged=4)):
        outcome = change(database, lambda unit: uploads.take(unit, ALPHA, published))
        assert outcome.row_counts["controlMatches"] == tally
    for ends in (pair, tuple(reversed(pair))):
        assert sorted(between(database, *ends)) == [("FULL", None), ("PARTIAL", None)]


@on_both
def test_what_only_others_see_is_unknown(ask: Asked, database: Database) -> None:
    """The framework that is missing is told once; or the mappings are left out, and listed."""
    pairs = [("foreign.A.1", "sun.A.1"), ("foreign.A.2", "sun.A.2"), ("sun.A.3", "moon.A.4")]
    text = json.dumps(mapping(*pairs))
    [(_, place, message)] = faults(ask, text, JSON)
    assert place == "objects/requirement_mapping_sets/0/requirement_mappings/0/source_requirement_urn"
    assert message == (
        "2 mappings name controls that the framework fw-a does not have: foreign.A.1, foreign.A.2."
        " Import a version that has them, or use skipUnknown=true"
    )
    result = done(ask, text, JSON, skipUnknown="true")
    assert (result["leftOut"], result["controlMatches"]["new"]) == (2, 2)
    assert [one["unknown"] for one in result["firstLeftOut"]] == [["foreign.A.1"], ["foreign.A.2"]]
    assert len(stored.rows(database, ControlMatch, source_control_id="foreign.A.1")) == 1


@pytest.mark.parametrize("organization_id", ["alpha", ALPHA])
def test_a_dry_run_says_what_would_be_and_changes_nothing(ask: Asked, database: Database, organization_id: str) -> None:
    before = stored.everything(database)
    options = {"name": "Dock Rules", "organization_id": organization_id}
    planned = done(ask, TABLE, CSV, dryRun="true", **options)
    assert stored.everything(database) == before
    assert planned["answer"] == done(ask, TABLE, CSV, **options)
    [framework_id] = planned["answer"]["frameworkIds"]
    told = [(change["kind"], change["id"]) for change in planned["changes"] if change["action"] == "import"]
    assert told == [("organizations", ALPHA), ("frameworks", framework_id), ("controls", None)]
    for content in ("identifier,parent\n1,2\n1,\n,1\n", "{}", b"", b"\xff"):
        assert faults(ask, content, CSV, dryRun="true", **options) == faults(ask, content, CSV, **options)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("identifier,parent\n1,2\n1,\n", [("rows/2/parent", "'2' is the identifier of no row")]),
        ("identifier,mandatory\n1,perhaps\n", [("rows/2/mandatory", "must be yes or no")]),
        ("name\nBerths\n", [("", "its first row must name the columns, identifier at least")]),
        ("identifier,owner,name,name\n", [("rows/1/owner", "is no column"), ("rows/1/name", "is there twice")]),
        ("identifier,name\n1,x\n1,y\n", [("rows/3/identifier", "is the same as that of /rows/2 in body")]),
        ("identifier,parent\n1,2\n2,1\n", [("rows/2/parent", "leads back to this control itself")]),
        ('identifier,name\n1,"x\n', [("", "is not CSV: line 2")]),
        ("identifier" + ",name" * 50, [("", "has more than 50 columns")]),
        (b"identifier\n\xff\n", [("", "is not UTF-8 text")]),
        (b"", [("", "must name the columns")]),
        ("identifier,name\n1," + "x" * 200_000, [("", "has a cell of more than 131,072 characters")]),
    ],
)
def test_what_is_wrong_with_a_table(ask: Asked, content: bytes | str, expected: list[tuple[str, str]]) -> None:
    found = faults(ask, content, CSV, name="Dock Rules")
    for place, message in expected:
        assert any(name == place and message in told for _, name, told in found), found


def test_a_table_needs_a_name(ask: Asked) -> None:
    for content, media_type in ((TABLE, CSV), (workbook(("identifier",), ("1",)), XLSX)):
        [(part, name, message)] = faults(ask, content, media_type)
        assert (part, name) == ("query", "name")
        assert "required" in message


def zipped(*parts: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts:
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04nonsense",
        b"identifier,name\n1,x\n",
        zipped(("hello.txt", b"hello")),
        zipped(("xl/workbook.xml", b" " * (65 * 2**20))),
        zipped(("xl/workbook.xml", b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x/>')),
        zipped(*((f"{number}.xml", b"") for number in range(1_001))),
    ],
    ids=["no zip", "CSV", "another zip", "bomb", "entities", "parts"],
)
def test_what_is_no_workbook_or_a_bomb_is_refused(ask: Asked, content: bytes) -> None:
    [(part, name, message)] = faults(ask, content, XLSX, name="Dock Rules")
    assert (part, name) == ("body", "")
    assert "workbook" in message or "unpacks" in message


def test_a_cell_far_out_is_told(ask: Asked) -> None:
    """A single cell at the end of the sheet makes no table of a million rows, and is not lost."""
    book = openpyxl.Workbook()
    book.active.append(("identifier",))
    book.active.cell(1_048_576, 16_384, "x")
    file = io.BytesIO()
    book.save(file)
    found = faults(ask, file.getvalue(), XLSX, name="Far")
    assert [name for _, name, _ in found] == ["rows/1048576", "rows/1048576/identifier"]


def test_too_many_rows(ask: Asked) -> None:
    text = "identifier\n" + "".join(f"{number}\n" for number in range(20_001))
    [(_, _, message)] = faults(ask, text, CSV, name="Many")
    assert message == "has more than 20,000 rows"


def test_as_many_controls_as_there_may_be() -> None:
    """The framework itself does not count."""
    text = "identifier\n" + "".join(f"{number}\n" for number in range(20_000))
    upload = uploads.read_upload(Input("body", "Many", text.encode, [tables.CSV]))
    assert upload.faults == []
    assert len(upload.published.rows) == 20_001


def test_who_may(ask: Asked, database: Database) -> None:
    before = stored.everything(database)
    for user, status in (("editor", 403), ("viewer", 403), ("foreigner", 404), ("nobody", 404)):
        assert upload(ask, TABLE, CSV, user=user, name="X").status_code == status
    assert upload(ask, TABLE, "text/plain", name="X").status_code == 415
    assert "text/csv" in upload(ask, TABLE, "text/plain", name="X").json()["detail"]
    assert stored.everything(database) == before


def test_it_is_read_on_a_thread_of_its_own(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else waits while a large one is read."""
    loops: list[bool] = []
    read = uploads.read_upload

    def noted(one: Any) -> uploads.Upload:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            loops.append(False)
        else:
            loops.append(True)
        return read(one)

    monkeypatch.setattr(uploads, "read_upload", noted)
    done(ask, TABLE, CSV, name="Dock Rules")
    assert loops == [False]


def test_centralized_catalogs_stay_as_they_are(ask: Asked, database: Database, add: Any) -> None:
    """An upload of the same catalog is another one beside it."""
    framework = LIBRARY["objects"]["framework"]
    add({"frameworks": [{"id": framework["urn"], "name": "Theirs"}]})
    before = stored.row(database, Framework, framework["urn"])
    [made] = done(ask, json.dumps(LIBRARY), JSON, name="Ours")["frameworkIds"]
    assert stored.row(database, Framework, framework["urn"]) == before
    assert stored.row(database, Framework, made)["name"] == "Ours"
