"""Transactions around another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Delete, Insert, Update

from normata.core.db.transaction import NO_PARAMETERS, Parameters, Statement, TenantScope, Transaction

# SQLAlchemy works it out anew each time it is asked.
_returning: WeakKeyDictionary[Statement, bool] = WeakKeyDictionary()


def returns_rows(statement: Statement) -> bool:
    """Whether a statement returns rows."""
    if not isinstance(statement, Insert | Update | Delete):
        return True
    known = _returning.get(statement)
    if known is None:
        known = _returning[statement] = bool(statement.returning_column_descriptions)
    return known


class Wrapping(Transaction):
    """Does what another transaction does. A subclass says what is different."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        """See :meth:`Transaction.rows`."""
        return self._transaction.rows(statement, parameters)

    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        """See :meth:`Transaction.execute_many`."""
        self._transaction.execute_many(statement, parameters)

    def stream(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        """See :meth:`Transaction.stream`."""
        return self._transaction.stream(statement, parameters)

    def lock(self, name: str, *, shared: bool = False) -> None:
        """See :meth:`Transaction.lock`."""
        self._transaction.lock(name, shared=shared)

    def try_lock(self, name: str) -> bool:
        """See :meth:`Transaction.try_lock`."""
        return self._transaction.try_lock(name)

    def settle(self) -> None:
        """See :meth:`Transaction.settle`."""
        self._transaction.settle()

    def extend(self, scope: TenantScope) -> None:
        """See :meth:`Transaction.extend`."""
        self._transaction.extend(scope)

    def tables(self) -> frozenset[str]:
        """See :meth:`Transaction.tables`."""
        return self._transaction.tables()

    def analyze(self, written: Mapping[str, int]) -> None:
        """See :meth:`Transaction.analyze`."""
        self._transaction.analyze(written)


class Watching(Wrapping):
    """Keeps the rows that are inserted into one table, whatever the statement, in ``added``."""

    def __init__(self, transaction: Transaction, table: str) -> None:
        super().__init__(transaction)
        self._table = table
        self.added: list[Any] = []

    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        """See :meth:`Transaction.rows`. An INSERT that returns rows by itself is not watched."""
        if not self._is_watched(statement):
            return super().rows(statement, parameters)
        assert isinstance(statement, Insert)  # noqa: S101 - narrows the type
        self.added += super().rows(statement.returning(*statement.table.c), parameters)
        return []

    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        """See :meth:`Transaction.execute_many`."""
        if not self._is_watched(statement):
            super().execute_many(statement, parameters)
            return
        for one in parameters:
            self.rows(statement, one)

    def _is_watched(self, statement: Statement) -> bool:
        return isinstance(statement, Insert) and statement.table.name == self._table and not returns_rows(statement)
