"""Tables in CSV (RFC 4180) and spreadsheets: the first row names the columns, in any order.

Rows are numbered as in spreadsheets, so that a fault in ``/rows/4/parent`` is about the fourth row. What stands in the
cells of an exact table counts to the last blank; of other tables, surrounding blanks and the case of columns do not.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches

from normata.core.changes.source import Fault, pointer
from normata.core.documents.files import Unreadable, as_text

_MAX_COLUMNS = 50
_DELIMITERS = (",", ";", "\t")
_LONGEST, _LONGEST_EXACT = 2**17, 4 * 2**20  # characters of a cell; of an exact table it may be a document
_BYTE_ORDERS = (b"\xff\xfe", b"\xfe\xff")  # UTF-16, as some programs write "Unicode text"

csv.field_size_limit(_LONGEST_EXACT)

_MOST_NEAR = 3
_LONGEST_COMPARED = 100  # characters of a name, since comparing takes quadratic time

NumberedRow = tuple[int, Mapping[str, str]]  # its number, and its cells by column


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns that a table may have, the ones that it must have, and how many rows at most.

    A row of an ``is_exact`` table has only the columns of the first row, by the names that are known here.
    """

    names: tuple[str, ...]
    needed: tuple[str, ...]
    max_rows: int
    is_exact: bool = False


def table_text(content: bytes) -> str:
    """The text of a CSV file: UTF-8 or, if it begins with its byte-order mark, UTF-16. Raises Unreadable."""
    if content.startswith(_BYTE_ORDERS):
        with suppress(UnicodeDecodeError):
            return content.decode("utf-16")
    return as_text(content)


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
    numbered = ((number, row if columns.is_exact else [cell.strip() for cell in row]) for number, row in _filled(rows))
    number, header = next(numbered, (1, []))
    if any(header[_MAX_COLUMNS:]):
        raise Unreadable(f"has more than {_MAX_COLUMNS} columns")
    known = {name.casefold(): name for name in columns.names}
    names = [known.get(_column(cell), cell.strip() if columns.is_exact else _column(cell)) for cell in header]
    if not set(columns.needed) <= set(names):
        needed, every = " and ".join(columns.needed), ", ".join(columns.names)
        raise Unreadable(f"is no table: its first row must name the columns, {needed} at least ({every})")
    faults += _wrong_columns(file, number, names, columns)
    empty = dict.fromkeys([name for name in names if name] if columns.is_exact else columns.names, "")
    found: list[NumberedRow] = []
    longest = _LONGEST_EXACT if columns.is_exact else _LONGEST
    for number, row in numbered:
        if len(found) == columns.max_rows:
            raise Unreadable(f"has more than {columns.max_rows:,} rows")
        if max(map(len, row)) > longest:
            raise Unreadable(f"has a cell of more than {longest:,} characters, in row {number}")
        if any(row[len(names) :]) or any(cell for cell, name in zip(row, names, strict=False) if not name):
            faults.append(
                Fault(file, pointer("rows", number), "has a cell in a column that the first row does not name")
            )
        found.append((number, empty | dict(zip(names, row, strict=False))))
    return found


def _filled(rows: Iterable[Sequence[str]]) -> Iterator[tuple[int, Sequence[str]]]:
    """The rows with something in them, with their numbers."""
    for number, row in enumerate(rows, 1):
        if any(map(str.strip, row)):
            yield number, row


def _wrong_columns(file: str, number: int, names: Sequence[str], columns: TableColumns) -> Iterator[Fault]:
    known, code = columns.names, "unknown" if columns.is_exact else "invalid"
    for place, name in enumerate(names):
        if name and name not in known:
            near = get_close_matches(name, known, _MOST_NEAR) if len(name) <= _LONGEST_COMPARED else []
            hint = f"; did you mean {' or '.join(near)}?" if near else f": {', '.join(known)}"
            yield Fault(file, pointer("rows", number, name), f"is no column that is known here{hint}", code)
        elif name and name in names[:place]:
            yield Fault(file, pointer("rows", number, name), "is there twice")


def _column(cell: str) -> str:
    return cell.strip().strip('"').strip().casefold()


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)
