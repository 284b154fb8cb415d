"""Registers as files: all records of a list, in CSV (RFC 4180) or an Office Open XML workbook.

The file can be imported again, and then changes nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import BytesIO, TextIOWrapper
from itertools import islice
from typing import Any, BinaryIO

from sqlalchemy import bindparam, select
from xlsxwriter import Workbook

from normata.core.db.transaction import Transaction, batches
from normata.core.documents.workbooks import LAST_ROW
from normata.core.http import formats
from normata.core.http.formats import FormatName, ListFormats
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Request
from normata.core.schema.table import sql_table
from normata.external_ids.model import External, ExternalId
from normata.records.listing import every_record
from normata.records.registers.cells import cell_of, workbook_text
from normata.records.registers.columns import Kind, RegisterColumn, column_names, register_columns
from normata.records.registers.references import References

_AT_ONCE = 2_000  # records whose references are looked up together
_LONGEST_NAME = 31  # characters of the name of a sheet
_BYTE_ORDER_MARK = "\ufeff"  # without it, Excel does not read CSV as UTF-8
_CREATED = datetime(2000, 1, 1, tzinfo=UTC)  # the file format requires a date; a fixed one keeps files equal
_MIDNIGHT = "T00:00:00.000Z"
_FIRST_DAY, _LAST_DAY = "1900-03-01", "9999-12-31"  # before, spreadsheets have a day that never was

Wire = Mapping[str, Any]


def register_formats(kind: Kind) -> ListFormats:
    """The formats of the list of a kind."""

    def write(transaction: Transaction, request: Request, name: FormatName, file: BinaryIO) -> str:
        rows = exported(transaction, kind, request.organization_id, every_record(transaction, kind, request.query))
        (_write_csv if name == "csv" else _write_workbook)(kind, rows, file)
        return f"{kind.path}-{request.time[:10]}"

    def example(page: Mapping[str, Any]) -> bytes:
        file = BytesIO()
        names = column_names(kind)
        _write_csv(kind, ([one.get(name) for name in names] for one in page["items"]), file)
        return file.getvalue()

    return ListFormats(
        by_name={"json": formats.JSON, "csv": formats.csv(example), "xlsx": formats.xlsx(lambda _: b"")},
        write=write,
    )


def exported(
    transaction: Transaction, kind: Kind, organization_id: str, rows: Iterable[Any]
) -> Iterator[Sequence[Any]]:
    """The values of records for the columns of their register; those of references are texts that name their rows."""
    columns, references = register_columns(kind), References(transaction, organization_id)
    remaining = iter(rows)
    while batch := list(islice(remaining, _AT_ONCE)):
        texts = {one.name: _texts(references, one, batch) for one in columns if one.target}
        externals = first_external_ids(transaction, kind, organization_id, [row.id for row in batch])
        for row in batch:
            first, *others = (_value(one, getattr(row, one.column), texts) for one in columns)
            yield (first, *externals.get(row.id, (None, None)), *others)


def _texts(references: References, column: RegisterColumn, rows: Sequence[Any]) -> Mapping[str, str]:
    return references.texts(column.target, {value for row in rows if (value := getattr(row, column.column))})


def _value(column: RegisterColumn, value: Any, texts: Mapping[str, Mapping[str, str]]) -> Any:
    return texts[column.name][value] if column.target and value else value


def first_external_ids(
    transaction: Transaction, kind: Kind, organization_id: str, ids: Sequence[str]
) -> dict[str, External]:
    """The first external id of each record that has any, by source and id."""
    key = {"organization": organization_id, "kind": kind.path}
    found: dict[str, External] = {}
    for batch in batches(ids):
        for record_id, *external in transaction.rows(_EXTERNAL_IDS, {**key, "ids": batch}):
            found.setdefault(record_id, External(*external))
    return found


def _sorts(kind: Kind) -> list[RegisterColumn | None]:
    """The column with a field of each column of the register; null for those of the external id."""
    first, *others = register_columns(kind)
    return [first, None, None, *others]


# --- CSV


def _write_csv(kind: Kind, rows: Iterable[Sequence[Any]], file: BinaryIO) -> None:
    text = TextIOWrapper(file, "utf-8", newline="", write_through=False)
    text.write(_BYTE_ORDER_MARK)
    writer = csv.writer(text)
    writer.writerow(column_names(kind))
    sorts = [column.sort if column else "text" for column in _sorts(kind)]
    writer.writerows([cell_of(sort, value) for sort, value in zip(sorts, row, strict=True)] for row in rows)
    text.flush()
    text.detach()


# --- Workbooks


def _write_workbook(kind: Kind, rows: Iterable[Sequence[Any]], file: BinaryIO) -> None:
    """Write rows one by one, so that a long register needs little memory. Raises InvalidRequest for too many."""
    with Workbook(file, {"constant_memory": True}) as workbook:
        workbook.set_properties({"created": _CREATED})
        styles = {"title": workbook.add_format({"bold": True, "bottom": 1})}
        styles["text"] = workbook.add_format({"valign": "top"})
        styles["day"] = workbook.add_format({"valign": "top", "num_format": "yyyy-mm-dd"})
        columns, names = _sorts(kind), column_names(kind)
        sheet = workbook.add_worksheet(kind.plural()[:_LONGEST_NAME])
        for place, column in enumerate(columns):
            sheet.set_column(place, place, column.width if column else len(names[place]) + 2)
        for place, name in enumerate(names):
            sheet.write_string(0, place, name, styles["title"])
        last = 0
        for last, row in enumerate(rows, 1):
            if last == LAST_ROW:
                raise InvalidRequest.of([_too_many()])
            for place, (column, value) in enumerate(zip(columns, row, strict=True)):
                if value is not None:
                    _write_cell(sheet, (last, place), column, value, styles)
        sheet.freeze_panes(1, 1)
        sheet.autofilter(0, 0, last, len(names) - 1)


def _write_cell(
    sheet: Any, at: tuple[int, int], column: RegisterColumn | None, value: Any, styles: Mapping[str, Any]
) -> None:
    """Write a value as a number or a day where a spreadsheet has just this one, and else as a text."""
    sort = column.sort if column else "text"
    if sort in ("count", "number") and float(f"{value:.16G}") == value:
        sheet.write_number(*at, value, styles["text"])
    elif sort == "moment" and value.endswith(_MIDNIGHT) and _FIRST_DAY <= value[:10] <= _LAST_DAY:
        sheet.write_datetime(*at, datetime.fromisoformat(value[:10]), styles["day"])
    elif text := workbook_text(sort, value):
        sheet.write_string(*at, text, styles["text"])  # never `write`, which would guess a type from the text


def _too_many() -> FieldFault:
    message = f"has no room for more than {LAST_ROW - 1:,} records: ask for fewer, or for CSV"
    return FieldFault(in_="query", name="format", code="too_large", message=message, allowed=None)


_EXTERNAL = sql_table(ExternalId).c
_EXTERNAL_IDS = (
    select(_EXTERNAL.record_id, _EXTERNAL.source, _EXTERNAL.external_id)
    .where(
        _EXTERNAL.organization_id == bindparam("organization"),
        _EXTERNAL.kind == bindparam("kind"),
        _EXTERNAL.record_id.in_(bindparam("ids", expanding=True)),
    )
    .order_by(_EXTERNAL.source, _EXTERNAL.external_id)
)
