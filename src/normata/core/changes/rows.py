"""Pending rows: rows to be written to the database, each with its place in the input.

The rules of this package check and complete them, one row of a request or all rows of a load. ``validity`` runs the
rules in their order, ``writing`` writes the result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from sqlalchemy import String

from normata.core.changes.source import Fault, Row, pointer
from normata.core.db.types import Document
from normata.core.schema.faults import describe
from normata.core.schema.table import Table, sql_table
from normata.core.schema.wire import input_model
from normata.errors import DomainError

# Stores the long columns of a row until they are needed: in memory, or on disk if there are many rows.
Buffer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(slots=True)
class PendingRow:
    """A row to be written to the database.

    ``supplied`` has the columns that the input has. It is empty once they are part of ``final``, the row after the
    change. ``stored`` is the row before; null for a new row. None of the three has the long columns: ``long`` has them,
    first from the input, then after the change; null if they do not change. ``stored_long`` has those of a stored row
    that changes. ``free_slug`` is a generated free slug, ``slug_holder`` the id of a visible stored row with the row's
    slug. All faults of a row go to ``faults``, and ``refusal`` is why a rule refuses it as a whole. A ``faulty`` row is
    left out of all later checks, and references to it are not faults.
    """

    id: str
    source: Row
    table: type[Table]
    supplied: dict[str, Any]
    long: Mapping[str, Any] | None
    faults: list[Fault]
    stored: dict[str, Any] | None = None
    final: dict[str, Any] = field(default_factory=dict)
    faulty: bool = False
    stored_long: Mapping[str, Any] | None = None
    free_slug: str | None = None
    slug_holder: str | None = None
    refusal: DomainError | None = None

    @property
    def before(self) -> Mapping[str, Any] | None:
        """The whole stored row, if it changes; null for a new row."""
        return None if self.stored is None else WholeRow(self.stored, self.stored_long or {})

    @property
    def after(self) -> Mapping[str, Any]:
        """The whole row after the change, if it is new or changes."""
        return WholeRow(self.final, self.long or {})

    @property
    def changed(self) -> bool:
        """Whether there is a change to write."""
        return self.stored is None or self.long is not None or self.final != self.stored

    def replace(self, after: dict[str, Any]) -> None:
        """Let the whole row after the change be another one than it is; what is derived from it follows."""
        if after == dict(self.after.items()):
            return
        self.table.derive(after)
        self.long = {name: after[name] for name in long_columns(self.table)} or None
        self.final = without_long(self.table, after)

    def add_fault(self, column: str, reason: str, code: str = "invalid") -> None:
        """Add a fault of one of its columns."""
        self.faults.append(self.source.fault(to_camel(column), reason, code))
        self.faulty = True

    def refuse(self, refusal: DomainError) -> None:
        """Refuse it as a whole."""
        self.refusal = refusal
        self.faulty = True


class WholeRow(Mapping[str, Any]):
    """A row with its long columns, which may be on disk: they are read on each access, by ``items`` all at once."""

    __slots__ = ("_long", "_short")

    def __init__(self, short: Mapping[str, Any], long: Mapping[str, Any]) -> None:
        self._short, self._long = short, long

    def __getitem__(self, name: str) -> Any:
        return self._short[name] if name in self._short else self._long[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.items()))

    def __len__(self) -> int:
        return len(self._short) + len(self._long)

    def items(self) -> ItemsView[str, Any]:
        """All columns and their values."""
        return {**self._short, **dict(self._long.items())}.items()


# In such an order that each table comes after those that its own rules read.
PendingRows = Mapping[type[Table], Sequence[PendingRow]]


def read_row(
    table: type[Table], source: Row, faults: list[Fault], buffer: Buffer = lambda values: values
) -> PendingRow | None:
    """The pending row of an input row, with checked values; null if it has faults, which are added to ``faults``."""
    values = {name: value for name, value in source.values.items() if name not in table.ignored}
    try:
        model = input_model(table).model_validate(values)
    except ValidationError as error:
        faults.extend(_fault(source, fault) for fault in error.errors())
        return None
    supplied = {name: model.__dict__[name] for name in model.model_fields_set}
    long = {name: _plain(supplied[name]) for name in long_columns(table) if name in supplied}
    supplied = without_long(table, supplied)
    return PendingRow(supplied["id"], source, table, supplied, buffer(long) if long else None, faults)


def good(rows: Iterable[PendingRow]) -> list[PendingRow]:
    """The rows without faults so far."""
    return [row for row in rows if not row.faulty]


@cache
def long_columns(table: type[Table]) -> dict[str, bool]:
    """The columns without a length limit, which no check between rows needs, and whether each is a document."""
    return {
        column.name: isinstance(column.type, Document)
        for column in sql_table(table).columns
        if "lists" not in column.info
        and (isinstance(column.type, Document) or (isinstance(column.type, String) and column.type.length is None))
    }


def without_long(table: type[Table], row: Mapping[str, Any]) -> dict[str, Any]:
    """The other columns of a row; equal texts, such as referenced ids, are shared in memory."""
    long = long_columns(table)
    return {name: sys.intern(value) if type(value) is str else value for name, value in row.items() if name not in long}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.model_dump(by_alias=True) if isinstance(value, BaseModel) else value


def _fault(source: Row, fault: Mapping[str, Any]) -> Fault:
    """The fault of one of Pydantic's errors, with its place in the input."""
    _, message, _ = describe(fault)
    name, *deeper = fault["loc"]
    known = source.fault(str(name), message)
    return Fault(known.file, known.place + pointer(*deeper), known.reason)
