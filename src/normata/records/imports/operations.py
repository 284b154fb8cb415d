"""The operations that import the registers of all kinds from files."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from functools import partial
from io import StringIO
from typing import Any, Literal

from pydantic import Field

from normata.core.changes.source import Fault
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.documents.workbooks import MEDIA_TYPE
from normata.core.http.operation import BodyFormat, ChangeOperation, Operation
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Wire, wire_names
from normata.identity.organization_lookup import reached
from normata.records import examples
from normata.records.archive.operations import Mode
from normata.records.archive.queries import KINDS
from normata.records.imports.commands import ImportedRow, import_rows, import_writes
from normata.records.imports.planning import Plan, planned
from normata.records.imports.reading import MAX_BYTES, MAX_ROWS, read_csv, read_workbook, read_wrapped_csv
from normata.records.registers.cells import cell_of
from normata.records.registers.columns import Kind, register_columns


class RegisterQuery(OrganizationQuery):
    """The query of the import of a register."""

    mode: Mode = "all"


class CellFault(Wire):
    """What is wrong with a cell, or a row."""

    column: str | None = Field(description="The column; null if it is about the row.")
    code: str = Field(description="The code of the fault.")
    message: str = Field(description="What is wrong, for people.")


class RegisterRow(Wire):
    """The result for a row."""

    row: int = Field(description="The number of the row, as spreadsheets number it.")
    outcome: Literal["created", "updated", "unchanged", "refused"] = Field(description="What was done.")
    id: str | None = Field(description="The id of the record; null if there is none.")
    label: str = Field(description="The name of the record.")
    faults: list[CellFault] = Field(description="Why it was refused; empty unless it was.")


class RegisterResult(Wire):
    """The results for the rows."""

    created: int = Field(description="The number of records that were created.")
    updated: int = Field(description="The number of records that were changed.")
    unchanged: int = Field(description="The number of rows that change nothing.")
    refused: int = Field(description="The number of rows that were refused, which is 0 unless `mode` is `each`.")
    rows: list[RegisterRow] = Field(description="Each row, in the order of the file.")


def import_id(kind: Kind) -> str:
    """The id of the operation that imports the register of a kind."""
    return f"import{kind.plural().title().replace(' ', '')}"


def _operation(kind: Kind) -> ChangeOperation:
    title = wire_names(kind)[kind.title_column()]

    def prepare(unit: UnitOfWork, request: Request) -> Plan:
        return planned(unit, kind, reached(unit, request.query.organization_id), request.body)

    def work(unit: UnitOfWork, request: Request) -> Sequence[ImportedRow]:
        # There is no plan if that was refused, but the answer to the same key might have been stored. It was not.
        plan = request.plan or prepare(unit, request)
        return import_rows(unit, kind, plan, each_for_itself=request.query.mode == "each")

    example = _example(kind)
    return ChangeOperation(
        http_method="POST",
        path=f"/{kind.path}/import/",
        operation_id=import_id(kind),
        is_long=True,
        tag="Records",
        summary=f"Import {kind.plural()}",
        description=f"""\
Creates and changes {kind.plural()} from a file as `GET /{kind.path}/?format=csv` or `xlsx` answers it, with up to
{MAX_ROWS:,} rows, in one transaction. As JSON, the text of a CSV file is the member `table`. The first row names the
columns, by the names of the fields, in any order. A row is about the record with its `id`, else with its
`externalSource` and `externalId`, else the live one with its `slug`; with neither it is new. A column that is not there
stays as it is. An empty cell clears a field that may be null; others stay as they are, or get their default if the
record is new. References are ids, slugs, email addresses of members, identifiers or names. A row that changes nothing
writes nothing. With `mode` `all`, the default, one refused row refuses all, with the fault of every cell, such as
`rows/4/{title}`. With `each` the response has the outcome of each row; with `dryRun=true`, that is the preview.""",
        query=RegisterQuery,
        prepare=prepare,
        work=work,
        present=partial(_present, title),
        writes=import_writes(kind),
        body_formats={
            "application/json": BodyFormat(
                lambda content, _query: read_wrapped_csv(kind, content),
                {"type": "object", "properties": {"table": {"type": "string"}}, "required": ["table"]},
                {"table": example},
            ),
            "text/csv": BodyFormat(
                lambda content, _query: read_csv(kind, content), {"type": "string"}, example, (".csv",)
            ),
            MEDIA_TYPE: BodyFormat(
                lambda content, _query: read_workbook(kind, content),
                {"type": "string", "format": "binary"},
                endings=(".xlsx",),
            ),
        },
        body_required=True,
        body_limit=MAX_BYTES,
        body_example={"table": example},
        has_rules=True,
        answer=RegisterResult,
        answer_description="What has become of each row.",
        example={
            "created": 1,
            "updated": 0,
            "unchanged": 0,
            "refused": 0,
            "rows": [
                {
                    "row": 2,
                    "outcome": "created",
                    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
                    "label": str(examples.creation(kind)[title]),
                    "faults": [],
                }
            ],
        },
    )


def _example(kind: Kind) -> str:
    """A register with one new record."""
    sample = examples.creation(kind)
    shown = [one for one in register_columns(kind) if one.name in sample]
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(one.name for one in shown)
    writer.writerow(cell_of(one.sort, sample[one.name]) for one in shown)
    return text.getvalue()


def _present(title: str, rows: Sequence[ImportedRow]) -> dict[str, Any]:
    counts = Counter(one.result for one in rows)
    return {
        **{name: counts[name] for name in ("created", "updated", "unchanged", "refused")},
        "rows": [_row(title, one) for one in rows],
    }


def _row(title: str, one: ImportedRow) -> dict[str, Any]:
    before = one.row.before or {}
    return {
        "row": one.row.number,
        "outcome": one.result,
        "id": one.record_id,
        "label": str(one.row.values.get(title) or before.get(title) or one.row.cells.get(title, "")),
        "faults": [_fault(fault) for fault in one.faults],
    }


def _fault(fault: Fault) -> dict[str, Any]:
    _, _, _, *column = fault.place.split("/", 3)
    return {"column": column[0] if column else None, "code": fault.code, "message": fault.reason}


OPERATIONS: tuple[Operation, ...] = tuple(map(_operation, KINDS.values()))
