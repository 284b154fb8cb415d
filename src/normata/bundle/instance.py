"""Dumping and loading a whole instance: every row of every table, as it is stored.

Loading it is a copy and not a change. It creates no events, and leaves numbers, revisions and seals as they are, so
that the copy is the same instance: tokens, passwords and sessions remain valid, and so do old checkpoints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from pydantic.alias_generators import to_camel
from sqlalchemy import delete, literal, select

from normata.bundle.arrays import ARRAYS
from normata.bundle.dumping import write_array
from normata.bundle.loading import Progress
from normata.bundle.reading import JsonText, Stopped
from normata.bundle.stored_values import columns_of, insertion
from normata.core.changes.source import Fault, FaultyInput, pointer
from normata.core.db.transaction import Transaction, batches
from normata.core.documents.files import Unreadable, open_input
from normata.core.schema import migrations
from normata.core.schema.table import sql_table, tables
from normata.errors import CommandError
from normata.events.model import UnsealedEvent
from normata.history.model import HISTORY_TABLES
from normata.tables import Table

_SCHEMA = "schema"  # the first member of the file
_HEAD = re.compile(rf'\s*\{{\s*"{_SCHEMA}"\s*:'.encode())
_HEAD_LENGTH = 100  # bytes

_AT_ONCE = 1_000  # rows
_BY_TRIGGERS = (UnsealedEvent, *HISTORY_TABLES)


def every_array() -> dict[str, type[Table]]:
    """All tables, each by the name of its array, in the order in which a dump writes them."""
    others = sorted((table for table in tables() if table not in ARRAYS.values()), key=_name)
    return ARRAYS | {_name(table): table for table in others}


def _name(table: type[Table]) -> str:
    return table.array or to_camel(str(table.__tablename__))


def dump_everything(transaction: Transaction, file: IO[str]) -> None:
    """Write every row of every table, with the version of the schema: the same rows give the same bytes."""
    file.write(f'{{\n  "{_SCHEMA}": {json.dumps(migrations.version(transaction))}')
    for array, table in every_array().items():
        file.write(",\n")
        columns = sql_table(table).c
        names = [to_camel(column.name) for column in columns]
        rows = transaction.stream(select(*columns).order_by(*sql_table(table).primary_key))
        write_array(file, array, (dict(zip(names, row, strict=True)) for row in rows))
    file.write("\n}\n")


def has_everything(path: Path) -> bool:
    """Whether a regular file is a dump of everything, by its beginning."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return _HEAD.match(file.read(_HEAD_LENGTH)) is not None
    except OSError:  # the error is reported where the rest is read
        return False


def load_everything(transaction: Transaction, path: Path, progress: Progress = lambda *_: None) -> dict[str, int]:
    """Insert a dump of everything into an empty database, and return the number of rows of each array.

    Raises CommandError if the database has rows, and FaultyInput if the file is incomplete or has another schema.
    """
    transaction.lock("content")
    _require_empty(transaction, path)
    loader = _Loader(transaction, path, progress)
    try:
        with TextIOWrapper(open_input(path), encoding="utf-8", newline="") as file:
            loader.load(JsonText(file))
    except (Stopped, Unreadable, UnicodeDecodeError, OSError) as error:
        raise loader.faulty(str(error)) from error
    transaction.analyze({str(every_array()[array].__tablename__): count for array, count in loader.counts.items()})
    return loader.counts


def _require_empty(transaction: Transaction, path: Path) -> None:
    for array, table in every_array().items():
        if transaction.row(select(literal(1)).select_from(sql_table(table)).limit(1)) is not None:
            raise CommandError(
                f"{path} has everything, and loads into an empty database only; this one has rows of {array}"
            )


class _Loader:
    """Loads one file; ``counts`` has the rows so far."""

    def __init__(self, transaction: Transaction, path: Path, progress: Progress) -> None:
        self.counts: dict[str, int] = {}
        self._transaction = transaction
        self._path = path
        self._progress = progress
        self._place = ""

    def faulty(self, reason: str) -> FaultyInput:
        """The error to raise for a fault at the current place."""
        return FaultyInput([Fault(str(self._path), self._place, reason)])

    def load(self, text: JsonText) -> None:
        """Read to the end."""
        if text.peek() != "{":
            raise self.faulty("must be a JSON object")
        arrays = every_array()
        for name in text.names():
            self._place = pointer(name)
            if name == _SCHEMA:
                self._require_schema(text.value())
            elif name not in arrays:
                raise self.faulty("is not an array of a dump of everything")
            elif name in self.counts:
                raise self.faulty("is given twice")
            elif text.peek() != "[":
                raise self.faulty("must be an array")
            else:
                self._array(name, arrays[name], text)
        self._place = ""
        text.end()
        if missing := [name for name in arrays if name not in self.counts]:
            raise self.faulty(f"is not a dump of everything: it lacks {', '.join(missing)}")

    def _require_schema(self, found: object) -> None:
        current = migrations.version(self._transaction)
        if found != current:
            raise self.faulty(
                f"is {found}, and the database has {current}: dump and load with the same version of Normata"
            )

    def _array(self, name: str, table: type[Table], text: JsonText) -> None:
        statement = insertion(table)
        self.counts[name] = 0
        if table in _BY_TRIGGERS:  # they have noted what was loaded as if it were new
            self._transaction.rows(delete(sql_table(table)))
        rows: list[dict[str, Any]] = []
        for index, _ in enumerate(text.series("]")):
            self._place = pointer(name, index)
            rows.append(self._row(table, text))
            if len(rows) == _AT_ONCE:
                self._insert(name, statement, rows)
        self._insert(name, statement, rows)

    def _insert(self, name: str, statement: Any, rows: list[dict[str, Any]]) -> None:
        for batch in batches(rows):
            self._transaction.execute_many(statement, batch)
        self.counts[name] += len(rows)
        self._progress(f"Loading {name}", self.counts[name], self.counts[name])
        rows.clear()

    def _row(self, table: type[Table], text: JsonText) -> dict[str, Any]:
        item = text.value()
        known = columns_of(table)
        if not (isinstance(item, dict) and item.keys() == known.keys() and text.is_sound):
            raise self.faulty(f"must have just the fields {', '.join(known)}")
        row = {}
        for name, value in item.items():
            column, reason_against = known[name]
            if (reason := reason_against(value)) is not None:
                self._place += pointer(name)
                raise self.faulty(reason)
            row[column] = value
        return row


def rows_of(counts: dict[str, int]) -> Iterator[str]:
    """The numbers of inserted rows, one line for each array that has any."""
    return (f"{array}: {count}" for array, count in counts.items() if count)
