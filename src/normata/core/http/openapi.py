"""The OpenAPI document, made from the operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.alias_generators import to_camel, to_snake

from normata import __version__
from normata.core.http import openapi_headers
from normata.core.http.dry_run import DryRun
from normata.core.http.openapi_changes import DRY_RUN_ANSWER, TRYING_AND_RETRYING, add_dry_run, change_parameters
from normata.core.http.openapi_headers import (
    DISPOSITION,
    IF_MATCH,
    IF_NONE_MATCH,
    LINK,
    LOCATION,
    VALIDATORS,
    not_modified,
)
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.problems import FieldFault, responses
from normata.core.http.problems import examples as error_examples
from normata.core.schema.descriptions import FIELDS

DESCRIPTION = """\
Normata is a self-hosted compliance service. An organization adopts frameworks and states how far it covers each
control. Normata works out at once what that means for every framework whose controls are mapped onto each other, and
can prove it. It also keeps the records of the organization's management system, and restores the ones that were
archived.

## First steps

`normata demo` prints an organization, a token and requests to paste. Every request needs a token:

```
curl -H 'Authorization: Bearer <ACCESS_TOKEN>' 'http://127.0.0.1:8000/frameworks/?organizationId=org-harbourlight'
```

`normata token create --user EMAIL --scope read|write|admin` creates a token, and so does `POST /me/tokens/`. A token
acts as its user until it expires or is revoked: in all of the user's organizations, or in the one that it is narrowed
to. What a user may do depends on the role in the organization. Each role includes the ones before
it:

- `viewer` reads, with a token of any scope. What changes something takes the scope `write`, and what manages people,
  tokens and organizations the scope `admin`.
- `editor` states coverage, makes matches, and makes, changes, archives and restores records.
- `admin` adopts and leaves frameworks, makes frameworks and their controls, imports catalogs, invites people, and gives
  roles up to its own.
- `owner` appoints and removes owners, and removes the organization.

An organization or anything in it that you may not see gets the same answer as what does not exist.

## Conventions

- Bodies are JSON. Reports can also be had as CSV and XLSX, and imports also take YAML, CSV and XLSX. Every field is
  present in every answer, and `null` where there is no value. A body that makes or changes something is refused if it
  has an unknown field. Unknown parameters of a query are ignored.
- Success is 200. It is 201 with `Location` for one new thing, and 304 for an answer that you have already.
- Timestamps are RFC 3339 in UTC with milliseconds: `2026-11-20T09:14:03.120Z`.
- Identifiers are opaque strings of 1 to 255 characters. In a path, an id is one percent-encoded segment. Where a
  request names an organization, it may use the slug instead.
- Enums that list their values under `x-extensible-enum` are open: new values may appear, so accept values that you do
  not know. Coverage status, match level and control type are closed.
- Paths work with and without the trailing slash.
- Every answer has an `X-Request-Id`. Send your own to find your request in the log.
- Where the operator has set limits on requests, every answer tells how they stand in `RateLimit` and `RateLimit-Policy`
  (draft-ietf-httpapi-ratelimit-headers): `"token";r=599;t=60` leaves 599 requests for the next 60 seconds.

## Lists

Lists come in pages. `limit` is from 5 to 100 (default 100) and `page` starts at 1. `total` counts the items on all
pages, after filtering. A page past the end has no items. Every order ends with the id, so pages never overlap. Null
sorts last. The header `Link` has the addresses of other pages.

## Statements

A statement is what the organization says of a control. What follows from it for other controls is stored in the same
transaction, so the next answer has it. `PUT` replaces a statement, and a field that is left out is unsaid. `PATCH`
takes up to 500 statements, and a field that is left out stays. A request that changes many things stores all of them,
or nothing.

## Errors

