"""Catalogs that people keep in a spreadsheet: CSV, or the first sheet of an XLSX workbook.

The first row names the columns, in any order. A row is a control. Rows are counted as spreadsheets count them, so that
a fault in ``/rows/4/parent`` is about the fourth row.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from normata.changes.source import Fault, Row, pointer
from normata.frameworks.catalogs.files import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

COLUMNS = ("identifier", "name", "parent", "purpose", "description", "mandatory")

MOST_ROWS = 20_000
_MOST_COLUMNS = 50
_MOST_UNPACKED = 64 * 2**20  # bytes of a workbook, which is a zip file
_MOST_PARTS = 1_000
_DELIMITERS = (",", ";", "\t")
_WORDS = {"": False, "no": False, "false": False, "0": False, "yes": True, "true": True, "1": True, "x": True}

# Never change this: the ids of what tables have follow from it, and a table imported again must find its own.
_TABLES = UUID("a4f3c5de-52a0-5d07-8f3f-7d0f6f1a9c11")


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of a table by their numbers, each with its cells by column; ``name`` is that of the framework."""

    file: str
    name: str
    rows: Sequence[tuple[int, Mapping[str, str]]]


def is_workbook(content: bytes) -> bool:
    """Whether this is a zip file, as every XLSX workbook is."""
    return content.startswith(b"PK\x03\x04")


def is_csv(text: str) -> bool:
    """Whether the first line names the columns of a table."""
    line = text.lstrip().partition("\n")[0]
    return "identifier" in map(_column, line.split(_delimiter(line)))


def read_csv(file: str, name: str, text: str, faults: list[Fault]) -> Sheet:
    """The table in a CSV text (RFC 4180), separated by comma, semicolon or tab. Raises Unreadable."""
    delimiter = _delimiter(text.lstrip().partition("\n")[0])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return _sheet(file, name, islice(reader, MOST_ROWS + 2), faults)
    except csv.Error as error:
        raise Unreadable(f"is not CSV: line {reader.line_num}: {error}") from error


def read_workbook(file: str, name: str, content: bytes, faults: list[Fault]) -> Sheet:
    """The table in the first sheet of an XLSX workbook (ISO/IEC 29500). Raises Unreadable."""
    _require_harmless(content)
    from openpyxl import load_workbook  # noqa: PLC0415 - it takes a while, and few need it

    try:
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        try:
            rows = book.worksheets[0].iter_rows(max_row=MOST_ROWS + 2, max_col=_MOST_COLUMNS + 1, values_only=True)
            return _sheet(file, name, (["" if cell is None else str(cell) for cell in row] for row in rows), faults)
        finally:
            book.close()
    except Unreadable:
        raise
    except Exception as error:  # it raises whatever its parts raise, from KeyError to XML's own
        raise Unreadable("is not an XLSX workbook that can be read") from error


def rows_of(sheet: Sheet, faults: list[Fault]) -> list[Row]:
    """The framework and the controls of a table. What is wrong with it goes to ``faults``."""
    framework_id = str(uuid5(_TABLES, sheet.name))
    ids = {cells["identifier"]: _control_id(framework_id, cells["identifier"]) for _, cells in sheet.rows}
    parents = {cells["parent"] for _, cells in sheet.rows}
    framework = {"id": framework_id, "identifier": sheet.name, "name": sheet.name, "isCentralized": True}
    rows = [Row("frameworks", sheet.file, "", framework)]
    for number, cells in sheet.rows:
        place, identifier, parent = pointer("rows", number), cells["identifier"], cells["parent"]
        mandatory = _WORDS.get(cells["mandatory"].casefold())
        if not identifier:
            faults.append(Fault(sheet.file, place + pointer("identifier"), "is required"))
            continue
        if parent and parent not in ids:
            reason = f"{parent!r} is the identifier of no row"
            faults.append(Fault(sheet.file, place + pointer("parent"), reason))
        if mandatory is None:
            faults.append(Fault(sheet.file, place + pointer("mandatory"), "must be yes or no"))
        values = {
            "id": ids[identifier],
            "frameworkId": framework_id,
            "parentId": ids.get(parent) if parent else None,
            "identifier": identifier,
            "name": cells["name"],
            "purpose": cells["purpose"] or None,
            "description": cells["description"] or None,
            "isMandatory": bool(mandatory),
            "type": "CATEGORY" if identifier in parents else "CONTROL",
        }
        rows.append(Row("controls", sheet.file, place, values, _ORIGIN))
    return rows


_ORIGIN = {
    "id": "identifier",
    "frameworkId": "identifier",
    "parentId": "parent",
    "isMandatory": "mandatory",
    "type": "identifier",
}


def _control_id(framework_id: str, identifier: str) -> str:
    return str(uuid5(_TABLES, json.dumps([framework_id, identifier])))


def _sheet(file: str, name: str, rows: Iterable[Sequence[str]], faults: list[Fault]) -> Sheet:
    """Raises Unreadable where there is no row that names the columns, or there are too many rows."""
    numbered = ((number, [cell.strip() for cell in row]) for number, row in enumerate(rows, 1))
    filled = ((number, row) for number, row in numbered if any(row))
    number, header = next(filled, (1, []))
    if any(header[_MOST_COLUMNS:]):
        raise Unreadable(f"has more than {_MOST_COLUMNS} columns")
    columns = [_column(cell) for cell in header]
    if "identifier" not in columns:
        raise Unreadable(
            f"is no table: its first row must name the columns, identifier at least ({', '.join(COLUMNS)})"
        )
    faults += _wrong_columns(file, number, columns)
    found = []
    for number, row in filled:
        found.append((number, dict.fromkeys(COLUMNS, "") | dict(zip(columns, row, strict=False))))
    if number > MOST_ROWS + 1:
        raise Unreadable(f"has more than {MOST_ROWS:,} rows")
    return Sheet(file, name, found)


def _wrong_columns(file: str, number: int, columns: Sequence[str]) -> Iterator[Fault]:
    known = ", ".join(COLUMNS)
    for place, column in enumerate(columns):
        if column and column not in COLUMNS:
            yield Fault(file, pointer("rows", number, column), f"is no column that is known here: {known}")
        elif column and column in columns[:place]:
            yield Fault(file, pointer("rows", number, column), "is there twice")


def _column(cell: str) -> str:
    return cell.strip().strip('"').strip().casefold()


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _require_harmless(content: bytes) -> None:
    """Raise Unreadable for a workbook that unpacks to more than a machine should hold, or defines entities.

    What a zip file declares is what Python unpacks at most. A workbook has no document type (ISO/IEC 29500-2, 8.1.4).
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            if len(parts) > _MOST_PARTS or sum(part.file_size for part in parts) > _MOST_UNPACKED:
                raise Unreadable(f"unpacks to more than {_MOST_UNPACKED:,} bytes or {_MOST_PARTS:,} parts")
            for part in parts:
                beginning = archive.read(part)[:100_000].replace(b"\0", b"")  # UTF-16 has them
                if b"<!DOCTYPE" in beginning:
                    raise Unreadable("is not an XLSX workbook: it has a document type")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise Unreadable("is not an XLSX workbook that can be read") from error
    except zipfile.LargeZipFile as error:
        raise Unreadable("is too large for a workbook") from error
