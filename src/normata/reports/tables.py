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
from math import ceil
from typing import Any, TypeAlias

from xlsxwriter import Workbook

from normata.core.schema.text import harmless

Cell: TypeAlias = str | int | bool | None

# Some spreadsheet programs take such a text for a formula, or drop its first character.
_BYTE_ORDER_MARK = "\ufeff"  # without it, Excel does not read CSV as UTF-8
_LONGEST = 32_767  # characters that a cell of a workbook can have
_A4 = 9  # as the file format numbers sizes of paper
_LONGEST_FOOT = 100
_LINE, _HIGHEST = 15, 409  # points: a line of text, and the highest row that there can be
_CREATED = datetime(2000, 1, 1, tzinfo=UTC)  # the file format requires a date; a fixed one keeps files equal


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, and its width in characters."""

    title: str
    width: int


@dataclass(frozen=True)
class Sheet:
    """A table: every row has a cell for each column.

    ``head`` has facts that stand above it, each with a label; CSV leaves them out. ``foot`` is what is at the bottom of
    each printed page, beside its number.
    """

    name: str
    columns: Sequence[Column]
    rows: Iterable[Sequence[Cell]]
    head: Sequence[tuple[str, Cell]] = ()
    foot: str = ""


def as_csv(sheet: Sheet) -> bytes:
    """The sheet as CSV in UTF-8 with a byte-order mark; the first line has the titles."""
    file = StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow([column.title for column in sheet.columns])
    writer.writerows([harmless(shown(cell)) for cell in row] for row in sheet.rows)
    return (_BYTE_ORDER_MARK + file.getvalue()).encode()


def as_xlsx(sheets: Sequence[Sheet]) -> bytes:
    """A workbook of the sheets, each with its titles in the first row, or below the facts of its head.

    A text that is too long for a cell ends with "…". Printed, a sheet is as wide as a page in landscape, with the
    titles on each page, and its number.

    Rows are written one by one and not kept in memory, so that a long table does not need much of it.
    """
    file = BytesIO()
    with Workbook(file, {"constant_memory": True}) as workbook:
        workbook.set_properties({"created": _CREATED})
        title = workbook.add_format({"bold": True, "bottom": 1})
        text = workbook.add_format({"text_wrap": True, "valign": "top"})
        label = workbook.add_format({"bold": True, "valign": "top"})
        for sheet in sheets:
            worksheet = workbook.add_worksheet(sheet.name)
            for place, column in enumerate(sheet.columns):
                worksheet.set_column(place, place, column.width)
            for row, (name, cell) in enumerate(sheet.head):
                _write_fact(worksheet, row, sheet.columns, (name, label), (cell, text))
            first = len(sheet.head) + 1 if sheet.head else 0  # with an empty row between
            for place, column in enumerate(sheet.columns):
                worksheet.write_string(first, place, column.title, title)
            last = first
            for last, cells in enumerate(sheet.rows, first + 1):
                for place, cell in enumerate(cells):
                    _write(worksheet, last, place, cell, text)
            worksheet.freeze_panes(0 if sheet.head else 1, 1)  # a head would leave little room below it
            worksheet.autofilter(first, 0, last, len(sheet.columns) - 1)
            _lay_out_print(worksheet, sheet, first)
    return file.getvalue()


def _write_fact(
    worksheet: Any, row: int, columns: Sequence[Column], name: tuple[str, Any], value: tuple[Cell, Any]
) -> None:
    """Write a fact of a head: its label, and its value over all other columns, as high as its lines."""
    width = sum(column.width for column in columns[1:])
    lines = sum(max(1, ceil(len(line) / width)) for line in shown(value[0]).splitlines() or [""])
    worksheet.set_row(row, min(lines * _LINE, _HIGHEST))
    worksheet.write_string(row, 0, *name)
    worksheet.merge_range(row, 1, row, len(columns) - 1, "", value[1])
    _write(worksheet, row, 1, *value)


def _lay_out_print(worksheet: Any, sheet: Sheet, titles: int) -> None:
    worksheet.set_landscape()
    worksheet.set_paper(_A4)
    worksheet.fit_to_pages(1, 0)
    worksheet.repeat_rows(titles)
    # An ampersand would begin a code, and the whole has at most 255 characters.
    foot = sheet.foot[:_LONGEST_FOOT].replace("&", "&&")
    worksheet.set_footer(f"&L{foot}&R&P / &N")


def _write(worksheet: Any, row: int, place: int, cell: Cell, style: Any) -> None:
    if cell is None:
        return
    if isinstance(cell, int) and not isinstance(cell, bool):
        worksheet.write_number(row, place, cell, style)
        return
    text = shown(cell)
    # Never `write`, which would guess a type from the text.
    worksheet.write_string(row, place, text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…", style)


def shown(cell: Cell) -> str:
    """What a cell says, as a text."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return "" if cell is None else str(cell)
