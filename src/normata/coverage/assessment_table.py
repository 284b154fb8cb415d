"""Assessments as a CSV table, with one line for each control."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from normata.core.changes.source import Fault, Row, pointer
from normata.core.schema.faults import describe
from normata.coverage.assessments import AssessmentFields, AssessmentInput

# The columns of the table, and their fields of an assessment.
_COLUMNS: Mapping[str, str] = {
    "status": "coverage_status",
    "gap": "coverage_gap",
    "applicable": "is_applicable",
    "justification": "justification",
    "reasons": "reasons",
    "owner": "owner_id",
    "note": "note",
    "review-by": "review_by",
}
_CLEARS = "-"  # a cell that removes the stored value
_NAMES = ("framework", "identifier", *_COLUMNS)
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_assessments(text: str, file: str) -> tuple[list[AssessmentInput], list[Fault]]:
    """The assessments in the text of a CSV file (RFC 4180), with commas or semicolons, and all faults of it.

    The first line names the columns: ``identifier``, and any of ``framework``, ``status``, ``gap``, ``applicable``,
    ``justification``, ``reasons``, ``owner``, ``note`` and ``review-by``, in any order. An empty cell leaves the stored
    value as it is, one with only a hyphen removes it. Reasons are tokens with spaces, commas, semicolons or bars
    between them. The places of faults are line numbers: the first line of a row with line breaks in its cells.
    """
    faults: list[Fault] = []
    assessments = list(_read(text, file, faults))
    if not assessments and not faults:
        faults.append(Fault(file, "", "has no assessments"))
    return assessments, faults


def _read(text: str, file: str, faults: list[Fault]) -> Iterator[AssessmentInput]:
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    # Strict, because an unclosed quote would otherwise take everything after it into its cell.
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        names = [name.strip().lower() for name in next(lines, [])]
        unknown = [name for name in names if name not in _NAMES]
        repeated = {name for name in names if names.count(name) > 1}
        if unknown or repeated or "identifier" not in names:
            faults.append(Fault(file, pointer(line), _about_columns(unknown, repeated)))
            return
        line = lines.line_num + 1
        for cells in lines:
            if any(cell.strip() for cell in cells):
                yield from _assessment(Row("controlCoverages", file, pointer(line), {}), names, cells, faults)
            line = lines.line_num + 1
    except csv.Error as error:
        faults.append(Fault(file, pointer(line), f"is no CSV: {error}"))


def _about_columns(unknown: list[str], repeated: set[str]) -> str:
    if unknown:
        shown = ", ".join(repr(name) for name in [*dict.fromkeys(unknown)][:5])
        return f"names columns that are not known here: {shown}; there are {', '.join(_NAMES)}"
    if repeated:
        return f"names a column twice: {', '.join(sorted(repeated))}"
    return f"must name the columns, with identifier among them: {', '.join(_NAMES)}"


def _assessment(source: Row, names: list[str], cells: list[str], faults: list[Fault]) -> Iterator[AssessmentInput]:
    if len(cells) > len(names):
        faults.append(source.fault(None, f"has {len(cells)} cells, but there are {len(names)} columns"))
        return
    cells_by_name = {name: cell.strip() for name, cell in zip(names, cells, strict=False) if cell.strip()}
    if "identifier" not in cells_by_name:
        faults.append(source.fault("identifier", "is required"))
        return
    values = {_COLUMNS[name]: _value(name, cell) for name, cell in cells_by_name.items() if name in _COLUMNS}
    try:
        fields = AssessmentFields.model_validate({to_camel(name): value for name, value in values.items()})
    except ValidationError as error:
        columns = {to_camel(field): column for column, field in _COLUMNS.items()}
        faults += [source.fault(columns[str(fault["loc"][0])], describe(fault)[1]) for fault in error.errors()]
        return
    yield AssessmentInput(
        source,
        fields.values_by_column(),
        identifier=cells_by_name["identifier"],
        framework=cells_by_name.get("framework"),
    )


def _value(column: str, cell: str) -> Any:
    """The value of a cell, in JSON's types."""
    if column == "reasons":
        return [] if cell == _CLEARS else [reason.upper() for reason in re.split(r"[\s,;|]+", cell) if reason]
    if cell == _CLEARS:
        return None
    if column == "status":
        return cell.upper()
    return _FLAGS.get(cell.lower(), cell) if column == "applicable" else cell
