"""Tables in CSV (RFC 4180) and spreadsheets: the first row names the columns, in any order.

Rows are numbered as in spreadsheets, so that a fault in ``/rows/4/parent`` is about the fourth row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from normata.core.changes.source import Fault, pointer
from normata.core.documents.files import Unreadable

_MAX_COLUMNS = 50
_DELIMITERS = (",", ";", "\t")

NumberedRow = tuple[int, Mapping[str, str]]  # its number, and its cells by column


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns that a table may have, the ones that it must have, and how many rows at most."""

    names: tuple[str, ...]
    needed: tuple[str, ...]
    max_rows: int


def has_column(text: str, name: str) -> bool:
    """Whether the first line of a text names the columns of a table, with this one among them."""
    line = text.lstrip().partition("\n")[0]
    return name in map(_column, line.split(_delimiter(line)))


def csv_rows(file: str, text: str, columns: TableColumns, faults: list[Fault]) -> list[NumberedRow]:
    """The rows of a CSV text, separated by comma, semicolon or tab. Raises Unreadable."""
    delimiter = _delimiter(text.lstrip().partition("\n")[0])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return table_rows(file, reader, columns, faults)
    except csv.Error as error:
        raise Unreadable(f"is not CSV: line {reader.line_num}: {error}") from error


def table_rows(
    file: str, rows: Iterable[Sequence[str]], columns: TableColumns, faults: list[Fault]
) -> list[NumberedRow]:
    """The rows of a table, the first of which names the columns. An empty row counts, but is left out.

    Unknown and repeated columns, and cells in none of them, go to ``faults``. Raises Unreadable if no row names the
    columns, or there are too many rows.
    """
    numbered = ((number, [cell.strip() for cell in row]) for number, row in enumerate(rows, 1) if row)
    filled = ((number, row) for number, row in numbered if any(row))
    number, header = next(filled, (1, []))
    if any(header[_MAX_COLUMNS:]):
        raise Unreadable(f"has more than {_MAX_COLUMNS} columns")
    names = [_column(cell) for cell in header]
    if not set(columns.needed) <= set(names):
        needed, known = " and ".join(columns.needed), ", ".join(columns.names)
        raise Unreadable(f"is no table: its first row must name the columns, {needed} at least ({known})")
    faults += _wrong_columns(file, number, names, columns.names)
    found: list[NumberedRow] = []
    for number, row in filled:
        if len(found) == columns.max_rows:
            raise Unreadable(f"has more than {columns.max_rows:,} rows")
        if any(row[len(names) :]) or any(cell for cell, name in zip(row, names, strict=False) if not name):
            faults.append(
                Fault(file, pointer("rows", number), "has a cell in a column that the first row does not name")
            )
        found.append((number, dict.fromkeys(columns.names, "") | dict(zip(names, row, strict=False))))
    return found


def _wrong_columns(file: str, number: int, names: Sequence[str], known: Sequence[str]) -> Iterator[Fault]:
    for place, name in enumerate(names):
        if name and name not in known:
            yield Fault(file, pointer("rows", number, name), f"is no column that is known here: {', '.join(known)}")
        elif name and name in names[:place]:
            yield Fault(file, pointer("rows", number, name), "is there twice")


def _column(cell: str) -> str:
    return cell.strip().strip('"').strip().casefold()


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)
