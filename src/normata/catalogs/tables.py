"""Catalogs in spreadsheets: CSV, or the first sheet of an XLSX workbook.

The first row names the columns, in any order. A row is a control. Rows are numbered as in spreadsheets, so that a fault
in ``/rows/4/parent`` is about the fourth row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from normata.catalogs.documents import ImportFormat, MediaType
from normata.core.changes.source import Fault, Row, pointer
from normata.core.documents.tables import TableColumns, csv_rows, has_column, table_rows
from normata.core.documents.workbooks import first_sheet, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COLUMNS = ("identifier", "name", "parent", "purpose", "description", "mandatory", "decomposed")

MAX_ROWS = 20_000
_MAX_PLACES = 20_000_000  # cells of a workbook, including empty ones: a cell far to the right makes a wide row
_TABLE = TableColumns(COLUMNS, ("identifier",), MAX_ROWS)
_WORDS = {"": False, "no": False, "false": False, "0": False, "yes": True, "true": True, "1": True, "x": True}

# Never change this: ids of table rows follow from it, so that a later import finds them again.
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
    return has_column(text, "identifier")


def read_csv(file: str, name: str, text: str, faults: list[Fault]) -> Sheet:
    """The table in a CSV text (RFC 4180), separated by comma, semicolon or tab. Raises Unreadable."""
    return Sheet(file, name, csv_rows(file, text, _TABLE, faults))


def read_workbook(file: str, name: str, content: bytes, faults: list[Fault]) -> Sheet:
    """The table in the first sheet of an XLSX workbook (ISO/IEC 29500). Raises Unreadable."""
    with first_sheet(content) as rows:
        return Sheet(file, name, table_rows(file, texts_of(rows, _MAX_PLACES, _text), _TABLE, faults))


def rows_of(sheet: Sheet, faults: list[Fault]) -> list[Row]:
    """The framework and the controls of a table. Faults are added to ``faults``."""
    framework_id = str(uuid5(_TABLES, sheet.name))
    ids = {cells["identifier"]: _control_id(framework_id, cells["identifier"]) for _, cells in sheet.rows}
    parents = {cells["parent"] for _, cells in sheet.rows}
    framework = {"id": framework_id, "identifier": sheet.name, "name": sheet.name, "isCentralized": True}
    rows = [Row("frameworks", sheet.file, "", framework)]
    for number, cells in sheet.rows:
        place, identifier, parent = pointer("rows", number), cells["identifier"], cells["parent"]
        mandatory, decomposed = (_WORDS.get(cells[name].casefold()) for name in ("mandatory", "decomposed"))
        if not identifier:
            faults.append(Fault(sheet.file, place + pointer("identifier"), "is required"))
            continue
        if parent and parent not in ids:
            reason = f"{parent!r} is the identifier of no row"
            faults.append(Fault(sheet.file, place + pointer("parent"), reason))
        if mandatory is None:
            faults.append(Fault(sheet.file, place + pointer("mandatory"), "must be yes or no"))
        if decomposed is None:
            faults.append(Fault(sheet.file, place + pointer("decomposed"), "must be yes or no"))
        elif decomposed and identifier not in parents:
            faults.append(Fault(sheet.file, place + pointer("decomposed"), "must be no: no row names it as its parent"))
        values = {
            "id": ids[identifier],
            "frameworkId": framework_id,
            "parentId": ids.get(parent) if parent else None,
            "identifier": identifier,
            "name": cells["name"],
            "purpose": cells["purpose"] or None,
            "description": cells["description"] or None,
            "isMandatory": bool(mandatory),
            "isDecomposed": bool(decomposed),
            "type": "CATEGORY" if identifier in parents and not decomposed else "CONTROL",
        }
        rows.append(Row("controls", sheet.file, place, values, _ORIGIN))
    return rows


_ORIGIN = {
    "id": "identifier",
    "frameworkId": "identifier",
    "parentId": "parent",
    "isMandatory": "mandatory",
    "isDecomposed": "decomposed",
    "type": "identifier",
}


def _control_id(framework_id: str, identifier: str) -> str:
    return str(uuid5(_TABLES, json.dumps([framework_id, identifier])))


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


CSV = ImportFormat(
    name="table with a column identifier (CSV)",
    recognizes=lambda document: is_csv(document.text),
    identity=lambda document: document.name,
    read=lambda document, _, faults: (
        rows_of(read_csv(document.file, document.name, document.text, faults), faults),
        [],
    ),
    media_types=(MediaType("text/csv", {"type": "string"}, (".csv",)),),
    example=f"{','.join(COLUMNS)}\n1,Berths,,,,,\n1.1,Berths are locked at night,1,,From ten to six.,yes,\n",
    needs_name=True,
)
_XLSX_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLSX = ImportFormat(
    name="table with a column identifier (XLSX)",
    recognizes=lambda document: is_workbook(document.content),
    identity=lambda document: document.name,
    read=lambda document, _, faults: (
        rows_of(read_workbook(document.file, document.name, document.content, faults), faults),
        [],
    ),
    media_types=(MediaType(_XLSX_MEDIA_TYPE, {"type": "string", "format": "binary"}, (".xlsx",)),),
    needs_name=True,
)
