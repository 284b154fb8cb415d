"""One definition per kind: what follows from it, and what holds among the records of a kind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import delete

from normata.bundle.arrays import ARRAYS
from normata.database import Database
from normata.models import Table
from normata.records.base import Restorable
from normata.records.kinds import Asset, Incident, IntegrationCheck, Label, Task
from normata.source import FaultyInput
from normata.wire import wire
from tests import stored
from tests.records.shapes import KINDS, SHAPES, WITH_SLUG
from tests.world import ALPHA, ARCHIVED, BETA, record_id

WITH_SHORT_ID = [pytest.param(kind, id=kind.path) for kind in Restorable.kinds if "shortId" in SHAPES[kind.path].fields]
PATHS = {
    "/tasks/{id}/restore/": "restoreTask",
    "/auditItems/{id}/restore/": "restoreFinding",
    "/assets/{id}/restore/": "restoreAsset",
    "/policies/{id}/restore/": "restorePolicy",
    "/record-categories/{id}/restore/": "restoreRecordCategory",
    "/entitlement-reviews/{id}/restore/": "restoreEntitlementReview",
    "/audits/{id}/restore/": "restoreAudit",
    "/risk-reviews/{id}/restore/": "restoreRiskReview",
    "/acronyms/{id}/restore/": "restoreAcronym",
    "/labels/{id}/restore/": "restoreLabel",
    "/integration-checks/{id}/restore/": "restoreIntegrationCheck",
    "/incidents/{id}/restore/": "restoreIncident",
    "/vendors/{id}/restore/": "restoreVendor",
    "/records/{id}/restore/": "restoreRecord",
    "/vulnerability-classes/{id}/restore/": "restoreVulnerabilityClass",
    "/variables/{id}/restore/": "restoreVariable",
}


# --- What follows from a definition


def test_there_are_the_sixteen_kinds_of_the_interface(application: FastAPI) -> None:
    """The addresses are those of the interface, and no other restores are served."""
    served = {
        path: {method: operation["operationId"] for method, operation in operations.items()}
        for path, operations in application.openapi()["paths"].items()
        if "restore" in path
    }
    assert served == {path: {"post": name} for path, name in PATHS.items()}
    assert {f"/{kind.path}/{{id}}/restore/" for kind in Restorable.kinds} == PATHS.keys()
    assert len(Restorable.kinds) == 16


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_kind_follows_from_its_class(application: FastAPI, kind: type[Restorable]) -> None:
    """Table, wire model, component, answer and bundle array have the fields of the interface."""
    shape = SHAPES[kind.path]
    assert kind.__name__ == shape.component
    assert ARRAYS[kind.path] is kind
    assert Table.metadata.tables[str(kind.__tablename__)] is kind.sql()
    assert len(kind.sql().c) == len(shape.fields)
    model = wire(kind)
    assert model.__name__ == shape.component
    assert model.__doc__ == kind.__doc__
    assert {field.alias for field in model.model_fields.values()} == shape.fields.keys()

    document = application.openapi()
    answer = document["paths"][f"/{kind.path}/{{id}}/restore/"]["post"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    if kind is IntegrationCheck:
        assert schema == {"type": "null"}
        return
    assert schema == {"$ref": f"#/components/schemas/{shape.component}"}
    component = document["components"]["schemas"][shape.component]
    assert component["properties"].keys() == shape.fields.keys()
    assert set(component["required"]) == shape.fields.keys()
    for name, described in component["properties"].items():
        assert types(described) == json_types(shape.fields[name], nullable=shape.nullable(name)), name
        assert ("x-extensible-enum" in described) == (shape.fields[name] == "enum"), name


def types(schema: dict[str, Any]) -> set[str]:
    """The JSON types that a schema allows; ``any`` where every value will do."""
    if "anyOf" in schema:
        allowed = set[str]().union(*(types(choice) for choice in schema["anyOf"]))
        return {"any"} if "any" in allowed else allowed
    return {schema.get("type", "any")}


def json_types(sort: str, *, nullable: bool) -> set[str]:
    allowed = {
        "time": {"string"},
        "enum": {"string"},
        "number": {"number"},
    }.get(sort, {sort})
    return allowed | {"null"} if nullable and sort != "any" else allowed


@pytest.mark.parametrize(
    ("kind", "field", "seen"),
    [
        ("tasks", "type", "POLICY"),
        ("tasks", "status", "TODO"),
        ("tasks", "priority", "URGENT"),
        ("auditItems", "type", "MAJOR_NONCONFORMITY"),
        ("auditItems", "status", "OPEN"),
        ("auditItems", "source", "AUDIT"),
        ("assets", "status", "ACTIVE"),
        ("policies", "status", "DRAFT"),
        ("entitlement-reviews", "type", "ONBOARDING"),
        ("audits", "type", "CERTIFICATION"),
        ("risk-reviews", "priorityFilter", "ALL"),
        ("incidents", "status", "OPEN"),
        ("incidents", "severity", "LOW"),
        ("vendors", "category", "CLOUD"),
        ("vendors", "relationship", "PROCESSOR"),
        ("vendors", "status", "ACTIVE"),
        ("vendors", "treatmentStrategy", "UNKNOWN"),
        ("records", "status", "DRAFT"),
    ],
)
def test_the_values_that_were_seen_are_known(application: FastAPI, kind: str, field: str, seen: str) -> None:
    component = application.openapi()["components"]["schemas"][SHAPES[kind].component]
    assert seen in component["properties"][field]["x-extensible-enum"]


SEVENTEENTH = """
import sys
from sqlalchemy.orm import Mapped
from normata.records.base import Maintained, Restorable
from normata.vocabulary import Name, ShortId, Slug, Text

