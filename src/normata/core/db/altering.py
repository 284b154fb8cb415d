"""A transaction for reading within :meth:`normata.core.db.database.Database.alter_now`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, inspect
from typing_extensions import override

from normata.core.db.transaction import NO_PARAMETERS, Parameters, Statement, TenantScope, Transaction


class AlteringTransaction(Transaction):
    """A transaction on a SQLAlchemy connection, in which the schema is being changed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @override
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        result = self._connection.execute(statement, dict(parameters))
        return list(result.all()) if result.returns_rows else []

    @override
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        if parameters:
            self._connection.execute(statement, [dict(one) for one in parameters])

    @override
    def stream(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        return iter(self.rows(statement, parameters))

    @override
    def lock(self, name: str, *, shared: bool = False) -> None:
        """Does nothing: only one process changes the schema at a time."""

    @override
    def try_lock(self, name: str) -> bool:
        return True

    @override
    def date(self, moment: str) -> None:
        """Does nothing: what an upgrade changes holds from when it does so."""

    @override
    def check_constraints(self) -> None:
        """The commit does."""

    @override
    def extend(self, scope: TenantScope) -> None:
        """Does nothing: changes of the schema have no tenant scope."""

    @override
    def tables(self) -> frozenset[str]:
        return frozenset(inspect(self._connection).get_table_names())

    @override
    def analyze(self, written: Mapping[str, int]) -> None:
        """Does nothing: no data is written that plans depend on."""
