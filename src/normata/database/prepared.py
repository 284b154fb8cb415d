"""Statements of SQLAlchemy, sent over a driver alone: compiled once, with the conversions of their types, no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Dialect
from sqlalchemy.types import TypeEngine

from normata.database import Statement

_Conversion = Callable[[Any], Any] | None


class Prepared(NamedTuple):
    """SQL, its parameters in their order, what those are that need not be given, and the columns that come back."""

    sql: str
    parameters: Sequence[tuple[str, _Conversion]]
    fixed: Mapping[str, Any]
    columns: Sequence[tuple[str, _Conversion]]

    def values(self, given: Mapping[str, Any]) -> list[Any]:
        """The parameters as the driver takes them. Raises KeyError for one that is missing."""
        bound = {**self.fixed, **given}
        return [bound[name] if conversion is None else conversion(bound[name]) for name, conversion in self.parameters]

    def rows(self, found: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """What the driver has found, by the names of columns."""
        return [
            {
                name: value if conversion is None else conversion(value)
                for (name, conversion), value in zip(self.columns, row, strict=True)
            }
            for row in found
        ]


class Statements:
    """The statements of scripts, prepared for one database. They are a few, and live as long as the process."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known: dict[Statement, Prepared] = {}

    def find(self, statement: Statement) -> Prepared | None:
        """What :meth:`add` has made of a statement; null before that."""
        return self._known.get(statement)

    def sql(self, statement: Statement) -> str:
        """A statement as the driver takes it."""
        return self._compiled(statement).string  # type: ignore[no-any-return]

    def add(self, statement: Statement, codes: Sequence[Any] | None = None) -> Prepared:
        """A statement, prepared. ``codes`` are what the driver calls the types of what comes back, where it does."""
        compiled = self._compiled(statement)
        columns = statement.exported_columns
        self._known[statement] = Prepared(
            compiled.string,
            [(name, self._type(compiled.binds[name]).bind_processor(self._dialect)) for name in compiled.positiontup],
            {name: value for name, value in compiled.params.items() if not compiled.binds[name].required},
            [
                (column.name, self._type(column).result_processor(self._dialect, code))
                for column, code in zip(columns, codes or [None] * len(columns), strict=True)
            ],
        )
        return self._known[statement]

    def _compiled(self, statement: Statement) -> Any:
        return statement.compile(dialect=self._dialect)

    def _type(self, element: ColumnElement[Any]) -> TypeEngine[Any]:
        return element.type.dialect_impl(self._dialect)
