"""Reading XLSX workbooks (ISO/IEC 29500), which are checked first, so that reading is quick and loses nothing.

A few kilobytes of a zip file can unpack to millions of cells, and the library holds a whole row in memory. The library
also skips rows and cells that are out of order.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from xml.parsers import expat

from normata.core.documents.files import Unreadable

LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384  # the limits of the file format

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

_MAX_PARTS = 1_000


class WorkbookLimits(NamedTuple):
    """The most bytes that all parts of a workbook may unpack to, and the most XML elements in them."""

    unpacked: int = 16 * 2**20
    elements: int = 1_000_000  # 20,000 rows with the columns of a catalog have half as many


_USUAL = WorkbookLimits()


_BAD_NUMBER = "has a row that is numbered neither as ISO/IEC 29500 says nor in order"


@contextmanager
def first_sheet(content: bytes, limits: WorkbookLimits = _USUAL) -> Iterator[Iterable[Sequence[Any]]]:
    """The rows of the first sheet of a workbook, each with the values of its cells; a formula has the value it had.

    Raises Unreadable, also while the rows are read.
    """
    _require_harmless(content, limits)
    from openpyxl import load_workbook  # noqa: PLC0415 - slow to import, and rarely needed

    try:
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        try:
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # the declared dimensions may omit cells
            yield sheet.iter_rows(max_row=LAST_ROW, values_only=True)
        finally:
            book.close()
    except Unreadable:
        raise
    except Exception as error:  # openpyxl raises many types of errors, from KeyError to those of XML
        raise Unreadable("is not an XLSX workbook that can be read") from error


def texts_of(rows: Iterable[Sequence[Any]], most_places: int, text: Callable[[Any], str]) -> Iterator[Sequence[str]]:
    """The cells of rows as texts, an empty sequence for a blank row; a cell far to the right makes a wide row.

    Raises Unreadable if there are more than ``most_places`` cells, including the empty ones to the left of others.
    """
    places = 0
    for row in rows:
        places += len(row)
        if places > most_places:
            raise Unreadable(f"has more than {most_places:,} cells, counting the empty ones to the left of others")
        is_blank = row.count(None) == len(row)  # a sheet may have a million blank rows, which must be cheap
        yield () if is_blank else [text(cell) for cell in row]


def _require_harmless(content: bytes, limits: WorkbookLimits) -> None:
    """Raise Unreadable for a workbook that takes too much to read, defines entities, or is out of order.

    Python never unpacks more than the sizes that a zip file declares. A workbook has no document type (ISO/IEC 29500-2,
    8.1.4).
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            if len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > limits.unpacked:
                raise Unreadable(f"unpacks to more than {limits.unpacked:,} bytes or {_MAX_PARTS:,} parts")
            elements = 0
            for part in parts:
                elements = _Part(elements, limits.elements).read(archive.read(part))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise Unreadable("is not an XLSX workbook that can be read") from error
    except zipfile.LargeZipFile as error:
        raise Unreadable("is too large for a workbook") from error


class _Part:
    """Reads one part, and stores only the position in it."""

    def __init__(self, elements: int, most: int) -> None:
        self._elements = elements  # including those of earlier parts
        self._most = most
        self._row = 0
        self._cells = 0  # in the present row
        self._column = (0, "")  # of the last cell; columns are ordered by length, then by letters
        self._is_open = False  # the last cell has a formula, of which no value has come

    def read(self, content: bytes) -> int:
        """The number of elements up to the end of this part. A part that is not XML, such as a picture, has none."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._element
        parser.StartDoctypeDeclHandler = self._document_type
        # If openpyxl needs this part, it stops at the same place and reports it.
        with suppress(expat.ExpatError, ValueError, LookupError):
            parser.Parse(content, True)
        self._close_formula()
        return self._elements

    def _close_formula(self) -> None:
        """Raise Unreadable if the last cell has a formula without a value: it would be taken for an empty cell."""
        if self._is_open:
            reason = "has a formula without a value: open it in a spreadsheet program, and save it there"
            raise Unreadable(f"{reason} (row {self._row})")

    def _document_type(self, *_: Any) -> None:
        raise Unreadable("is not an XLSX workbook: it has a document type")

    def _element(self, tag: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > self._most:
            raise Unreadable(f"has more than {self._most:,} XML elements: cells and what is in them")
        name = tag.rpartition(":")[2]
        if name in ("row", "c", "sheetData"):
            self._close_formula()
        if name in ("f", "v"):
            self._is_open = name == "f"
        elif name == "row":
            self._start_row(attributes.get("r"))
        elif name == "c":
            self._start_cell(attributes.get("r", ""))

    def _start_row(self, number: str | None) -> None:
        if number is not None and not (number.isdecimal() and len(number) < 10):
            raise Unreadable(_BAD_NUMBER)
        row = self._row + 1 if number is None else int(number)
        if not self._row < row <= LAST_ROW:
            raise Unreadable(_BAD_NUMBER)
        self._row, self._cells, self._column = row, 0, (0, "")

    def _start_cell(self, coordinate: str) -> None:
        self._cells += 1
        if self._cells > _LAST_COLUMN:
            raise Unreadable(f"has a row of more than {_LAST_COLUMN:,} cells, which is more than a sheet can have")
        letters = coordinate.rstrip("0123456789").replace("$", "").upper()
        column = (len(letters), letters)
        if letters and column <= self._column:
            raise Unreadable(f"has cells that are out of order, in row {self._row}")
        self._column = max(self._column, column)
