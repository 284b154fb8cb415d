"""Tables lose nothing that is in them, and what is in them takes little to read."""

from __future__ import annotations

import io
import time
import zipfile
from typing import Any

import openpyxl
import pytest

from normata.catalogs.tables import Sheet, read_csv, read_workbook
from normata.core.changes.source import Fault
from normata.core.documents.files import Unreadable

LOST = "has a cell in a column that the first row does not name"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
BLANK_ROWS = 20_010  # more than the rows that a table may have


def packed(*rows: tuple[Any, ...], sheet: str | None = None) -> bytes:
    """A workbook of these rows, or with this XML in place of its rows."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    made, file = io.BytesIO(), io.BytesIO()
    book.save(made)
    if sheet is None:
        return made.getvalue()
    xml = f'<worksheet xmlns="{MAIN}"><sheetData>{sheet}</sheetData></worksheet>'
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, xml if name == "xl/worksheets/sheet1.xml" else old.read(name))
    return file.getvalue()


def text_cell(coordinate: str, text: str) -> str:
    return f'<c r="{coordinate}" t="inlineStr"><is><t>{text}</t></is></c>'


def from_csv(text: str) -> tuple[Sheet, list[tuple[str, str]]]:
    faults: list[Fault] = []
    sheet = read_csv("body", "Dock Rules", text, faults)
    return sheet, [(fault.place, fault.reason) for fault in faults]


def from_workbook(content: bytes) -> tuple[Sheet, list[tuple[str, str]]]:
    faults: list[Fault] = []
    sheet = read_workbook("body", "Dock Rules", content, faults)
    return sheet, [(fault.place, fault.reason) for fault in faults]


@pytest.mark.parametrize(
    "rows",
    [
        [("identifier", "name"), ("1", "a", "b", "c")],
        [("identifier", "", "name"), ("1", "a", "b")],
        [("identifier", "name"), ("1", "a", *[""] * 60, "far")],
    ],
    ids=["beyond the header", "under an empty heading", "far beyond"],
)
def test_a_cell_in_no_column_is_told(rows: list[tuple[str, ...]]) -> None:
    text = "".join(",".join(row) + "\n" for row in rows)
    assert from_csv(text)[1] == [("/rows/2", LOST)]
    assert from_workbook(packed(*(tuple(cell or None for cell in row) for row in rows)))[1] == [("/rows/2", LOST)]


def test_blank_cells_in_no_column_are_no_matter() -> None:
    assert from_csv("identifier,name,,\n1,a,, ,,\n")[1] == []
    assert from_workbook(packed(("identifier", "name", None), ("1", "a", None, " ")))[1] == []


def test_blank_rows_do_not_count() -> None:
    sheet, _ = from_csv("identifier\n" + "\n" * BLANK_ROWS + "1\n")
    assert [number for number, _ in sheet.rows] == [BLANK_ROWS + 2]
    sheet, _ = from_workbook(packed(("identifier",), *[()] * BLANK_ROWS, ("1",)))
    assert [number for number, _ in sheet.rows] == [BLANK_ROWS + 2]


def test_rows_after_a_blank_one_are_told_as_too_many() -> None:
    filled = [(str(number),) for number in range(20_001)]
    with pytest.raises(Unreadable, match="has more than 20,000 rows"):
        from_csv("identifier\n" + "".join(f"{row[0]}\n" for row in filled[:20_000]) + "\n\n" + "last\n")
    with pytest.raises(Unreadable, match="has more than 20,000 rows"):
        from_workbook(packed(("identifier",), *filled[:20_000], (), (), ("last",)))


def test_what_a_workbook_declares_leaves_nothing_out() -> None:
    sheet = f'<row r="1">{text_cell("A1", "identifier")}</row><row r="2">{text_cell("A2", "1")}</row>'
    content = packed(sheet=f'</sheetData><dimension ref="A1:A1"/><sheetData>{sheet}')
    assert [number for number, _ in from_workbook(content)[0].rows] == [2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("sheet", "reason"),
    [
        ("<row>" + "<c/>" * 4_000_000 + "</row>", "has a row of more than 16,384 cells"),
        ("<row>" + "<c/>" * 14_000_000 + "</row>", "unpacks to more than 16,777,216 bytes"),
        ("<row/>" * 1_000_001, "has more than 1,000,000 XML elements"),
        (('<row><c r="ZZZ1"/></row>') * 400_000, "has more than 20,000,000 cells"),
        (f'<row r="{10**15}">{text_cell("A1", "identifier")}</row>', "has a row that is numbered"),
        (f'<row r="2">{text_cell("A2", "identifier")}</row><row r="1"/>', "has a row that is numbered"),
        (f'<row r="1">{text_cell("C1", "x")}{text_cell("A1", "identifier")}</row>', "cells that are out of order"),
    ],
    ids=["cells", "bytes", "elements", "width", "far row", "rows out of order", "cells out of order"],
)
def test_what_takes_too_long_or_would_be_lost_is_refused_at_once(sheet: str, reason: str) -> None:
    content = packed(sheet=sheet)
    before = time.process_time()
    with pytest.raises(Unreadable, match=reason):
        from_workbook(content)
    assert time.process_time() - before < 10


def test_a_document_type_is_found_wherever_it_is() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", f"<!--{' ' * 200_000}--><!DOCTYPE x [<!ENTITY a 'aaaa'>]><x/>")
    with pytest.raises(Unreadable, match="document type"):
        from_workbook(file.getvalue())
