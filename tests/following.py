"""Scripts followed over SQLAlchemy, for those who look at their statements one by one."""

from __future__ import annotations

from typing import TypeVar, cast

from sqlalchemy import Connection

from normata.database import Script

T = TypeVar("T")


def follow(connection: Connection, script: Script[T]) -> T:
    """What a script returns, its statements sent over ``connection``."""
    try:
        statement, parameters = next(script)
        while True:
            result = connection.execute(statement, parameters)
            statement, parameters = script.send([dict(row) for row in result.mappings()] if result.returns_rows else ())
    except StopIteration as end:
        return cast("T", end.value)
