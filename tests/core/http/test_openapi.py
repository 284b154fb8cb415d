"""The OpenAPI document: it says what is served, and it names everything as it must."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import validate

from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.operations import OPERATIONS
from normata.records.base import Restorable
from tests.core.http.documented import answer, described, document, faults, success
from tests.core.http.samples import all_operations
from tests.served import Served


def test_what_is_served_is_made_from_the_operations(shared: Served) -> None:
    """The committed document, too: tests/test_docs.py compares it."""
    assert shared.client.get("/openapi.json").json() == document() | {"servers": [{"url": "/"}]}


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


@all_operations()
def test_every_operation_can_be_understood(operation: Operation) -> None:
    found = described(operation)
    assert found["operationId"] == operation.operation_id
    assert found["operationId"].isidentifier()
    assert "_" not in found["operationId"]
    assert found["summary"] == operation.summary
    assert len(found["description"]) > 100
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


@pytest.mark.parametrize("path", ["/docs", "/docs/redoc.js"])
def test_the_page_asks_no_other_host(path: str, shared: Served) -> None:
    response = shared.client.get(path)
    assert response.status_code == 200
    if path == "/docs":
        assert "http://" not in response.text
        assert "https://" not in response.text
        assert "default-src 'none'" in response.headers["content-security-policy"]
