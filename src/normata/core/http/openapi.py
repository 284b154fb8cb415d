"""The OpenAPI document, made from the operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any
from urllib.parse import quote

from pydantic.alias_generators import to_camel

from normata.core.http import file_form, openapi_headers
from normata.core.http.dry_run import DryRun
from normata.core.http.formats import FormatChoice
from normata.core.http.openapi_changes import DRY_RUN_ANSWER, add_dry_run, change_parameters
from normata.core.http.openapi_headers import (
    APPLIED,
    CONTENT_RANGE,
    DISPOSITION,
    IF_MATCH,
    IF_NONE_MATCH,
    LINK,
    LOCATION,
    MEMENTO,
    PREFER,
    VALIDATORS,
    not_modified,
)
from normata.core.http.openapi_info import INFO, TAGS
from normata.core.http.openapi_schemas import components, name_closed_enums, query_parameters, reference
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.problems import FieldFault, Problem, responses
from normata.core.http.problems import examples as error_examples
from normata.core.schema.paging import PastQuery

_BEARER = {"type": "http", "scheme": "bearer", "description": "An access token: `Bearer <ACCESS_TOKEN>`."}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The OpenAPI document of ``operations``, in the order of their tags."""
    place = {str(tag["name"]): number for number, tag in enumerate(TAGS)}
    paths: dict[str, Any] = {}
    for operation in sorted(operations, key=lambda operation: place[operation.tag]):
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    answers = dict.fromkeys(operation.answer for operation in operations if operation.answer is not None)
    bodies = dict.fromkeys(
        operation.body
        for operation in operations
        if isinstance(operation, ChangeOperation) and operation.body is not None
    )
    made = {
        "openapi": "3.1.0",
        "info": INFO,
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": TAGS,
        "paths": paths,
        "components": {
            "schemas": components([Problem, DryRun, *answers], bodies),
            "securitySchemes": {"bearer": _BEARER},
            "headers": openapi_headers.EVERYWHERE,
        },
    }
    made = deepcopy(made)  # a deep copy, so that nothing is shared
    name_closed_enums(made)
    return made


def _described(operation: Operation) -> dict[str, Any]:
    """An operation in the document."""
    parameters = _parameters(operation)
    body = _request_body(operation) if isinstance(operation, ChangeOperation) and operation.takes_body else None
    return {
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "operationId": operation.operation_id,
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": body} if body is not None else {}),
        "responses": _responses(operation),
    }


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    """The parameters of an operation: the id in its path, its query, and headers."""
    found: list[dict[str, Any]] = []
    if "{id}" in operation.path:
        path_id = {"name": "id", "in": "path", "required": True, "description": operation.id_description}
        found.append(path_id | {"schema": {"type": "string"}})
    if isinstance(operation, ReadOperation | ChangeOperation) and operation.query is not None:
        found.extend(query_parameters(operation.query))
    match operation:
        case ReadOperation():
            found.append(IF_NONE_MATCH)
        case ChangeOperation():
            found.extend(change_parameters(operation))
            if operation.is_conditional:
                found.append(IF_MATCH)
    if operation.ignores_unknown:
        found.append(PREFER)
    return found


# A file has any media type, and generators of clients know no range of them.
_ANY_BYTES: dict[str, Any] = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def _request_body(operation: ChangeOperation) -> dict[str, Any]:
    content: dict[str, Any]
    if operation.body_stream is not None:
        content = _ANY_BYTES
    elif operation.body is not None:
        schema, example = reference(operation.body), operation.body_example
        content = {media_type: {"schema": schema, "example": example} for media_type in operation.body_types}
    else:
        content = {
            media_type: {"schema": dict(one.schema)} | ({} if one.example is None else {"example": one.example})
            for media_type, one in operation.body_formats.items()
        }
        content[file_form.MEDIA_TYPE] = {"schema": dict(file_form.SCHEMA)}
    return {"required": operation.body_required, "content": content}


def _responses(operation: Operation) -> dict[str, Any]:
    """The answers of an operation by their status: successes and errors, each with headers and examples."""
    headers = openapi_headers.REFERENCES | (APPLIED if operation.ignores_unknown else {})
    found: dict[str, Any] = {}
    match operation:
        case ReadOperation():
            disposition = DISPOSITION if operation.formats is not None else {}
            if isinstance(operation, ListOperation) and operation.files is not None:
                disposition = {name: header | {"required": False} for name, header in DISPOSITION.items()}
            own = VALIDATORS | disposition | (LINK if isinstance(operation, ListOperation) else {})
            if issubclass(operation.query, PastQuery):
                own |= MEMENTO
            found["200"] = _success(operation, own)
            if operation.sends_file:
                found["200"]["headers"] |= DISPOSITION
                found["206"] = _success(operation, own | DISPOSITION | CONTENT_RANGE)
                found["206"]["description"] = "The part of the file that `Range` asks for."
            found["304"] = not_modified()
        case ChangeOperation():
            # A created row always has a tag. A changed one has none in a dry run, which has the same status.
            tagged = VALIDATORS if operation.creates else {"ETag": VALIDATORS["ETag"] | {"required": False}}
            own = (LOCATION if operation.creates else {}) | (tagged if operation.is_tagged else {})
            found[str(operation.success)] = _success(operation, own)
            if operation.found is not None:
                found["200"] = _success(operation, own)
            elif operation.creates:
                found["200"] = {"description": DRY_RUN_ANSWER}
            add_dry_run(found, operation)
    of_errors = error_examples(_instance(operation), _fault(operation), *operation.every_error)
    for status, response in responses(*operation.every_error).items():
        response["content"] = {"application/json": {"schema": reference(Problem), "examples": of_errors[status]}}
        found[str(status)] = response
    return {status: one | {"headers": one.get("headers", {}) | headers} for status, one in found.items()}


def _success(operation: Operation, headers: dict[str, Any]) -> dict[str, Any]:
    # This form of null also works in generators that do not know the type "null" alone.
    schema = {"type": ["object", "null"], "enum": [None]} if operation.answer is None else reference(operation.answer)
    content: dict[str, Any] = {"application/json": {"schema": schema, "example": operation.example}}
    if isinstance(operation, ReadOperation) and operation.sends_file:
        content = _ANY_BYTES
    for formats in _formats(operation):
        for other in formats.by_name.values():
            if other.media_type in content:
                continue  # JSON, which the model describes
            example = {"example": other.render(operation.example).decode()} if other.is_text else {}
            content[other.media_type] = {"schema": dict(other.schema), **example}
    return {"description": operation.answer_description, "headers": headers, "content": content}


def _formats(operation: Operation) -> Iterator[FormatChoice]:
    """The formats of a report, or of a list."""
    if isinstance(operation, ReadOperation) and operation.formats is not None:
        yield operation.formats
    if isinstance(operation, ListOperation) and operation.files is not None:
        yield operation.files


def _instance(operation: Operation) -> str:
    """The path of a request like that of the example."""
    example_id = operation.example["id"] if isinstance(operation.example, dict) and "id" in operation.example else "42"
    return operation.path.replace("{id}", quote(example_id, safe=""))


def _fault(operation: Operation) -> FieldFault:
    """An example fault of a request for the operation."""
    if isinstance(operation, ChangeOperation) and operation.body is not None:
        name = to_camel(next(iter(operation.body.model_fields)))
        return FieldFault(in_="body", name=name, code="invalid", message="must be a string", allowed=None)
    if isinstance(operation, ListOperation):
        return FieldFault(in_="query", name="limit", code="too_large", message="must be at most 100", allowed=None)
    return FieldFault(in_="query", name="organizationId", code="required", message="is required", allowed=None)
