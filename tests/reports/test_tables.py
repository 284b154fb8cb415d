"""Tables as files: what a cell says arrives as it was said, and nothing of it is executed."""

from __future__ import annotations

import csv
from io import BytesIO, StringIO
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook

from normata.reports.tables import Cell, Column, Sheet, as_csv, as_xlsx

DANGEROUS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    '=HYPERLINK("http://x.example","y")',
    "=cmd|' /C calc'!A0",
    "\uff1d1+1",
    "\uff0b1",
    "\uff0d1",
    "\uff20SUM(A1)",
]
PLAIN = ["", "a", "1", "1,5", "00012", "2026-11-22", "TRUE", "{=1}", " =1", "http://x.example", "mailto:a@x.example"]
TRICKY = ['say "no"', "a,b;c", "two\nlines", "Größe 水 🔒", "_x0041_", "<b>&amp;", "'quoted", "a\x07b"]


def sheet(*rows: tuple[Cell, ...], name: str = "Table") -> Sheet:
    """A table with as many columns as its rows have cells."""
    width = len(rows[0]) if rows else 1
    return Sheet(name, [Column(f"Column {number}", 10) for number in range(width)], rows)


def read_csv(content: bytes) -> list[list[str]]:
    """The rows of a CSV file, as any reader of RFC 4180 has them."""
    assert content.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(StringIO(content.decode("utf-8-sig"), newline="")))


def read_xlsx(content: bytes, place: int = 0) -> list[list[Any]]:
    """The cells of a sheet; each must be what it is by its type alone, and none a formula."""
    rows = list(load_workbook(BytesIO(content)).worksheets[place].iter_rows())
    assert not [cell for row in rows for cell in row if cell.data_type == "f" or cell.hyperlink]
    return [[cell.value for cell in row] for row in rows]


@pytest.mark.parametrize("text", DANGEROUS)
def test_a_formula_stays_a_text(text: str) -> None:
    """In CSV with an apostrophe in front; in a workbook exactly as it is."""
    assert read_csv(as_csv(sheet((text, "b"))))[1] == [f"'{text}", "b"]
    [cell, _] = read_xlsx(as_xlsx([sheet((text, "b"))]))[1]
    assert cell.replace("_x000D_", "\r") == text


@pytest.mark.parametrize("text", [*PLAIN, *TRICKY])
def test_other_texts_arrive_as_they_are(text: str) -> None:
    assert read_csv(as_csv(sheet((text, "b"))))[1] == [text, "b"]
    [cell, _] = read_xlsx(as_xlsx([sheet((text, "b"))]))[1]
    assert (cell or "").replace("_x0007_", "\x07").replace("_x005F_", "_") == text


def test_other_cells_are_what_they_are() -> None:
    content = sheet((True, False, 7, None, "end"))
    assert read_csv(as_csv(content))[1] == ["yes", "no", "7", "", "end"]
    assert read_xlsx(as_xlsx([content]))[1] == ["yes", "no", 7, None, "end"]


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.integers(0, 9)), max_size=5))
def test_csv_can_be_read_back_and_no_cell_begins_a_formula(rows: list[tuple[str, int]]) -> None:
    found = read_csv(as_csv(sheet(*rows)))[1:]
    assert len(found) == len(rows)
    for (text, number), (cell, last) in zip(rows, found, strict=True):
        assert cell in {text, f"'{text}"}
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
        assert last == str(number)


def test_lines_end_as_rfc_4180_has_it() -> None:
    assert as_csv(sheet(("a", "b"))) == b"\xef\xbb\xbfColumn 0,Column 1\r\na,b\r\n"


def test_what_is_too_long_for_a_cell_of_a_workbook_is_cut_and_says_so() -> None:
    """CSV has all of it."""
    long = "x" * 40_000
    [[cell]] = read_xlsx(as_xlsx([sheet((long,))]))[1:]
    assert (len(cell), cell[-2:]) == (32_767, "x…")
    assert read_csv(as_csv(sheet((long,))))[1] == [long]


def test_a_table_without_rows_has_its_titles() -> None:
    assert read_csv(as_csv(sheet())) == [["Column 0"]]
    assert read_xlsx(as_xlsx([sheet()])) == [["Column 0"]]


def test_a_workbook_has_no_time_in_it() -> None:
    """So that the same table is the same bytes, whenever and wherever it is made."""
    content = as_xlsx([sheet(("a",)), sheet(("b",), name="Other")])
    assert as_xlsx([sheet(("a",)), sheet(("b",), name="Other")]) == content
    with ZipFile(BytesIO(content)) as packed:
        assert {one.date_time[:3] for one in packed.infolist()} == {(1980, 1, 31)}
        properties = packed.read("docProps/core.xml").decode()
    assert properties.count("2000-01-01T00:00:00Z") == 2
    assert read_xlsx(content, 1)[1] == ["b"]
