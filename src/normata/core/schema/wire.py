"""The wire models of a table: of its rows in answers, and of its rows in bundles.

Both are made from the class that declares the table, so that no field is declared twice.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import orjson
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel
from pydantic_core import to_json
from sqlalchemy import Column
from sqlalchemy.orm import Mapped

from normata.core.schema.descriptions import describe
from normata.core.schema.table import Table, sql_table


class Wire(BaseModel):
    """The base of all models of answers: camelCase names, every field present."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class Input(BaseModel):
    """The base of all models of input: only JSON's types (no "3" for 3), and no unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True, extra="forbid")


def columns(table: type[Table]) -> list[Column[Any]]:
    """The columns of ``table`` that are seen on the wire, in order."""
    return [column for column in sql_table(table).columns if not column.info.get("derived")]


def listed_columns(table: type[Table]) -> list[Column[Any]]:
    """The wire columns in lists, whose fields are fixed: bundles and details may have more."""
    return [column for column in columns(table) if not column.info.get("unlisted")]


@cache
def wire_names(table: type[Table]) -> dict[str, str]:
    """Column name → wire name, for the columns seen on the wire, in order."""
    return {column.name: to_camel(column.name) for column in columns(table)}


def as_wire(table: type[Table], row: Any) -> dict[str, Any]:
    """A row in wire form. ``row`` has every column of the table by its name."""
    return {wire: getattr(row, name) for name, wire in wire_names(table).items()}


@cache
def wire(table: type[Table]) -> type[BaseModel]:
    """The model of a row in a list, with the name and description of the class: every field is required."""
    listed = listed_columns(table)
    fields: dict[str, Any] = {
        column.name: (hint, Field(**_described(column))) for column, hint in _typed_columns(table) if column in listed
    }
    return create_model(table.__name__, __base__=Wire, __doc__=table.__doc__, **fields)


@cache
def input_model(table: type[Table]) -> type[BaseModel]:
    """The model of a row in a bundle: fields that are left out are unset, and filled in later."""
    fields: dict[str, Any] = {
        column.name: (hint, ...) if column.primary_key else (hint, None) for column, hint in _typed_columns(table)
    }
    return create_model(f"{table.__name__}Row", __base__=Input, **fields)


def body_model(
    name: str, table: type[Table], columns: Collection[str], *, doc: str, required: Collection[str] = ()
) -> type[BaseModel]:
    """The model of a request's body with these columns, all but the ``required`` ones optional.

    Omitted fields are unset, and have no default in OpenAPI.
    """
    fields: dict[str, Any] = {
        column.name: (
            _written(column, hint),
            Field(**_described(column))
            if column.name in required
            else Field(default_factory=lambda: None, **_described(column)),
        )
        for column, hint in _typed_columns(table)
        if column.name in columns
    }
    return create_model(name, __base__=Input, __doc__=doc, **fields)


def _typed_columns(table: type[Table]) -> list[tuple[Column[Any], Any]]:
    hints = get_type_hints(table, include_extras=True)
    return [(column, _unmapped(hints[column.name])) for column in columns(table)]


def _written(column: Column[Any], hint: Any) -> Any:
    written = column.info.get("written")
    if written is None:
        return hint
    return written | None if column.nullable else written


def _unmapped(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Mapped else hint


def _described(column: Column[Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": describe(column)}
    if "known" in column.info:
        described["json_schema_extra"] = {"x-extensible-enum": list(column.info["known"])}
    return described


def encode(content: Any) -> bytes:
    """JSON values as JSON in UTF-8."""
    try:
        return orjson.dumps(content)
    except TypeError:  # a document may contain an integer of more than 64 bits, which orjson refuses
        return to_json(content)