class PatchNote(Maintained):
    \"\"\"What changed, and why.\"\"\"

    __tablename__ = "patch_note"
    path = "patch-notes"

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    title: Mapped[Name]
    why: Mapped[Text | None]

import io, json
from datetime import timedelta
from starlette.testclient import TestClient
from normata.app import create_app
from normata.bundle import dumping, loading
from normata.database import open_database
from normata.identity import tokens
from normata.models import Table
from normata.settings import Settings
from normata.source import Row

url = sys.argv[1]
database = open_database(Settings(database_url=url), create=True)
database.write_now(Table.metadata.create_all)
bundle = {
    "organizations": [{"id": "o", "name": "O"}],
    "users": [{"id": "u", "email": "u@example.com"}],
    "memberships": [{"id": "m", "organizationId": "o", "userId": "u", "role": "editor"}],
    "patch-notes": [{"id": "n", "organizationId": "o", "title": "A title", "archivedAt": "2026-01-01"}],
}
rows = [Row(array, "b.json", f"/{array}/0", row) for array, (row,) in bundle.items()]
database.write_now(lambda connection: loading.load(connection, rows))
token = database.write_now(
    lambda connection: tokens.create(connection, email="u@example.com", scope="write", lifetime=timedelta(1))
)
app = create_app(Settings(database_url=url, log_level="error"))
with TestClient(app) as client:
    answer = client.post("/patch-notes/n/restore/", headers={"Authorization": f"Bearer {token}"})
