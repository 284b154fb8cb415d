"""The columns of the registers: the tables, in files, with the records of a kind."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from pydantic.alias_generators import to_camel
from sqlalchemy import Column

from normata.core.schema.wire import columns
from normata.records.base import Restorable
from normata.records.fields import Sort, fields_of

Kind = type[Restorable]

SOURCE, EXTERNAL_ID = "externalSource", "externalId"
_LEFT_OUT = "organization_id"  # the same in each row

# The width of a column in characters, by what it has.
_WIDTHS: dict[Sort, int] = {"prose": 60, "document": 60, "text": 28, "reference": 28, "foreign": 28, "moment": 26}
_NARROW, _ID = 16, 38


class RegisterColumn(NamedTuple):
    """A column of a register that has a field of the records.

    ``target`` is the table that its values name rows of, empty for none. ``is_checked`` is true if they must.
    ``may_be_null`` is true if an empty cell stands for null.
    """

    name: str
    column: str
    sort: Sort
    target: str
    is_checked: bool
    may_be_null: bool
    width: int


@cache
def register_columns(kind: Kind) -> tuple[RegisterColumn, ...]:
    """The columns of a kind with fields of its records, in their order; the id comes first."""
    sorts = {field.name: field.sort for field in fields_of(kind)}
    return tuple(_of(one, sorts[to_camel(one.name)]) for one in columns(kind) if one.name != _LEFT_OUT)


@cache
def column_names(kind: Kind) -> tuple[str, ...]:
    """The names of all columns of a register: those of the external id follow the id."""
    first, *others = (one.name for one in register_columns(kind))
    return (first, SOURCE, EXTERNAL_ID, *others)


def _of(column: Column[str], sort: Sort) -> RegisterColumn:
    target = column.info.get("refers_to") or column.info.get("may_name") or ""
    return RegisterColumn(
        name=to_camel(column.name),
        column=column.name,
        sort=sort,
        target=target,
        is_checked="refers_to" in column.info,
        may_be_null=bool(column.nullable),
        width=_ID if column.name == "id" else _WIDTHS.get(sort, _NARROW),
    )
