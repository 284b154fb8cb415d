"""One definition per kind: what follows from it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import UniqueConstraint

from normata.bundle.arrays import ARRAYS
from normata.core.schema.wire import columns, wire
from normata.operations import OPERATIONS
from normata.records.base import Restorable
from normata.tables import Table
from tests.core.http.documented import document
from tests.records.shapes import KINDS, SHAPES

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


def test_every_kind_has_its_restore_where_the_interface_has_it() -> None:
    """The addresses are those of the interface, and each kind that came later has one like them."""
    served = {(one.method, one.path): one.operation_id for one in OPERATIONS if one.path.endswith("{id}/restore/")}
    assert {("POST", path): name for path, name in PATHS.items()}.items() <= served.items()
    assert {("POST", f"/{kind.path}/{{id}}/restore/") for kind in Restorable.kinds} == served.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_kind_follows_from_its_class(kind: type[Restorable]) -> None:
    """Table, wire model, component, answer and bundle array have the fields of the interface."""
    shape = SHAPES[kind.path]
    assert kind.__name__ == shape.component
    assert ARRAYS[kind.path] is kind
    assert Table.metadata.tables[str(kind.__tablename__)] is kind.sql()
    assert len(columns(kind)) == len(shape.fields)
    model = wire(kind)
    assert model.__name__ == shape.component
    assert model.__doc__ == kind.__doc__
    assert {field.alias for field in model.model_fields.values()} == shape.fields.keys()

    answer = document()["paths"][f"/{kind.path}/{{id}}/restore/"]["post"]["responses"]["200"]
    schema, _dry_run = answer["content"]["application/json"]["schema"]["anyOf"]
    if kind.answers_null:
        assert schema["enum"] == [None]
        return
    assert schema == {"$ref": f"#/components/schemas/{shape.component}"}
    component = document()["components"]["schemas"][shape.component]
    assert component["properties"].keys() == shape.fields.keys()
    assert set(component["required"]) == shape.fields.keys()
    for name, described in component["properties"].items():
        assert types(described) == json_types(shape.fields[name], nullable=shape.nullable(name)), name
        assert ("x-extensible-enum" in described) == (shape.fields[name] == "enum"), name


def test_only_an_integration_check_answers_null() -> None:
    assert [kind.path for kind in Restorable.kinds if kind.answers_null] == ["integration-checks"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_database_itself_keeps_slugs_and_short_ids_apart(kind: type[Restorable]) -> None:
    """Slugs among live records of an organization, short ids among all."""
    table, fields = kind.sql(), SHAPES[kind.path].fields
    slugs = [index for index in table.indexes if index.unique]
    assert [index.columns.keys() for index in slugs] == ([["organization_id", "slug"]] if "slug" in fields else [])
    for index in slugs:
        for database in ("sqlite", "postgresql"):
            assert str(index.dialect_options[database]["where"]) == "archived_at IS NULL"
    unique = {tuple(each.columns.keys()) for each in table.constraints if isinstance(each, UniqueConstraint)}
    assert (("organization_id", "short_id") in unique) == ("shortId" in fields)


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
        "files": {"array"},
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
def test_the_values_that_were_seen_are_known(kind: str, field: str, seen: str) -> None:
    component = document()["components"]["schemas"][SHAPES[kind].component]
    assert seen in component["properties"][field]["x-extensible-enum"]


SEVENTEENTH = """
import sys
from sqlalchemy.orm import Mapped
from normata.records.base import Maintained
from normata.core.schema.fields import Name, ShortId, Slug, Text

class PatchNote(Maintained):
    \"\"\"What changed, and why.\"\"\"

    __tablename__ = "patch_note"
    path = "patch-notes"

    slug: Mapped[Slug]
    short_id: Mapped[ShortId]
    title: Mapped[Name]
    description: Mapped[Text | None]

from contextlib import closing
import json
from tests import world
from tests.databases import open_url
from tests.served import served
from tests.core.http.samples import sample
from normata.operations import OPERATIONS
from normata.core.http import openapi
from normata.core.http.permissions import document

url = sys.argv[1]
with closing(open_url(url)) as database:
    database.alter_now(PatchNote.sql().create)
    world.load(database, {"patch-notes": world.bundle()["patch-notes"]})
(operation,) = (one for one in OPERATIONS if one.operation_id == "restorePatchNote")
of_kind = [one for one in OPERATIONS if one.path.startswith("/patch-notes/")]
with served(url) as service:
    answer = sample(operation).send(service.client, service.bearer("editor"))
    lives = {one.operation_id: sample(one).send(service.client, service.bearer("editor")).status_code
             for one in of_kind if one is not operation}
described = openapi.document(OPERATIONS)
print(json.dumps({
    "status": answer.status_code,
    "restored": answer.json(),
    "lives": lives,
    "operation": described["paths"]["/patch-notes/{id}/restore/"]["post"]["operationId"],
    "component": list(described["components"]["schemas"]["PatchNote"]["properties"]),
    "permissions": "POST /patch-notes/{id}/restore/" in document(OPERATIONS),
}))
"""


@pytest.mark.long
def test_a_seventeenth_kind_is_one_class(sqlite_url: str, tmp_path: Path) -> None:
    """Declared and nothing else done, it is loaded, restored and documented; tests/bundle dumps one.

    In a process of its own, since kinds are registered for good.
    """
    program = tmp_path / "seventeenth.py"
    program.write_text(SEVENTEENTH)
    run = subprocess.run(
        [sys.executable, str(program), sqlite_url],
        cwd=Path(__file__).parents[2],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    event_columns = json.loads(run.stdout)
    assert event_columns["status"] == 200, event_columns
    assert event_columns["lives"].pop("createPatchNote") == 201
    assert set(event_columns["lives"].values()) == {200}
    assert event_columns["lives"].keys() >= {"listPatchNotes", "getPatchNote", "changePatchNote", "archivePatchNote"}
    assert event_columns["restored"]["slug"] == "patch-notes-archived"
    assert event_columns["restored"]["shortId"] == 1
    assert event_columns["restored"]["archivedAt"] is None
    assert event_columns["operation"] == "restorePatchNote"
    fields = ["id", "organizationId", "slug", "shortId", "title", "description", "createdAt", "updatedAt", "archivedAt"]
    assert event_columns["component"] == fields == list(event_columns["restored"])
    assert event_columns["permissions"]
