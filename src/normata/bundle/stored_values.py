"""Rows that are loaded as they were stored: what their columns can hold, and how they are inserted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.alias_generators import to_camel
from sqlalchemy import Column, Insert, bindparam, insert

from normata.core.db.types import UtcTimestamp
from normata.core.schema.table import Table, sql_table

_ReasonAgainst = Callable[[Any], str | None]
_TYPES: dict[Any, tuple[type, ...]] = {bool: (bool,), float: (float, int), int: (int,), list: (list,), str: (str,)}


@cache
def columns_of(table: type[Table]) -> dict[str, tuple[str, _ReasonAgainst]]:
    """The columns by their names in a file, each with a function that returns why a value does not fit, or null."""
    hints = get_type_hints(table)
    return {to_camel(one.name): (one.name, _reason_against(one, hints[one.name])) for one in sql_table(table).c}


def _reason_against(column: Column[Any], hint: Any) -> _ReasonAgainst:
    # Only what the databases cannot store is refused: rules may have become stricter since the row was made.
    plain = next(one for one in (*_parts(get_args(hint)[0]), Any) if one is not type(None))
    values = get_args(plain) if get_origin(plain) is Literal else None
    types = {float: (float, int), int: (int,), str: (str,), bool: (bool,), list: (list,)}.get(
        get_origin(plain) or plain
    )
    is_time = isinstance(column.type, UtcTimestamp)

    def reason_against(value: Any) -> str | None:
        if value is None:
            return None if column.nullable else "must not be null"
        if values is not None and value not in values:
            return f"must be one of {', '.join(values)}"
        if types is not None and type(value) not in types:
            return f"must be of type {types[0].__name__}"
        return "must be a time" if is_time and not _is_time(value) else None

    return reason_against


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_time(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


@cache
def insertion(table: type[Table]) -> Insert:
    """The statement that inserts rows as they were stored, with a value for each column."""
    columns = sql_table(table).c
    return insert(sql_table(table)).values(
        {column.name: bindparam(column.name, type_=column.type) for column in columns}
    )