Every answer that is not a success is a problem (RFC 9457) with a `code` for programs. An invalid request is told its
faults at once, each with its location, such as `statements/3/justification` in a body. What needs the database, such as
which control is meant, is checked once the form of the request is right. 503 means that the database cannot be reached,
or did not answer in time. `Retry-After` says when to try again. A change that was in progress at that moment may have
been stored all the same: try again, and a restore that was done is answered `not_archived`.
"""

_TAGS = [
    {"name": "Account", "description": "Who you are, and where you are a member."},
    {
        "name": "Members",
        "description": "Who works in the organization, as what, and what becomes of their work when they leave.",
    },
    {
        "name": "Tokens",
        "description": "Access tokens: your own, those of service accounts, and those that reach the organization.",
    },
    {
        "name": "Frameworks",
        "description": "Catalogs of controls, which of them the organization has adopted, and how far it covers them.",
    },
    {
        "name": "Coverage",
        "description": "What the organization says of controls, what follows from it, and why.",
    },
    {
        "name": "Reports",
        "description": "Where the organization stands with a framework, for those who work on it and for auditors.",
    },
    {
        "name": "Events",
        "description": "What was done, by whom, and what was before and after; sealed, so that it cannot be changed"
        " without a trace.",
    },
    {"name": "Notifications", "description": "Messages from the service to the current user."},
    {"name": "Due dates", "description": "What has to be done by a date, across all kinds of records."},
    {
        "name": "Records",
        "description": (
            "What the organization's management system consists of: sixteen kinds of records, which all lead the same"
            " life. An archived record is read-only, and can be restored. Nothing is ever deleted."
        ),
    },
    {
        "name": "Archive",
        "description": "What is archived, across kinds, and many records archived or restored at once.",
    },
    {
        "name": "Restore",
        "description": (
            "Restoring archived records, by the same contract for every kind. The record must be archived (else 409"
            " `not_archived`) and its slug must be free (else 409 `slug_taken`, with the id of the live record that has"
            " it as `conflictingId`). Only the archived state changes. One transaction restores the record, writes an"
            " audit event and notifies the responsible member. An answer of 200 means that all of it is stored."
        ),
    },
]

METADATA: dict[str, Any] = {
    "title": "Normata",
    "version": __version__,
    "summary": "A self-hosted compliance service: frameworks, live coverage, and records that are never lost.",
    "description": f"{DESCRIPTION}\n{TRYING_AND_RETRYING}",
    "openapi_tags": _TAGS,
    "license_info": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The OpenAPI document of ``operations``, in the order of their tags."""
    place = {str(tag["name"]): number for number, tag in enumerate(_TAGS)}
    router = APIRouter()
    for operation in sorted(operations, key=lambda operation: place[operation.tag]):
        _document(router, operation)
    return _polished(
        get_openapi(
            title=METADATA["title"],
            version=METADATA["version"],
            summary=METADATA["summary"],
            description=METADATA["description"],
            tags=METADATA["openapi_tags"],
            license_info=METADATA["license_info"],
            routes=router.routes,
        ),
        operations,
    )


def _document(router: APIRouter, operation: Operation) -> None:
    """Tell FastAPI's document of an operation: by a route that nobody serves."""
    success: dict[int | str, dict[str, Any]] = {}
    extra: dict[str, Any] = {}
    status = 200
    match operation:
        case ReadOperation():
            named = (
                DISPOSITION if operation.formats is not None else LINK if isinstance(operation, ListOperation) else {}
            )
            success = {200: {"headers": {**VALIDATORS, **named}}, 304: not_modified()}
            extra = {"parameters": [IF_NONE_MATCH]}
        case ChangeOperation():
            extra = {"parameters": change_parameters(operation)}
            if operation.takes_body:
                extra["requestBody"] = _request_body(operation)
            if operation.is_conditional:
                extra["parameters"] = [*extra["parameters"], IF_MATCH]
            status = operation.success
            # What is made has a tag always; what is changed, not in a dry run, which has the same status.
            tagged = VALIDATORS if operation.creates else {"ETag": VALIDATORS["ETag"] | {"required": False}}
            named = {**(LOCATION if operation.creates else {}), **(tagged if operation.is_tagged else {})}
            success = {status: {"headers": named}} if named else {}
            if operation.creates:
                success[200] = {"description": DRY_RUN_ANSWER}
    router.add_api_route(
        operation.path,
        _with_parameters(operation),
        methods=[operation.method],
        status_code=status,
        operation_id=operation.operation_id,
        summary=operation.summary,
        description=operation.description,
        tags=[operation.tag],
        response_model=operation.answer,
        response_description=operation.answer_description,
        responses=success | responses(*operation.every_error),
        openapi_extra=extra or None,
    )


