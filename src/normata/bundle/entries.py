"""A row on its way from a file into the database."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from sqlalchemy import String

from normata.bundle.arrays import ARRAYS
from normata.bundle.shelf import Shelf, Shelved
from normata.database import Document
from normata.errors import describe
from normata.models import Table
from normata.source import Fault, Row, pointer
from normata.vocabulary import sql_table
from normata.wire import input_model

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Entry:
    """One row on its way into the database.

    ``given`` has the columns that the file states, until they have become part of ``final``, the row as it shall be;
    ``stored`` has the row as it is (null for a new one). None of them has the long columns: they wait in ``texts``,
    first as given, then as they shall be, null where they stay as they are. A ``faulty`` one is told of, all its faults
    go to ``faults``, and it is left out of what follows; whoever refers to it is not blamed for that.
    """

    id: str
    row: Row
    table: type[Table]
    given: dict[str, Any]
    texts: Shelved | None
    faults: list[Fault]
    stored: dict[str, Any] | None = None
    final: dict[str, Any] = field(default_factory=dict)
    faulty: bool = False

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.stored is None or self.texts is not None or self.final != self.stored

    def blame(self, column: str, reason: str) -> None:
        """Note a fault of one of its columns."""
        self.faults.append(self.row.fault(to_camel(column), reason))
        self.faulty = True


Groups = Mapping[type[Table], Sequence[Entry]]


@cache
def long_columns(table: type[Table]) -> dict[str, bool]:
    """The columns without a limit of length, which no check between rows looks at, and which of them are documents."""
    return {
        column.name: isinstance(column.type, Document)
        for column in sql_table(table).columns
        if isinstance(column.type, Document) or (isinstance(column.type, String) and column.type.length is None)
    }


def without_long(table: type[Table], row: Mapping[str, Any]) -> dict[str, Any]:
    """The other columns of a row; texts that are equal, such as the ids that rows refer to, are one in memory."""
    long = long_columns(table)
    return {name: sys.intern(value) if type(value) is str else value for name, value in row.items() if name not in long}


def read_values(
    rows: Sequence[Row], shelf: Shelf, faults: list[Fault], progress: Progress
) -> tuple[Groups, set[tuple[str, str]]]:
    """The entries of all rows whose values are good, by table, and the tables and ids of the other rows.

    Tables come in the order of the arrays. What is wrong goes to ``faults``.
    """
    groups: dict[type[Table], list[Entry]] = {table: [] for table in ARRAYS.values()}
    refused: set[tuple[str, str]] = set()
    for done, row in enumerate(rows):
        if done % 1_000 == 0:
            progress("Checking rows", done, len(rows))
        table = ARRAYS[row.array]
        values = {name: value for name, value in row.values.items() if name not in table.ignored}
        try:
            model = input_model(table).model_validate(values)
        except ValidationError as error:
            faults.extend(_fault(row, fault) for fault in error.errors())
            refused.add((str(table.__tablename__), str(row.values.get("id"))))
        else:
            given = {name: model.__dict__[name] for name in model.model_fields_set}
            texts = {name: _plain(given[name]) for name in long_columns(table) if name in given}
            given = without_long(table, given)
            groups[table].append(Entry(given["id"], row, table, given, shelf.put(texts) if texts else None, faults))
    return {table: group for table, group in groups.items() if group}, refused


def good(group: Iterable[Entry]) -> list[Entry]:
    """Those that nothing has been found wrong with so far."""
    return [entry for entry in group if not entry.faulty]


def _plain(value: Any) -> Any:
    return value.model_dump(by_alias=True) if isinstance(value, BaseModel) else value


def _fault(row: Row, fault: Mapping[str, Any]) -> Fault:
    """One of Pydantic's errors as ours, with its place in the file."""
    _, message, _ = describe(fault)
    name, *deeper = fault["loc"]
    known = row.fault(str(name), message)
    return Fault(known.file, known.place + pointer(*deeper), known.reason)
