"""The schemas of the OpenAPI document: components of the models, in a form that every generator supports."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_snake
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from normata.core.schema.descriptions import FIELDS

_REFERENCE = "#/components/schemas/{model}"

Schema = dict[str, Any]


def reference(model: type[BaseModel]) -> Schema:
    """The reference to the component of a model."""
    return {"$ref": _REFERENCE.format(model=model.__name__)}


def schema_of(model: type[BaseModel]) -> Schema:
    """The schema of the JSON of a model, with the schemas that it refers to in ``$defs``."""
    schema = model.model_json_schema(by_alias=True)
    for one in (schema, *schema.get("$defs", {}).values()):
        for name, value in one.get("properties", {}).items():
            if description := FIELDS.get(to_snake(name.lstrip("_"))):
                value.setdefault("description", description)
    _drop_titles(schema)
    return {name: value for name, value in schema.items() if name not in ("title", "description")}


def components(answers: Iterable[type[BaseModel]], bodies: Iterable[type[BaseModel]]) -> dict[str, Schema]:
    """The components of the models of answers and of requests' bodies, and of the models within, by their names."""
    found = _schemas(answers, "serialization")
    for schema in found.values():
        _open(schema)
        _drop_null_defaults(schema)
    found |= _schemas(bodies, "validation")
    for schema in found.values():
        _drop_titles(schema)
        _describe_properties(schema)
    return {name: found[name] for name in sorted(found)}


def _schemas(models: Iterable[type[BaseModel]], mode: JsonSchemaMode) -> dict[str, Schema]:
    named, definitions = models_json_schema([(model, mode) for model in models], ref_template=_REFERENCE)
    found: dict[str, Schema] = definitions.get("$defs", {})
    # Pydantic lengthens names that two models share. `reference` would not find those.
    missing = {model.__name__ for model, _ in named} - found.keys()
    if missing:
        raise ValueError(f"two models are named alike: {', '.join(sorted(missing))}")
    return found


def query_parameters(query: type[BaseModel]) -> Iterator[Schema]:
    """The parameters of a query, in the order of its model."""
    schema = query.model_json_schema(ref_template=_REFERENCE)
    required = schema.get("required", ())
    for name, value in schema.get("properties", {}).items():
        # A parameter cannot be null, only missing.
        alternatives = [one for one in value.get("anyOf", ()) if one != {"type": "null"}]
        parameter = {name: part for name, part in value.items() if name != "anyOf"}
        parameter = (
            {**parameter, "anyOf": alternatives} if len(alternatives) > 1 else dict(ChainMap(parameter, *alternatives))
        )
        if parameter.get("default", "") is None:
            del parameter["default"]
        yield {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": parameter.pop("description"),
            "schema": {name: value for name, value in parameter.items() if name != "title"},
        }


# Not promised for answers: a later version may send longer texts and larger numbers.
_BOUNDS = ("minLength", "maxLength", "pattern", "minimum", "maximum")


def _open(schema: Any) -> None:
    """Remove the bounds of values, and keywords implied by the empty schema, from the schema of an answer."""
    for one in _within(schema):
        for name in _BOUNDS:
            if not isinstance(one.get(name), dict):  # a property may have this name
                one.pop(name, None)
        if one.get("anyOf") == [{}, {"type": "null"}]:
            del one["anyOf"]  # the empty schema allows null already


def _drop_null_defaults(schema: Any) -> None:
    """Remove default nulls from the schema of an answer, in which every field is present."""
    for one in _within(schema):
        if one.get("default", "") is None:
            del one["default"]


def _drop_titles(schema: Any) -> None:
    """Remove the titles that Pydantic derives from field names, because they add nothing."""
    for one in _within(schema):
        if isinstance(one.get("properties"), dict):
            for field in one["properties"].values():
                field.pop("title", None)


def _describe_properties(schema: Schema) -> None:
    """Describe each property by its name, unless its model does. Raises KeyError if there is no description."""
    for name, value in schema.get("properties", {}).items():
        if "description" not in value:
            value["description"] = FIELDS[to_snake(name.lstrip("_"))]


# The engine computes with these values, so the enums never grow.
_CLOSED_ENUMS = {
    ("NONE", "PARTIAL", "FULL"): ("CoverageStatus", "How far a control is covered."),
    ("PARTIAL", "FULL"): ("MatchLevel", "How far the source of a match covers its target."),
    ("CATEGORY", "CONTROL"): ("ControlType", "Whether a control is a requirement or a category of them."),
    ("asc", "desc"): ("SortDirection", "The direction of an order."),
}


def name_closed_enums(document: dict[str, Any]) -> None:
    """Make a component of each closed enum, so that generators create one type."""
    for part in (document["paths"], document["components"]["schemas"]):
        for one in _within(part):
            known = _CLOSED_ENUMS.get(tuple(one["enum"])) if isinstance(one.get("enum"), list) else None
            if known is not None:
                del one["type"], one["enum"]
                one["$ref"] = _REFERENCE.format(model=known[0])
    for values, (title, description) in _CLOSED_ENUMS.items():
        document["components"]["schemas"][title] = {"type": "string", "enum": [*values], "description": description}


def _within(value: Any) -> Iterator[Schema]:
    """Every object in a value, the outer ones first; they may be changed while they are visited."""
    if isinstance(value, list):
        for item in value:
            yield from _within(item)
    elif isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _within(item)
