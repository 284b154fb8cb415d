"""The OpenAPI document: it says what is served, and it names everything as it must."""

from __future__ import annotations

import base64
import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import jsonschema_rs
import pytest
from httpx2 import Response
from openapi_spec_validator import validate
from pydantic import Field, create_model

from normata import app
from normata.core.http import documentation, openapi_types, reference
from normata.core.http.openapi_schemas import components
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.operations import OPERATIONS
from normata.records.base import Restorable
from tests.core.http.documented import answer, described, document, faults, success
from tests.core.http.samples import all_operations
from tests.served import Served, served


def test_what_is_served_is_made_from_the_operations(shared: Served) -> None:
    """In the wheel, too: tests/wheel compares it. What changes of it, docs/api-surface.txt shows."""
    assert shared.client.get("/openapi.json").json() == document() | {"servers": [{"url": "/"}]}


@pytest.mark.long
def test_it_is_openapi() -> None:
    """By the validator of others, which knows the whole standard."""
    validate(document())


def test_it_has_every_operation_and_no_other() -> None:
    assert document()["openapi"].startswith("3.1.")
    found = {(method.upper(), path) for path, methods in document()["paths"].items() for method in methods}
    assert found == {(operation.method, operation.path) for operation in OPERATIONS}


def test_components_have_the_names_of_the_interface() -> None:
    kinds = {kind.__name__ for kind in Restorable.kinds if not kind.answers_null}
    schemas = document()["components"]["schemas"]
    assert schemas.keys() >= {"Control", "Framework", "Notification", "Problem"} | kinds
    assert not any("_" in name or "HTTPValidation" in name for name in schemas)


