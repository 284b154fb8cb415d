"""Statements of SQLAlchemy, sent over asyncpg alone: compiled once, with the conversions of their types, no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import asyncpg
from sqlalchemy import Delete, Dialect, Executable, Insert, Select, Update
from sqlalchemy.types import TypeEngine

from normata.database import Script, T

_Conversion = Callable[[Any], Any] | None


class _Prepared(NamedTuple):
    """SQL, the parameters in their order (name, value unless given, conversion), and the columns that come back."""

    sql: str
    parameters: Sequence[tuple[str, Any, _Conversion]]
    columns: Sequence[tuple[str, _Conversion]]


async def follow(connection: asyncpg.Connection[Any], script: Script[T], dialect: Dialect) -> T:
    """What a script returns, its statements sent over ``connection``."""
    try:
        statement, parameters = next(script)
        while True:
            prepared = await _prepared(connection, statement, dialect)
            statement, parameters = script.send(await _rows(connection, prepared, parameters))
    except StopIteration as end:
        return cast("T", end.value)


async def _rows(
    connection: asyncpg.Connection[Any], prepared: _Prepared, given: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    values = ((given.get(name, default), conversion) for name, default, conversion in prepared.parameters)
    converted = [value if conversion is None else conversion(value) for value, conversion in values]
    return [
        {
            name: value if conversion is None else conversion(value)
            for (name, conversion), value in zip(prepared.columns, record, strict=True)
        }
        for record in await connection.fetch(prepared.sql, *converted)
    ]


# Scripts are made of a few statements, which live as long as the process.
_known: dict[tuple[Executable, Dialect], _Prepared] = {}


async def _prepared(connection: asyncpg.Connection[Any], statement: Executable, dialect: Dialect) -> _Prepared:
    key = (statement, dialect)
    if key not in _known:
        _known[key] = await _prepare(connection, statement, dialect)
    return _known[key]


async def _prepare(connection: asyncpg.Connection[Any], statement: Executable, dialect: Dialect) -> _Prepared:
    assert isinstance(statement, Select | Insert | Update | Delete)  # noqa: S101 - narrows the type; scripts have no other
    compiled: Any = statement.compile(dialect=dialect)
    # Without a name it leaves nothing behind, which behind a pooler would be another's.
    described = await connection.prepare(compiled.string, name="")
    return _Prepared(
        compiled.string,
        [
            (name, compiled.params[name], _of(compiled.binds[name].type, dialect).bind_processor(dialect))
            for name in compiled.positiontup
        ],
        [
            (column.name, _of(column.type, dialect).result_processor(dialect, attribute.type.oid))
            for column, attribute in zip(statement.exported_columns, described.get_attributes(), strict=True)
        ],
    )


def _of(kind: TypeEngine[Any], dialect: Dialect) -> TypeEngine[Any]:
    return kind.dialect_impl(dialect)
