"""A row on its way from a file into the database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from sqlalchemy import RowMapping

from normata.bundle.arrays import ARRAYS
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

    ``given`` has the columns that the file states, ``stored`` the row as it is (null for a new one), ``final`` the
    row as it shall be. A ``faulty`` one is told of, all its faults go to ``faults``, and it is left out of what
    follows; whoever refers to it is not blamed for that.
    """

    row: Row
    table: type[Table]
    given: dict[str, Any]
    faults: list[Fault]
    stored: RowMapping | None = None
    final: dict[str, Any] = field(default_factory=dict)
    faulty: bool = False

    @property
    def id(self) -> str:
        """The row's id."""
        return str(self.given["id"])

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        if self.stored is None:
            return True
        documents = _documents(self.table)
        return any(
            # In a document 1, 1.0 and true differ, though not to Python.
            json.dumps(self.stored[name]) != json.dumps(value) if name in documents else self.stored[name] != value
            for name, value in self.final.items()
        )

    def blame(self, column: str, reason: str) -> None:
        """Note a fault of one of its columns."""
        self.faults.append(self.row.fault(to_camel(column), reason))
        self.faulty = True


Groups = Mapping[type[Table], Sequence[Entry]]


@cache
def _documents(table: type[Table]) -> frozenset[str]:
    return frozenset(column.name for column in sql_table(table).columns if isinstance(column.type, Document))


def read_values(rows: Sequence[Row], faults: list[Fault], progress: Progress) -> tuple[Groups, set[tuple[str, str]]]:
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
            given = {name: _plain(getattr(model, name)) for name in model.model_fields_set}
            groups[table].append(Entry(row, table, given, faults))
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
