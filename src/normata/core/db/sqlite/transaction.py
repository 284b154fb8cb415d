"""A transaction on a connection to SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from normata.core.db.sqlite import trigrams
from normata.core.db.sqlite.connection import Connection, File
from normata.core.db.statements import Prepared, Statements
from normata.core.db.transaction import NO_PARAMETERS, Parameters, Statement, T, TenantScope, Transaction, Work
from normata.core.db.trigrams import Hits

_ROWS_AT_ONCE = 1_000
# From so many rows on, update the statistics. SQLite never does that itself, and without statistics it assumes that
# indexes are selective, which is mostly right. The statistics of a small table would remain when it has grown.
_MANY = 1_000
_SAMPLE = 100_000  # index entries that are read to estimate their number
_HISTORY = "_history"  # how the names of history tables end
# Before SQLite looks up many rows of a table, it reads the whole table to know which are not there (a Bloom filter),
# if it takes the table for smaller than what is to be looked up. It takes a recursive expression for a million rows,
# however few these are, and so would read all of a history for the few controls above another one.
CALL_IT_LARGE = """
UPDATE sqlite_stat1 SET stat = '1000000000' || substr(stat, instr(stat, ' ')) WHERE tbl = :table AND idx IS NOT NULL
"""


class SQLiteTransaction(Transaction):
    """A transaction that has begun; its creator ends it."""

    def __init__(self, connection: Connection, statements: Statements, file: File) -> None:
        connection.moment = None
        self._connection = connection
        self._statements = statements
        self._file = file
        self.failure: Exception | None = None

    @override
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        prepared = self._statements.prepare(statement, parameters)
        found = self.fetch(*prepared.bind(parameters))
        return [] if prepared.rows is None else prepared.rows(found)

    @override
    def hits(self, words: Sequence[str], organization_id: str, kinds: Iterable[str]) -> Hits:
        return trigrams.hits(self, words, kinds)

    @override
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        if not parameters:
            return
        prepared = self._statements.prepare(statement, parameters[0])
        if prepared.expands:
            for one in parameters:
                self.fetch(*prepared.bind(one))
            return
        sql, _ = prepared.bind(parameters[0])
        values = (prepared.bind(one)[1] for one in parameters)
        self._run(lambda: self._connection.executemany(sql, values))

    @override
    def stream(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        prepared = self._statements.prepare(statement, parameters)
        sql, values = prepared.bind(parameters)
        cursor = self._run(lambda: self._connection.execute(sql, values))
        return self._streamed(cursor, prepared)

    @override
    def lock(self, name: str, *, shared: bool = False) -> None:
        """Does nothing: there is only one writer."""

    @override
    def try_lock(self, name: str) -> bool:
        """Nobody else is writing."""
        del name
        return True

    @override
    def date(self, moment: str) -> None:
        self._connection.moment = moment

    @override
    def check_constraints(self) -> None:
        if self.failure is not None:
            raise self.failure

    @override
    def extend(self, scope: TenantScope) -> None:
        """Does nothing: there is no tenant scope on SQLite."""

    @override
    def tables(self) -> frozenset[str]:
        found = self.fetch(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
        )
        return frozenset(name for (name,) in found)

    @override
    def analyze(self, written: Mapping[str, int]) -> None:
        # A sample takes no longer for a large index. From a small one SQLite would conclude that no organization has
        # more rows than that, and plan worse than without statistics.
        self.fetch(f"PRAGMA analysis_limit = {_SAMPLE}")
        for table, rows in written.items():
            if rows >= _MANY:
                self.fetch(f"ANALYZE {self._statements.quoted(table)}")
                if table.endswith(_HISTORY):
                    self.fetch(CALL_IT_LARGE, {"table": table})
                    self.fetch("ANALYZE sqlite_schema")  # which takes over what is written there

    def fetch(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """All rows of a plain SQL statement, as the driver returns them."""
        return self._run(lambda: self._connection.execute(sql, values).fetchall())

    def _streamed(self, cursor: sqlite3.Cursor, prepared: Prepared) -> Iterator[Any]:
        while found := self._run(lambda: cursor.fetchmany(_ROWS_AT_ONCE)):
            if prepared.rows is not None:
                yield from prepared.rows(found)

    def _run(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except sqlite3.Error as error:
            self.failure = self._file.translate(error)
            if self.failure is error:
                raise
            raise self.failure from error


def run_work(work: Work[T], transaction: SQLiteTransaction) -> T:
    """Run ``work`` and return its result. Raises its errors, including those of statements that it has caught.

    If one of its statements failed, nothing of the transaction may be stored, as on PostgreSQL.
    """
    result = work(transaction)
    if transaction.failure is not None:
        raise transaction.failure
    return result