file = io.StringIO()
database.read_now(lambda connection: dumping.dump(connection, "o", file))
database.close()
print(json.dumps({
    "status": answer.status_code,
    "restored": answer.json(),
    "dumped": json.loads(file.getvalue())["patch-notes"],
    "operation": app.openapi()["paths"]["/patch-notes/{id}/restore/"]["post"]["operationId"],
    "component": list(app.openapi()["components"]["schemas"]["PatchNote"]["properties"]),
}))
"""


def test_a_seventeenth_kind_is_one_class(tmp_path: Path) -> None:
    """Declared and nothing else done, it is loaded, restored, dumped and documented.

    In a process of its own, since kinds are registered for good.
    """
    program = tmp_path / "seventeenth.py"
    program.write_text(SEVENTEENTH)
    run = subprocess.run(
        [sys.executable, str(program), f"sqlite:///{tmp_path}/seventeen.db"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["status"] == 200
    assert told["restored"]["slug"] == "a-title"
    assert told["restored"]["shortId"] == 1
    assert told["restored"]["archivedAt"] is None
    assert told["dumped"] == [told["restored"]]
    assert told["operation"] == "restorePatchNote"
    fields = ["id", "organizationId", "slug", "shortId", "title", "why", "createdAt", "updatedAt", "archivedAt"]
    assert told["component"] == fields == list(told["restored"])


# --- Slugs


def new(kind: type[Restorable], row_id: str, organization: str = ALPHA, **values: object) -> dict[str, Any]:
    return {"id": row_id, "organizationId": organization, kind.title_column(): row_id} | values


def fault_places(error: pytest.ExceptionInfo[FaultyInput]) -> list[str]:
    return [fault.place for fault in error.value.faults]


@pytest.mark.parametrize("kind", WITH_SLUG)
def test_slugs_are_unique_among_live_records_only(database: Database, kind: type[Restorable]) -> None:
    """An archived twin is loaded; a live twin of the same organization is refused, by name, and nothing is kept."""
    live = f"{kind.path}-live"
    stored.load(database, {kind.path: [new(kind, "twin", slug=live, archivedAt=ARCHIVED)]})
    assert stored.row(database, kind, "twin")["slug"] == live
    before = stored.everything(database)
    with pytest.raises(FaultyInput) as error:
        stored.load(database, {kind.path: [new(kind, "other"), new(kind, "live twin", slug=live)]})
    assert fault_places(error) == [f"/{kind.path}/1/slug"]
    assert record_id(kind, "live") in error.value.faults[0].reason
    with pytest.raises(FaultyInput) as error:
        stored.load(database, {kind.path: [{"id": "twin", "archivedAt": None}]})
    assert fault_places(error) == [f"/{kind.path}/0/slug"]
    assert stored.everything(database) == before


@pytest.mark.parametrize("kind", WITH_SLUG)
def test_slugs_of_other_organizations_do_not_count(database: Database, kind: type[Restorable]) -> None:
    """The world has a live record of the same slug in each of its organizations."""
    ours, theirs = (stored.row(database, kind, record_id(kind, "live", at)) for at in (ALPHA, BETA))
    assert ours["slug"] == theirs["slug"]


def test_a_missing_slug_is_made_from_the_title_and_is_free(database: Database) -> None:
    """Archived records count, so that they can come back."""
    stored.load(
        database,
        {
            "labels": [
                new(Label, "1", name="Safety First!", archivedAt=ARCHIVED),
                new(Label, "2", name="Safety First!"),
                new(Label, "3", BETA, name="Safety First!"),
                new(Label, "4", name="☃"),
            ]
        },
    )
    slugs = {row_id: stored.row(database, Label, row_id)["slug"] for row_id in "1234"}
    assert slugs == {"1": "safety-first", "2": "safety-first-2", "3": "safety-first", "4": "untitled"}


# --- Short ids


@pytest.mark.parametrize("kind", WITH_SHORT_ID)
def test_short_ids_go_on_and_are_never_used_twice(database: Database, kind: type[Restorable]) -> None:
    """Not even after the record with the highest one is gone."""
    last = max(row["short_id"] for row in stored.rows(database, kind, organization_id=ALPHA))
    stored.load(database, {kind.path: [new(kind, "first"), new(kind, "second")]})
    assert [stored.row(database, kind, row_id)["short_id"] for row_id in ("first", "second")] == [last + 1, last + 2]
    columns = kind.sql().c
    database.write_now(lambda connection: connection.execute(delete(kind.sql()).where(columns.id == "second")))
    stored.load(database, {kind.path: [new(kind, "third")]})
    assert stored.row(database, kind, "third")["short_id"] == last + 3


@pytest.mark.parametrize("kind", WITH_SHORT_ID)
def test_short_ids_are_unique_in_a_kind_and_organization(database: Database, kind: type[Restorable]) -> None:
    """A twin is refused, archived or not; the same number elsewhere is fine."""
    taken = stored.row(database, kind, record_id(kind, "live"))["short_id"]
    before = stored.everything(database)
    for archived in (None, ARCHIVED):
        with pytest.raises(FaultyInput) as error:
            stored.load(database, {kind.path: [new(kind, "twin", shortId=taken, archivedAt=archived)]})
        assert fault_places(error) == [f"/{kind.path}/0/shortId"]
    with pytest.raises(FaultyInput) as error:
        stored.load(database, {kind.path: [new(kind, "a", shortId=77), new(kind, "b", shortId=77)]})
    assert fault_places(error) == [f"/{kind.path}/1/shortId"]
    assert stored.everything(database) == before
    stored.load(database, {kind.path: [new(kind, "a", shortId=77), new(kind, "b", BETA, shortId=77)]})


def test_each_kind_and_organization_counts_for_itself(database: Database) -> None:
    stored.load(database, {"tasks": [new(Task, "far ahead", shortId=1_000)]})
    stored.load(
        database,
        {
            "tasks": [new(Task, "ours"), new(Task, "theirs", BETA)],
            "assets": [new(Asset, "thing")],
            "incidents": [new(Incident, "event")],
        },
    )
    assert stored.row(database, Task, "ours")["short_id"] == 1_001
    for kind, row_id in ((Task, "theirs"), (Asset, "thing"), (Incident, "event")):
        assert stored.row(database, kind, row_id)["short_id"] < 10


def test_a_number_that_the_same_load_brings_along_is_not_given_out(database: Database) -> None:
    """Whether the row that has it is new or stored, and wherever it stands in the files."""
    last = max(row["short_id"] for row in stored.rows(database, Task, organization_id=ALPHA))
    stored.load(database, {"tasks": [new(Task, "filled"), new(Task, "given", shortId=last + 1)]})
    assert stored.row(database, Task, "filled")["short_id"] == last + 2
    stored.load(database, {"tasks": [new(Task, "gap"), {"id": "given", "shortId": last + 3}]})
    assert stored.row(database, Task, "gap")["short_id"] == last + 4
    assert stored.row(database, Task, "given")["short_id"] == last + 3


def test_a_slug_that_the_same_load_brings_along_is_not_given_out(database: Database) -> None:
    """Whether the row that has it is new or stored."""
    stored.load(database, {"labels": [new(Label, "1", slug="old")]})
    stored.load(database, {"labels": [new(Label, "2", name="Fresh"), {"id": "1", "slug": "fresh"}]})
    assert stored.row(database, Label, "1")["slug"] == "fresh"
    assert stored.row(database, Label, "2")["slug"] == "fresh-2"
