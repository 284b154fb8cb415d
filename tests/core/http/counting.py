"""Counts what the application asks of its database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import UnsupportedCompilationError
from sqlalchemy.sql.visitors import iterate
from starlette.types import Receive, Scope, Send

from normata.app import Service
from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.sqlite.database import SQLite
from normata.core.db.transaction import NO_PARAMETERS, NO_TENANT, Parameters, Statement, TenantScope, Transaction, Work


@dataclass
class Asked:
    """What a database was asked: statements, the tables that they name, the rows that they returned, and lookups."""

    statements: list[str] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    rows: int = 0
    lookups: int = 0

    def note(self, statement: Statement, times: int = 1) -> None:
        """Count a statement, and the tables that it names."""
        try:
            text = str(statement)
        except UnsupportedCompilationError:  # it has an element that each database writes in its own way
            text = str(statement.compile(dialect=sqlite.dialect()))
        self.statements.extend([text] * times)
        self.tables.update(part.name for part in iterate(statement) if isinstance(part, Table))


@contextmanager
def _noting(transaction: Transaction, asked: Asked) -> Iterator[None]:
    """Has each statement of a transaction noted while a block runs."""
    rows, execute_many, stream = transaction.rows, transaction.execute_many, transaction.stream

    def counted_rows(statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        asked.note(statement)
        found = rows(statement, parameters)
        asked.rows += len(found)
        return found

    def counted_many(statement: Statement, parameters: Sequence[Parameters]) -> None:
        asked.note(statement, len(parameters))
        execute_many(statement, parameters)

    def counted_stream(statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        asked.note(statement)
        return stream(statement, parameters)

    own: Any = transaction  # its class has these; what an object has itself comes first
    own.rows, own.execute_many, own.stream = counted_rows, counted_many, counted_stream
    try:
        yield
    finally:
        del own.rows, own.execute_many, own.stream


_IN_REQUEST: ContextVar[bool] = ContextVar("in_request", default=False)


@contextmanager
def counting(database: Database, monkeypatch: pytest.MonkeyPatch, *, besides_requests: bool = False) -> Iterator[Asked]:
    """Counts what requests ask of a database while a block runs; what is asked besides them only if wanted."""
    asked = Asked()
    call, read, write, look_up = Service.__call__, database.read, database.write, database.look_up

    async def called(service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        _IN_REQUEST.set(True)
        await call(service, scope, receive, send)

    def is_counted() -> bool:
        return besides_requests or _IN_REQUEST.get()

    def noted(work: Work[Any]) -> Work[Any]:
        if not is_counted():
            return work

        def run(transaction: Transaction) -> Any:
            with _noting(transaction, asked):
                return work(transaction)

        return run

    async def counted_read(work: Work[Any], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> Any:
        return await read(noted(work), scope, is_long=is_long)

    async def counted_write(work: Work[Any], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> Any:
        return await write(noted(work), scope, is_long=is_long)

    async def counted_lookup(lookup: Lookup, *arguments: str | None) -> Sequence[Any]:
        asked.lookups += is_counted()
        return await look_up(lookup, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Service, "__call__", called)
        patch.setattr(database, "read", counted_read)
        patch.setattr(database, "write", counted_write)
        patch.setattr(database, "look_up", counted_lookup)
        if isinstance(database, SQLite):  # what takes long on a busy machine would begin again, and count twice
            patch.setattr(database._reader, "_limit", None)
        yield asked
