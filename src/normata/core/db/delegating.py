"""Transactions around another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Delete, Insert, Update
from typing_extensions import override

from normata.core.db.transaction import NO_PARAMETERS, Parameters, Statement, TenantScope, Transaction
from normata.core.db.trigrams import Hits

# SQLAlchemy computes it anew for each call.
_returning: WeakKeyDictionary[Statement, bool] = WeakKeyDictionary()


def returns_rows(statement: Statement) -> bool:
    """Whether a statement returns rows."""
    if not isinstance(statement, Insert | Update | Delete):
        return True
    known = _returning.get(statement)
    if known is None:
        known = _returning[statement] = bool(statement.returning_column_descriptions)
    return known


class DelegatingTransaction(Transaction):
    """Delegates to another transaction. A subclass overrides what differs."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    @override
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        return self._transaction.rows(statement, parameters)

    @override
    def hits(self, words: Sequence[str], organization_id: str, kinds: Iterable[str]) -> Hits:
        return self._transaction.hits(words, organization_id, kinds)

    @override
    def texts_wait(self) -> bool:
        return self._transaction.texts_wait()

    @override
    def index_texts(self) -> bool:
        return self._transaction.index_texts()

    @override
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        self._transaction.execute_many(statement, parameters)

    @override
    def stream(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        return self._transaction.stream(statement, parameters)

    @override
    def lock(self, name: str, *, shared: bool = False) -> None:
        self._transaction.lock(name, shared=shared)

    @override
    def try_lock(self, name: str) -> bool:
        return self._transaction.try_lock(name)

    @override
    def date(self, moment: str) -> None:
        self._transaction.date(moment)

    @override
    def time_of_reading(self) -> str:
        return self._transaction.time_of_reading()

    @override
    def check_constraints(self) -> None:
        self._transaction.check_constraints()

    @override
    def extend(self, scope: TenantScope) -> None:
        self._transaction.extend(scope)

    @override
    def tables(self) -> frozenset[str]:
        return self._transaction.tables()

    @override
    def analyze(self, written: Mapping[str, int]) -> None:
        self._transaction.analyze(written)


class InsertRecorder(DelegatingTransaction):
    """Records the rows that any statement inserts into one table, in ``added``."""

    def __init__(self, transaction: Transaction, table: str) -> None:
        super().__init__(transaction)
        self._table = table
        self.added: list[Any] = []

    @override
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        """An INSERT that returns rows by itself is not recorded."""
        if not self._is_recorded(statement):
            return super().rows(statement, parameters)
        assert isinstance(statement, Insert)  # noqa: S101 - narrows the type
        self.added += super().rows(statement.returning(*statement.table.c), parameters)
        return []

    @override
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        if not self._is_recorded(statement):
            super().execute_many(statement, parameters)
            return
        for one in parameters:
            self.rows(statement, one)

    def _is_recorded(self, statement: Statement) -> bool:
        return isinstance(statement, Insert) and statement.table.name == self._table and not returns_rows(statement)
