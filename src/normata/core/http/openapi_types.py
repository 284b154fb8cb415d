"""Types of the OpenAPI document as people read them, such as `array of Task or null`, and a line for each of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "pattern": "matching {}",
}


class Component(str):
    """The name of a component within a type."""

    __slots__ = ()


def type_parts(schema: Mapping[str, Any]) -> Iterator[str]:
    """The type of a schema in parts; a :class:`Component` for each named one."""
    if "$ref" in schema:
        yield Component(schema["$ref"].rpartition("/")[2])
    elif alternatives := schema.get("anyOf") or schema.get("oneOf"):
        for number, one in enumerate(alternatives):
            yield " or " if number else ""
            yield from type_parts(one)
    elif "const" in schema:
        yield json.dumps(schema["const"])
    elif "enum" in schema:
        yield " or ".join(json.dumps(value) for value in schema["enum"])
    else:
        yield from _named_type(schema)
        yield from _details(schema)


def _named_type(schema: Mapping[str, Any]) -> Iterator[str]:
    names = schema.get("type", "anything")
    for number, name in enumerate([names] if isinstance(names, str) else names):
        yield " or " if number else ""
        yield name
        if name == "array" and schema.get("items"):
            yield " of ("
            yield from type_parts(schema["items"])
            yield ")"
        elif name == "object" and schema.get("properties"):
            yield " of {"
            for place, (field, value) in enumerate(schema["properties"].items()):
                yield f"{', ' if place else ''}{field}: "
                yield from type_parts(value)
            yield "}"
        elif name == "object" and isinstance(schema.get("additionalProperties"), dict):
            yield " with values of ("
            yield from type_parts(schema["additionalProperties"])
            yield ")"


def _details(schema: Mapping[str, Any]) -> Iterator[str]:
    """The restrictions of a type."""
    if "format" in schema:
        yield f" ({schema['format']})"
    if "x-extensible-enum" in schema:
        yield f", such as {', '.join(map(str, schema['x-extensible-enum']))}"
    for name, words in _BOUNDS.items():
        if name in schema:
            yield f", {words.format(schema[name])}"


def type_text(schema: Mapping[str, Any]) -> str:
    """The type of a schema as a text."""
    return "".join(type_parts(schema))


def surface(document: Mapping[str, Any]) -> str:
    """Every operation and every component of a document with its fields and their types, a line each, sorted."""
    lines = [
        *(
            f"{method.upper()} {path} {line}"
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            for line in _operation_lines(operation)
        ),
        *(line for name, schema in document["components"]["schemas"].items() for line in _schema_lines(name, schema)),
    ]
    return "".join(f"{line}\n" for line in sorted(lines))


def _operation_lines(operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"is {operation['operationId']}, of {', '.join(operation['tags'])}"
    for one in operation.get("parameters", ()):
        yield f"takes {one['in']} {one['name']}: {type_text(one['schema'])}{_presence(one['schema'], one['required'])}"
    body = operation.get("requestBody")
    if body is not None:
        for media_type, content in body["content"].items():
            yield f"takes body {media_type}: {type_text(content['schema'])}{_presence({}, body['required'])}"
    errors: list[str] = []
    for status, response in operation["responses"].items():
        if status >= "400":
            content = response["content"]["application/json"]
            errors.extend(f"{status} {code}" for code in sorted(content["examples"]))
            continue
        own = ", ".join(name for name, header in response["headers"].items() if "$ref" not in header)
        suffix = f", with {own}" if own else ""
        if "content" not in response:
            yield f"answers {status}{suffix}"
        for media_type, content in response.get("content", {}).items():
            yield f"answers {status} {media_type}: {type_text(content['schema'])}{suffix}"
    yield f"refuses with {', '.join(errors)}"


def _schema_lines(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    extra = ", nothing else" if schema.get("additionalProperties") is False else ""
    if "properties" not in schema:
        yield f"{name}: {type_text(schema)}"
        return
    yield f"{name}: {len(schema['properties'])} fields{extra}"
    required: Iterable[str] = schema.get("required", ())
    for field, value in schema["properties"].items():
        yield f"{name}.{field}: {type_text(value)}{_presence(value, field in required)}"


def _presence(schema: Mapping[str, Any], required: bool) -> str:
    default = f" = {json.dumps(schema['default'])}" if "default" in schema else ""
    return default if required else f"{default}, optional"