def _texts(schema: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The texts in a schema, each with the name of its property."""
    if isinstance(schema, list):
        for one in schema:
            yield from _texts(one, name)
    elif isinstance(schema, dict):
        if schema.get("type") == "string":
            yield name, schema
        for one in ("anyOf", "items"):
            yield from _texts(schema.get(one), name)
        for key, one in schema.get("properties", {}).items():
            yield from _texts(one, key)


def test_no_text_of_a_request_has_a_null_character() -> None:
    """PostgreSQL cannot store one. Other checks find it in some texts, such as addresses."""
    schemas = document()["components"]["schemas"]
    inputs = [
        one
        for name, one in schemas.items()
        if one.get("additionalProperties") is False
        if name != "NotificationPayload"
    ]
    found = {
        name
        for name, schema in _texts(inputs)
        if not {"enum", "const", "format"} & schema.keys() and re.search(schema.get("pattern", ""), "a\0b")
    }
    assert found == {"changeId", "kinds", "timeZone", "url", "website"}


@all_operations()
def test_every_operation_can_be_understood(operation: Operation) -> None:
    found = described(operation)
    assert found["operationId"] == operation.operation_id
    assert found["operationId"].isidentifier()
    assert "_" not in found["operationId"]
    assert found["summary"] == operation.summary
    assert len(found["description"]) > 80  # a sentence at least
    assert all(parameter["description"] for parameter in found.get("parameters", ()))
    assert found["tags"] == [operation.tag]
    assert operation.tag in {tag["name"] for tag in document()["tags"]}


@all_operations()
def test_every_error_is_a_problem(operation: Operation) -> None:
    for status, response in described(operation)["responses"].items():
        assert "X-Request-Id" in response["headers"]
        if status >= "400":
            content = response["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
            assert content["examples"]
            assert all(example["value"]["status"] == int(status) for example in content["examples"].values())


@all_operations()
def test_what_can_be_asked_for_conditionally(operation: Operation) -> None:
    """All that reads, and those changes that say so."""
    reads = isinstance(operation, ReadOperation)
    heeds = isinstance(operation, ChangeOperation) and operation.is_conditional
    tagged = isinstance(operation, ChangeOperation) and operation.is_tagged
    assert ("304" in described(operation)["responses"]) == reads
    assert ("412" in described(operation)["responses"]) == (reads or heeds)
    names = [parameter["name"] for parameter in described(operation).get("parameters", ())]
    assert ("If-None-Match" in names) == reads
    assert ("If-Match" in names) == heeds
    assert ("ETag" in answer(operation, success(operation))["headers"]) == (reads or tagged)


def test_every_operation_takes_a_bearer_token() -> None:
    assert document()["security"] == [{"bearer": []}]
    assert document()["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_open_enums_list_the_known_values() -> None:
    """A closed enum would make every new value a breaking change."""
    status = document()["components"]["schemas"]["Task"]["properties"]["status"]
    assert status["x-extensible-enum"][0] == "TODO"
    assert "enum" not in status


def schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Every schema of the components, however deep."""
    if isinstance(value, list):
        for item in value:
            yield from schemas(item)
    elif isinstance(value, dict):
        yield value
        for item in value.values():
            yield from schemas(item)


def test_every_property_is_described() -> None:
    missing = [
        f"{name}.{field}"
        for name, schema in document()["components"]["schemas"].items()
        for field, value in schema.get("properties", {}).items()
        if not value.get("description")
    ]
    assert missing == []


def test_every_example_within_a_schema_is_valid_by_it() -> None:
    for schema in schemas(document()["components"]["schemas"]):
        for example in schema.get("examples", ()) if isinstance(schema.get("examples"), list) else ():
            assert faults(schema, example) == []


def test_others_are_answered_while_it_is_made(shared_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, finish = threading.Event(), threading.Event()

    def made_slowly() -> documentation.Files:
        asked.set()
        assert finish.wait(60)
        return documentation.files(document())

    monkeypatch.setattr(app, "documentation_files", made_slowly)
    with served(shared_url) as service, ThreadPoolExecutor() as pool:
        first, second = (pool.submit(service.client.get, path) for path in ("/openapi.json", "/docs"))
        assert asked.wait(60)
        assert service.client.get("/livez").status_code == 200
        assert not first.done()
        assert not second.done()
        finish.set()
        assert first.result(60).json()["info"]["title"] == "Normata"
        assert second.result(60).status_code == 200


def test_what_cannot_be_made_is_tried_again(shared_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = iter([True, False])

    def made_in_the_end() -> documentation.Files:
        if next(failing):
            raise OSError("no space left")
        return documentation.files(document())

    monkeypatch.setattr(app, "documentation_files", made_in_the_end)
    with served(shared_url) as service:
        assert [service.client.get("/openapi.json").status_code for _ in range(2)] == [500, 200]


def test_two_models_must_not_have_one_name() -> None:
    """The one would describe what the other is of."""
    one = create_model("Same", a=(str, Field(description="It.")))
    other = create_model("Same", b=(str, Field(description="It.")))
    with pytest.raises(ValueError, match="Same"):
        components([one, other], [])


# --- The page


@pytest.fixture(scope="module")
def page(shared: Served) -> Response:
    """The page as it is served."""
    answer = shared.client.get("/docs")
    assert answer.status_code == 200
    return answer


def test_the_page_runs_and_loads_nothing(page: Response) -> None:
    """No script, no other host; and the browser makes sure of it."""
    [style] = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert f"style-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert not re.findall(r"<script|\ssrc=|\sstyle=|url\(|@import", page.text)
    assert set(re.findall(r'href="([^"#][^"]*)"', page.text)) == {"data:,", "/app/", "/openapi.json"}


def test_the_page_has_every_operation_and_every_type(page: Response) -> None:
    ids = re.findall(r'\sid="([^"]*)"', page.text)
    assert len(ids) == len(set(ids))
    assert set(ids) >= {operation.operation_id for operation in OPERATIONS} | document()["components"]["schemas"].keys()
    assert set(re.findall(r'href="#([^"]*)"', page.text)) <= set(ids)


@pytest.mark.long
def test_the_page_shows_what_is_written_as_it_is_written() -> None:
    """Whatever an example or a description has in it, it is no markup."""
    changed = deepcopy(document())
    changed["paths"]["/labels/"]["get"]["description"] = "<script>alert(1)</script>"
    changed["paths"]["/labels/"]["get"]["parameters"][0]["description"] = "<img src=x>"
    changed["components"]["schemas"]["Label"]["properties"]["slug"]["pattern"] = "<b>"
    made = reference.page(changed)
    assert not re.findall(r"<(script|img|b>[^A-Z0-9])", made)
    assert "&lt;script&gt;" in made
    assert "matching &lt;b&gt;" in made


# --- The surface, which is committed


def test_every_change_of_the_document_shows_in_the_surface() -> None:
    before = openapi_types.surface(document())

    def changes(edit: Callable[[dict[str, Any]], object]) -> set[str]:
        changed = deepcopy(document())
        edit(changed)
        return {*openapi_types.surface(changed).splitlines()} ^ {*before.splitlines()}

    assert changes(lambda one: one) == set()
    task = "/tasks/"
    assert changes(lambda one: one["paths"].pop("/tasks/{id}/")) >= {"GET /tasks/{id}/ is getTask, of Records"}
    assert len(changes(lambda one: one["paths"][task]["get"]["parameters"].pop(0))) == 1
    assert len(changes(lambda one: one["paths"][task]["get"]["parameters"][0].update(required=False))) == 2
    assert len(changes(lambda one: one["paths"][task]["get"]["responses"].pop("404"))) == 2
    assert len(changes(lambda one: one["paths"][task]["post"]["requestBody"].update(required=False))) == 2
    fields = ["components", "schemas", "Task", "properties", "status"]
    assert len(changes(lambda one: at(one, fields)["x-extensible-enum"].append("NEW"))) == 2
    assert len(changes(lambda one: at(one, fields).update(type="integer"))) == 2
    creation = ["components", "schemas", "TaskCreation"]
    assert len(changes(lambda one: at(one, creation).pop("additionalProperties"))) == 2
    assert len(changes(lambda one: at(one, creation)["required"].pop())) == 2


def at(value: Any, names: Sequence[str]) -> Any:
    """What is at a place of the document."""
    for name in names:
        value = value[name]
    return value


@pytest.mark.parametrize("value", ["2026-11-20T09:14:03.120Z", "2026-11-20t10:14:03+01:00", "2026-11-20"])
def test_what_is_taken_for_a_date_is_documented(value: str) -> None:
    """A plain date and any offset in requests; and in answers the one form that they have."""
    schemas = document()["components"]["schemas"]
    body = jsonschema_rs.validator_for(
        {"$ref": "#/components/schemas/TaskCreation", "components": {"schemas": schemas}}, validate_formats=True
    )
    assert body.is_valid({"organizationId": "o", "title": "T", "deadline": value})
    assert not body.is_valid({"organizationId": "o", "title": "T", "deadline": "tomorrow"})
    assert not body.is_valid({"organizationId": "o", "title": "T", "deadline": "2026-11-20T09:14:03"})
    assert schemas["Task"]["properties"]["createdAt"]["format"] == "date-time"
