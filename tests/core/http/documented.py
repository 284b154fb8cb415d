"""What the OpenAPI document says of an operation, as something that values can be held against."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs

from normata.core.http import openapi
from normata.core.http.operation import Operation
from normata.operations import OPERATIONS


@cache
def document() -> dict[str, Any]:
    """The whole document."""
    return openapi.document(OPERATIONS)


def described(operation: Operation) -> dict[str, Any]:
    """What it says of one operation."""
    described_: dict[str, Any] = document()["paths"][operation.path][operation.method.lower()]
    return described_


def success(operation: Operation) -> int:
    """The status of a success that is no dry run: that is 200 beside a 201. A 206 takes a ``Range``."""
    statuses = map(int, described(operation)["responses"])
    return max(status for status in statuses if 200 <= status < 300 and status != 206)


def answer(operation: Operation, status: int) -> dict[str, Any]:
    """What it says of the answer with this status: the media type is JSON, where there is a body."""
    found: dict[str, Any] = described(operation)["responses"][str(status)]
    return found


def headers(answer_: dict[str, Any]) -> set[str]:
    """The names of the headers, in lower case, that an answer of now has: without limits and without a preference.

    Pages of a list have no file name; files of it have one.
    """
    components = document()["components"]["headers"]
    named = {name: header.get("$ref", "").rpartition("/")[2] for name, header in answer_["headers"].items()}
    found = {name.lower() for name, component in named.items() if not component or components[component]["required"]}
    is_named = answer_["headers"].get("Content-Disposition", {}).get("required", True)
    return found - {"memento-datetime", "preference-applied"} - (set() if is_named else {"content-disposition"})


def examples(media: dict[str, Any]) -> Iterator[Any]:
    """All examples of a body."""
    if "example" in media:
        yield media["example"]
    for example in media.get("examples", {}).values():
        yield example["value"]


def faults(schema: dict[str, Any], value: Any) -> list[str]:
    """What is wrong with a value by a schema of the document; empty where it is valid."""
    errors = _validator(json.dumps(schema)).iter_errors(value)
    return [f"{error.instance_path}: {error.message}" for error in errors]


@cache
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    # The document is read once for all of its schemas: it is large.
    whole = json.loads(schema.replace('"$ref": "#/', '"$ref": "urn:openapi#/'))
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True, registry=_registry())


@cache
def _registry() -> jsonschema_rs.Registry:
    return jsonschema_rs.Registry([("urn:openapi", document())])