def _with_parameters(operation: Operation) -> Callable[..., Any]:
    """A function whose parameters are those of an operation: the id in its path, and its query."""

    async def documented_as(**_parameters: Any) -> None:
        """Have the parameters of the signature below."""

    annotations: dict[str, Any] = {}
    if "{id}" in operation.path:
        annotations["record_id"] = Annotated[str, PathParameter(alias="id", description=operation.id_description)]
    query = operation.query if isinstance(operation, ReadOperation | ChangeOperation) else None
    if query is not None:
        annotations["query"] = Annotated[query, Query()]
    documented_as.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation) for name, annotation in annotations.items()]
    )
    return documented_as


def _request_body(operation: ChangeOperation) -> dict[str, Any]:
    if operation.body is not None:
        schema = {"$ref": f"#/components/schemas/{operation.body.__name__}"}
        content = {
            media_type: {"schema": dict(schema), "example": operation.body_example}
            for media_type in operation.body_types
        }
    else:
        content = {
            media_type: {"schema": {**one.schema}} | ({} if one.example is None else {"example": one.example})
            for media_type, one in operation.body_formats.items()
        }
    return {"required": operation.body_required, "content": content}


def _polished(document: dict[str, Any], operations: Sequence[Operation]) -> dict[str, Any]:
    """FastAPI's document, made to say exactly what is served, in words that every generator takes."""
    document["servers"] = [{"url": "/"}]
    document["security"] = [{"bearer": []}]
    components = document["components"]
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An access token: `Bearer <ACCESS_TOKEN>`."}
    }
    components["headers"] = {**openapi_headers.EVERYWHERE}
    schemas = components["schemas"]
    # Faults are told as problems with 400; FastAPI's own shape for them, and its 422, never leave the service.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _add_model(schemas, DryRun)
    for schema in schemas.values():
        _open(schema)
    for operation in operations:
        if isinstance(operation, ChangeOperation) and operation.body is not None:
            _add_model(schemas, operation.body)
    for schema in schemas.values():
        _drop_titles(schema)
        _describe_properties(schema)
    for path in document["paths"].values():
        for documented in path.values():
            _polish_operation(documented)
    for operation in operations:
        _add_example(document["paths"][operation.path][operation.method.lower()], operation)
    _name_closed_enums(document)
    return document


def _add_model(schemas: dict[str, Any], model: type[BaseModel]) -> None:
    """Add the schema of a body, and those of the models that it has within."""
    schema = model.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema


# What an answer does not promise: a later version may send longer texts and larger numbers.
_BOUNDS = ("minLength", "maxLength", "pattern", "minimum", "maximum")


def _open(schema: Any) -> None:
    """Remove the bounds of values from the schema of an answer, and what the empty schema says already."""
    if isinstance(schema, list):
        for item in schema:
            _open(item)
    elif isinstance(schema, dict):
        for name in _BOUNDS:
            if not isinstance(schema.get(name), dict):  # a property may have such a name
                schema.pop(name, None)
        if schema.get("anyOf") == [{}, {"type": "null"}]:
            del schema["anyOf"]  # the empty schema takes null already
        for value in schema.values():
            _open(value)


def _describe_properties(schema: dict[str, Any]) -> None:
    """Describe each property by its name, where its model does not. Raises KeyError where nobody has written it."""
    for name, value in schema.get("properties", {}).items():
        if "description" not in value:
            value["description"] = FIELDS[to_snake(name.lstrip("_"))]


