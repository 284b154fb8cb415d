"""Lookups: functions of the database, called for all waiting calls in one round trip."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import asyncpg
from sqlalchemy import Connection, Dialect, String
from sqlalchemy.types import TypeEngine

from normata.core.db.batching import Batcher
from normata.core.db.lookup import Lookup
from normata.core.db.postgresql import functions
from normata.core.db.postgresql.errors import CONNECT_ERRORS, is_lost, translate
from normata.core.db.postgresql.functions import Ask, Function
from normata.core.db.postgresql.pool import STALE_AT_MOST, Pool
from normata.core.db.postgresql.server_status import TIMELINE
from normata.core.db.statements import Rows, Statements
from normata.errors import Unavailable

# The function runs with its owner's rights, so the service's role needs no right to read the tables. In its search path
# temporary tables come last, so that none can replace one of Normata's.
_FUNCTION = """\
CREATE OR REPLACE FUNCTION {signature} RETURNS TABLE (number bigint, {columns})
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY {question};
END $$
"""


class Lookups:
    """Makes lookups on a connection of their own, without a transaction."""

    def __init__(self, pool: Pool, statements: Statements, timeout: float) -> None:
        self._pool = pool
        self._statements = statements
        self._timeout = timeout
        self._batcher: Batcher[tuple[Lookup, Sequence[str | None]], list[Any]] = Batcher(self._serve, timeout)
        self._connection: asyncpg.Connection[Any] | None = None
        self._made = 0.0
        self._prepared: dict[str, tuple[str, Rows]] = {}

    async def look_up(self, lookup: Lookup, arguments: Sequence[str | None]) -> list[Any]:
        """The rows that answer a lookup."""
        return await self._batcher.ask((lookup, arguments))

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(*CONNECT_ERRORS):
                await self._connection.close(timeout=1)
            self._connection = None

    async def _serve(self, calls: Sequence[tuple[Lookup, Sequence[str | None]]]) -> list[list[Any] | Exception]:
        answers: list[list[Any] | Exception] = [[] for _ in calls]
        places: dict[str, list[int]] = {}
        for place, (lookup, _) in enumerate(calls):
            places.setdefault(lookup.name, []).append(place)
        for alike in places.values():
            values = [calls[place][1] for place in alike]
            try:
                found = await self._answers(calls[alike[0]][0], values)
            except Exception as error:
                found = [error] * len(alike)
            for place, answer in zip(alike, found, strict=True):
                answers[place] = answer
        return answers

    async def _answers(self, lookup: Lookup, arguments: Sequence[Sequence[str | None]]) -> list[list[Any] | Exception]:
        sql, rows = self._prepared.get(lookup.name) or self._prepare(lookup)
        found: list[list[Any]] = [[] for _ in arguments]
        for _, number, *row in await self._fetch(sql, [list(values) for values in zip(*arguments, strict=True)]):
            if number is not None:
                found[number - 1].append(row)
        return [rows(answer) for answer in found]

    async def _fetch(self, sql: str, arguments: Sequence[Sequence[str | None]]) -> list[Any]:
        """Rows of the primary, the first column of each its timeline. Raises Unavailable."""
        heartbeat = self._pool.heartbeat
        if heartbeat is None:
            return await self._fetch_anywhere(sql, arguments)
        for _ in range(STALE_AT_MOST):
            server = await heartbeat.confirmed()
            found = await self._fetch_anywhere(sql, arguments)
            if found[0][0] != server.timeline:
                # The pooler has asked a former primary, or this server was promoted meanwhile.
                self._drop()
                self._pool.doubt()
                heartbeat.doubt(server)
            elif await heartbeat.is_still(server):
                return found
        raise Unavailable("the server that answers is not the primary", "unconfirmed")

    async def _fetch_anywhere(
        self, sql: str, arguments: Sequence[Sequence[str | None]], *, stale: int = STALE_AT_MOST
    ) -> list[Any]:
        if self._connection is not None and self._pool.is_doubtful(self._made):
            self._drop()
        try:
            if self._connection is None:
                self._made = time.monotonic()
                self._connection = await self._pool.connect()
            return await self._connection.fetch(sql, *arguments, timeout=self._timeout)
        except CONNECT_ERRORS as error:
            if is_lost(error):
                self._drop()
                self._pool.doubt()
                if stale and not isinstance(error, TimeoutError):
                    return await self._fetch_anywhere(sql, arguments, stale=stale - 1)
            raise translate(error) from error

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def _prepare(self, lookup: Lookup) -> tuple[str, Rows]:
        arguments = ", ".join(f"${number}" for number, _ in enumerate(lookup.arguments, 1))
        # The row has the timeline even if nothing was found, since another server may have it.
        sql = (
            f"SELECT timeline, answer.* FROM (SELECT {TIMELINE} AS timeline) AS server"  # noqa: S608 - declarations'
            f" LEFT JOIN public.{lookup.name}({arguments}) AS answer ON true"
        )
        prepared = self._prepared[lookup.name] = sql, self._statements.rows(lookup.columns)
        return prepared


# --- Installing the functions


def secure(connection: Connection, role: str, lookup: Lookup) -> None:
    """Create the lookup's function unless it is correct, and let only the role execute it."""
    functions.secure(connection, role, _function(lookup, connection.dialect))


def faults(ask: Ask, role: str, lookup: Lookup, dialect: Dialect) -> Iterator[str]:
    """The faults of the lookup's function, a sentence each."""
    return functions.faults(ask, role, _function(lookup, dialect))


def _function(lookup: Lookup, dialect: Dialect) -> Function:
    return Function(lookup.name, _signature(lookup), _definition(lookup, dialect))


def _definition(lookup: Lookup, dialect: Dialect) -> str:
    quote = dialect.identifier_preparer.quote
    arguments = [quote(argument) for argument in lookup.arguments]
    source = f"unnest({', '.join(_arrays(lookup))}) WITH ORDINALITY AS asked ({', '.join(arguments)}, number)"
    return _FUNCTION.format(
        signature=_signature(lookup, named=True),
        columns=", ".join(f"{quote(name)} {_type(column, dialect)}" for name, column in lookup.columns.items()),
        question=lookup.sql(*(f"asked.{argument}" for argument in arguments), source=source, number="asked.number"),
    )


def _signature(lookup: Lookup, *, named: bool = False) -> str:
    arguments = (f"{array} text[]" if named else "text[]" for array in _arrays(lookup))
    return f"public.{lookup.name}({', '.join(arguments)})"


def _arrays(lookup: Lookup) -> list[str]:
    return [f"every_{argument}" for argument in lookup.arguments]


def _type(column: TypeEngine[Any], dialect: Dialect) -> str:
    # The result of a function has neither lengths nor collations.
    is_text = isinstance(column.dialect_impl(dialect), String)
    return "varchar" if is_text else str(column.compile(dialect=dialect))
