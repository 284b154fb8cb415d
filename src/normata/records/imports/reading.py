"""Reading the files with registers that are imported: CSV, and the first sheet of a workbook.

Every cell becomes a text, as an export writes it in CSV.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from normata.core.changes.source import Fault, pointer
from normata.core.changes.writing import BODY
from normata.core.documents.files import Unreadable
from normata.core.documents.tables import NumberedRow, TableColumns, csv_rows, table_rows, table_text
from normata.core.documents.workbooks import WorkbookLimits, first_sheet, texts_of
from normata.records.registers.columns import Kind, column_names

MAX_ROWS = 10_000
MAX_BYTES = 16 * 2**20
_MAX_PLACES = 5_000_000  # cells of a workbook, with the empty ones to the left of others
_LIMITS = WorkbookLimits(unpacked=64 * 2**20, elements=3_000_000)  # each cell has three elements
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # a character that XML cannot have (ISO/IEC 29500-1, 22.9.2.19)


class RegisterTable(NamedTuple):
    """The rows of a register with their numbers, each with its cells by column, and what is wrong with the file."""

    rows: Sequence[NumberedRow]
    faults: Sequence[Fault]


def read_csv(kind: Kind, content: bytes) -> RegisterTable:
    """The register in a CSV file (RFC 4180), separated by comma, semicolon or tab."""
    faults: list[Fault] = []
    if content.startswith(b"PK\x03\x04"):
        return _unreadable(Unreadable("is not CSV, but a packed file: a workbook has the ending .xlsx"))
    try:
        rows = csv_rows(BODY, table_text(content), _columns(kind), faults)
    except Unreadable as error:
        return _unreadable(error)
    return _checked(rows, faults)


def read_wrapped_csv(kind: Kind, content: bytes) -> RegisterTable:
    """The same of the text ``table`` of a JSON object."""
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return _unreadable(Unreadable("is not valid JSON"))
    if not isinstance(found, dict):
        return _unreadable(Unreadable("must be a JSON object"))
    table = found.get("table")
    if not isinstance(table, str):
        required = Fault(BODY, pointer("table"), "is required, and must be a string", "required")
        return RegisterTable((), (required,))
    return read_csv(kind, table.encode(errors="replace"))


def read_workbook(kind: Kind, content: bytes) -> RegisterTable:
    """The register in the first sheet of a workbook."""
    faults: list[Fault] = []
    try:
        with first_sheet(content, _LIMITS) as rows:
            found = table_rows(BODY, texts_of(rows, _MAX_PLACES, _text), _columns(kind), faults)
    except Unreadable as error:
        return _unreadable(error)
    return _checked(found, faults)


def _columns(kind: Kind) -> TableColumns:
    return TableColumns(column_names(kind), (), MAX_ROWS, is_exact=True)


def _checked(rows: Sequence[NumberedRow], faults: list[Fault]) -> RegisterTable:
    if not rows and not faults:
        faults.append(Fault(BODY, "", "has no rows below the names of the columns", "required"))
    for number, cells in rows:
        for name, cell in cells.items():
            if "\0" in cell:  # which no database would look for
                faults.append(Fault(BODY, place_of(number, name), "must not have null characters"))
    return RegisterTable(rows, faults)


def _unreadable(error: Unreadable) -> RegisterTable:
    return RegisterTable((), (Fault(BODY, "", str(error), "malformed"),))


def _text(cell: Any) -> str:
    text = str(cell)
    match cell:
        case None:
            text = ""
        case str():
            text = _ESCAPED.sub(_unescaped, cell) if "_x" in cell else cell
        case bool():
            text = "yes" if cell else "no"
        case float() if cell.is_integer():
            text = str(int(cell))
        case datetime():
            is_day = (cell.hour, cell.minute, cell.second, cell.microsecond) == (0, 0, 0, 0)
            text = cell.date().isoformat() if is_day else f"{cell.isoformat(timespec='milliseconds')}Z"
    return text


def _unescaped(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return found[0] if "\ud800" <= character <= "\udfff" else character  # half of one is none


def place_of(number: int, column: str | None = None) -> str:
    """The place of a row, or of a cell in it."""
    return pointer("rows", number) if column is None else pointer("rows", number, column)
