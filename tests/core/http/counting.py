"""Counts what the application asks of its database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import Table
from sqlalchemy.sql.visitors import iterate

from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import DueJob
from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import NO_PARAMETERS, NO_TENANT, Parameters, Statement, TenantScope, Transaction, Work
from normata.events import sealer, sealing
from normata.identity import last_use
from normata.identity.last_use import LastUse


@dataclass
class Asked:
    """What a database was asked: statements, the tables that they name, the rows that they returned, and lookups."""

    statements: list[str] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)
    rows: int = 0
    lookups: int = 0

    def note(self, statement: Statement, times: int = 1) -> None:
        """Count a statement, and the tables that it names."""
        self.statements.extend([str(statement)] * times)
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


@contextmanager
def counting(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """Counts what is asked of a database while a block runs; but not what is asked beside the requests."""
    asked = Asked()
    read, write, look_up = database.read, database.write, database.look_up

    def noted(work: Work[Any]) -> Work[Any]:
        if work.__module__ in (sealer.__name__, sealing.__name__, last_use.__name__):
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
        asked.lookups += 1
        return await look_up(lookup, *arguments)

    async def store_nothing(_self: LastUse) -> None:
        """What earlier requests have left to store is stored later."""

    async def find_nothing(_self: JobRunner) -> None:
        """Jobs are found later."""

    async def claim_nothing(_self: JobRunner, _most: int) -> list[DueJob]:
        """And done later."""
        return []

    with monkeypatch.context() as patch:
        patch.setattr(JobRunner, "find", find_nothing)
        patch.setattr(JobRunner, "_claimed", claim_nothing)
        patch.setattr(LastUse, "note", lambda *_: None)
        patch.setattr(LastUse, "store", store_nothing)
        patch.setattr(database, "read", counted_read)
        patch.setattr(database, "write", counted_write)
        patch.setattr(database, "look_up", counted_lookup)
        yield asked
