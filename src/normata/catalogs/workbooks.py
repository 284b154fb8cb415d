"""Checks of an XLSX workbook (ISO/IEC 29500) before it is read, so that reading is quick and loses nothing.

A few kilobytes of a zip file can unpack to millions of cells, and the library holds a whole row in memory. The library
also skips rows and cells that are out of order.
"""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from typing import Any
from xml.parsers import expat

from normata.core.documents.files import Unreadable

LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384  # the limits of the file format

_MAX_UNPACKED = 16 * 2**20  # bytes of all parts together
_MAX_PARTS = 1_000
_MAX_ELEMENTS = 1_000_000  # of all parts together; 20,000 rows with the known columns have half as many
_BAD_NUMBER = "has a row that is numbered neither as ISO/IEC 29500 says nor in order"


def require_harmless(content: bytes) -> None:
    """Raise Unreadable for a workbook that takes too much to read, defines entities, or is out of order.

    Python never unpacks more than the sizes that a zip file declares. A workbook has no document type (ISO/IEC 29500-2,
    8.1.4).
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            if len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > _MAX_UNPACKED:
                raise Unreadable(f"unpacks to more than {_MAX_UNPACKED:,} bytes or {_MAX_PARTS:,} parts")
            elements = 0
            for part in parts:
                elements = _Part(elements).read(archive.read(part))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise Unreadable("is not an XLSX workbook that can be read") from error
    except zipfile.LargeZipFile as error:
        raise Unreadable("is too large for a workbook") from error


class _Part:
    """Reads one part, and stores only the position in it."""

    def __init__(self, elements: int) -> None:
        self._elements = elements  # including those of earlier parts
        self._row = 0
        self._cells = 0  # in the present row
        self._column = (0, "")  # of the last cell; columns are ordered by length, then by letters

    def read(self, content: bytes) -> int:
        """The number of elements up to the end of this part. A part that is not XML, such as a picture, has none."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._element
        parser.StartDoctypeDeclHandler = self._document_type
        # If openpyxl needs this part, it stops at the same place and reports it.
        with suppress(expat.ExpatError, ValueError, LookupError):
            parser.Parse(content, True)
        return self._elements

    def _document_type(self, *_: Any) -> None:
        raise Unreadable("is not an XLSX workbook: it has a document type")

    def _element(self, tag: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > _MAX_ELEMENTS:
            raise Unreadable(f"has more than {_MAX_ELEMENTS:,} XML elements: cells and what is in them")
        name = tag.rpartition(":")[2]
        if name == "row":
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
