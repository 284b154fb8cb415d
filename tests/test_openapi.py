"""The OpenAPI document: it is the committed one, and it names everything as it must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from normata.app import create_app
from normata.records.base import Restorable
from normata.settings import Settings

COMMITTED = Path(__file__).parent.parent / "docs" / "openapi.json"

COMPONENTS = {
    *("Control", "Framework", "Notification", "Task", "Finding", "Asset", "Policy", "RecordCategory"),
    *("EntitlementReview", "Audit", "RiskReview", "Acronym", "Label", "Incident", "Vendor", "Record"),
    *("VulnerabilityClass", "Variable", "Problem"),
}


def write() -> None:
    """Write the document anew; ``make openapi`` calls this."""
    document = create_app(Settings(database_url="sqlite:///unused.db")).openapi()
    COMMITTED.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")


@pytest.fixture
def document(client: TestClient) -> dict[str, Any]:
    """The document as it is served."""
    answer: dict[str, Any] = client.get("/openapi.json").json()
    return answer


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All operations of the document."""
    return [operation for path in document["paths"].values() for operation in path.values()]


def test_is_the_committed_document(document: dict[str, Any]) -> None:
    assert document == json.loads(COMMITTED.read_text("utf-8")), "run `make openapi` and look at the difference"


def test_is_openapi_3_1_with_the_nineteen_operations(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    restores = {f"/{kind.path}/{{id}}/restore/" for kind in Restorable.kinds}
    assert set(document["paths"]) == {"/controls/", "/frameworks/", "/notifications/"} | restores
    assert len(operations(document)) == 19


def test_components_have_the_names_of_the_interface(document: dict[str, Any]) -> None:
    assert set(document["components"]["schemas"]) >= COMPONENTS
    assert not any("_" in name or "HTTPValidation" in name for name in document["components"]["schemas"])


def test_operation_ids_are_camel_case(document: dict[str, Any]) -> None:
    expected = {"listControls", "listFrameworks", "listNotifications"}
    expected |= {f"restore{kind.__name__}" for kind in Restorable.kinds}
    assert {operation["operationId"] for operation in operations(document)} == expected


def test_every_operation_can_be_understood(document: dict[str, Any]) -> None:
    for operation in operations(document):
        assert operation["summary"]
        assert len(operation["description"]) > 100
        assert "example" in operation["responses"]["200"]["content"]["application/json"]
        assert all(parameter["description"] for parameter in operation["parameters"])


def test_every_error_is_a_problem(document: dict[str, Any]) -> None:
    for operation in operations(document):
        errors = {status: response for status, response in operation["responses"].items() if status >= "400"}
        assert {"401", "404", "406", "429", "500", "503"} <= set(errors)
        assert set(operation["responses"]) - set(errors) <= {"200", "304"}
        for status, response in errors.items():
            content = response["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
            assert all(example["value"]["status"] == int(status) for example in content["examples"].values())


def test_lists_can_be_asked_for_conditionally(document: dict[str, Any]) -> None:
    for operation in operations(document):
        is_list = operation["operationId"].startswith("list")
        assert ("304" in operation["responses"]) == is_list
        assert ("If-None-Match" in [parameter["name"] for parameter in operation["parameters"]]) == is_list
        assert ("ETag" in operation["responses"]["200"]["headers"]) == is_list


def test_every_operation_takes_a_bearer_token(document: dict[str, Any]) -> None:
    assert document["security"] == [{"bearer": []}]
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_open_enums_list_the_known_values(document: dict[str, Any]) -> None:
    """A closed enum would make every new value a breaking change."""
    status = document["components"]["schemas"]["Task"]["properties"]["status"]
    assert status["x-extensible-enum"][0] == "TODO"
    assert "enum" not in status


@pytest.mark.parametrize("path", ["/docs", "/docs/redoc.js"])
def test_the_page_asks_no_other_host(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    if path == "/docs":
        assert "http://" not in answer.text
        assert "https://" not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
