"""Reports as tables: CSV (RFC 4180) and Office Open XML workbooks, in which a spreadsheet program executes nothing.

A text that begins like a formula stays a text. In a workbook the cell has a type. CSV has no types, so such a text gets
an apostrophe in front, as OWASP recommends against CSV injection. The same table gives the same bytes: no file has the
time of its creation.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO, StringIO
from typing import Any, TypeAlias

from xlsxwriter import Workbook

from normata.core.schema.text import harmless

Cell: TypeAlias = str | int | bool | None

# Some spreadsheet programs take such a text for a formula, or drop its first character.
_BYTE_ORDER_MARK = "\ufeff"  # without it, Excel does not read CSV as UTF-8
_LONGEST = 32_767  # characters that a cell of a workbook can have
_CREATED = datetime(2000, 1, 1, tzinfo=UTC)  # the file format requires a date; a fixed one keeps files equal


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, and its width in characters."""

    title: str
    width: int


@dataclass(frozen=True)
class Sheet:
    """A table: every row has a cell for each column."""

    name: str
    columns: Sequence[Column]
    rows: Iterable[Sequence[Cell]]


def as_csv(sheet: Sheet) -> bytes:
    """The sheet as CSV in UTF-8 with a byte-order mark; the first line has the titles."""
    file = StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow([column.title for column in sheet.columns])
    writer.writerows([harmless(_shown(cell)) for cell in row] for row in sheet.rows)
    return (_BYTE_ORDER_MARK + file.getvalue()).encode()


def as_xlsx(sheets: Sequence[Sheet]) -> bytes:
    """A workbook of the sheets, each with its titles in the first row.

    A text that is too long for a cell ends with "…".

    Rows are written one by one and not kept in memory, so that a long table does not need much of it.
    """
    file = BytesIO()
    with Workbook(file, {"constant_memory": True}) as workbook:
        workbook.set_properties({"created": _CREATED})
        title = workbook.add_format({"bold": True, "bottom": 1})
        text = workbook.add_format({"text_wrap": True, "valign": "top"})
        for sheet in sheets:
            worksheet = workbook.add_worksheet(sheet.name)
            worksheet.freeze_panes(1, 1)
            for place, column in enumerate(sheet.columns):
                worksheet.set_column(place, place, column.width)
            for place, column in enumerate(sheet.columns):
                worksheet.write_string(0, place, column.title, title)
            last = 0
            for last, row in enumerate(sheet.rows, 1):
                for place, cell in enumerate(row):
                    _write(worksheet, last, place, cell, text)
            worksheet.autofilter(0, 0, last, len(sheet.columns) - 1)
    return file.getvalue()


def _write(worksheet: Any, row: int, place: int, cell: Cell, style: Any) -> None:
    if cell is None:
        return
    if isinstance(cell, int) and not isinstance(cell, bool):
        worksheet.write_number(row, place, cell, style)
        return
    text = _shown(cell)
    # Never `write`, which would guess a type from the text.
    worksheet.write_string(row, place, text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…", style)


def _shown(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return "" if cell is None else str(cell)