# The engine computes with these, so their values never change.
_CLOSED_ENUMS = {
    ("NONE", "PARTIAL", "FULL"): ("CoverageStatus", "How far a control is covered."),
    ("PARTIAL", "FULL"): ("MatchLevel", "How far the source of a match covers its target."),
    ("CATEGORY", "CONTROL"): ("ControlType", "Whether a control is a requirement or a category of them."),
    ("asc", "desc"): ("SortDirection", "The direction of an order."),
}


def _name_closed_enums(document: dict[str, Any]) -> None:
    """Make a component of each closed enum, so that generators make one type of it."""

    def name(schema: Any) -> None:
        if isinstance(schema, list):
            for item in schema:
                name(item)
        elif isinstance(schema, dict):
            known = _CLOSED_ENUMS.get(tuple(schema["enum"])) if isinstance(schema.get("enum"), list) else None
            if known is not None:
                del schema["type"], schema["enum"]
                schema["$ref"] = f"#/components/schemas/{known[0]}"
            for value in schema.values():
                name(value)

    name(document["paths"])
    name(document["components"]["schemas"])
    for values, (title, description) in _CLOSED_ENUMS.items():
        document["components"]["schemas"][title] = {"type": "string", "enum": [*values], "description": description}


def _polish_operation(operation: dict[str, Any]) -> None:
    if "HTTPValidationError" in str(operation["responses"].get("422")):
        del operation["responses"]["422"]
    for parameter in operation.get("parameters", ()):
        schema = dict(parameter["schema"])
        # A parameter is left out or has a value: there is no null in a query.
        for alternative in schema.pop("anyOf", ()):
            if alternative != {"type": "null"}:
                schema |= alternative
        parameter["description"] = parameter.get("description") or schema["description"]
        parameter["schema"] = {name: value for name, value in schema.items() if name not in ("title", "description")}
    for response in operation["responses"].values():
        response.setdefault("headers", {}).update(openapi_headers.REFERENCES)


def _drop_titles(schema: Any) -> None:
    """Remove the titles that Pydantic makes of field names: they say nothing that the names do not."""
    if isinstance(schema, list):
        for item in schema:
            _drop_titles(item)
    elif isinstance(schema, dict):
        for name, value in schema.items():
            if name == "properties":
                for field in value.values():
                    field.pop("title", None)
            _drop_titles(value)


def _add_example(documented: dict[str, Any], operation: Operation) -> None:
    status = str(operation.success) if isinstance(operation, ChangeOperation) else "200"
    content = documented["responses"][status]["content"]["application/json"]
    content["example"] = operation.example
    if isinstance(operation, ReadOperation) and operation.formats is not None:
        for other in list(operation.formats.by_name.values())[1:]:
            example = {"example": other.render(operation.example).decode()} if other.is_text else {}
            documented["responses"][status]["content"][other.media_type] = {"schema": dict(other.schema), **example}
    if operation.answer is None:
        # Spelled so that generators that know no type "null" by itself take it, too.
        content["schema"] = {"type": ["object", "null"], "enum": [None]}
    if isinstance(operation, ChangeOperation):
        add_dry_run(documented["responses"], operation)
    # Put in here, since FastAPI drops what is null in an example.
    for number, examples in error_examples(_instance(operation), _fault(operation), *operation.every_error).items():
        documented["responses"][str(number)]["content"]["application/json"]["examples"] = examples


def _instance(operation: Operation) -> str:
    """The path of a request like that of the example."""
    example_id = operation.example["id"] if isinstance(operation.example, dict) and "id" in operation.example else "42"
    return operation.path.replace("{id}", quote(example_id, safe=""))


def _fault(operation: Operation) -> FieldFault:
    """Something that may be wrong with a request for the operation."""
    if isinstance(operation, ChangeOperation) and operation.body is not None:
        name = to_camel(next(iter(operation.body.model_fields)))
        return FieldFault(in_="body", name=name, code="invalid", message="must be a string", allowed=None)
    if isinstance(operation, ListOperation):
        return FieldFault(in_="query", name="limit", code="too_large", message="must be at most 100", allowed=None)
    return FieldFault(in_="query", name="organizationId", code="required", message="is required", allowed=None)
