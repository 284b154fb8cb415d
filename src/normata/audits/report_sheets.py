"""The sheets of the report of an audit, made from its wire values: the same for the workbook and on paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from normata.coverage.words import day
from normata.reports.tables import Cell, Column, Sheet

TITLE = "Audit report"
_RESULTS = {
    "NONCONFORMING": "nonconforming",
    "OBSERVATION": "observation",
    "CONFORMING": "conforming",
    "NOT_APPLICABLE": "not applicable",
    "NOT_CHECKED": "not checked",
}
_COUNTED = {
    "nonconforming": "Nonconforming",
    "observation": "Observation",
    "conforming": "Conforming",
    "notApplicable": "Not applicable",
    "notChecked": "Not checked",
}
_Report = Mapping[str, Any]


def report_sheets(report: _Report) -> Sequence[Sheet]:
    """The findings below the head of the report, then what was checked, what was not, and what else is in scope."""
    foot = f"{report['organization']['name']}, {TITLE.lower()}, {report['audit']['name']}"
    sheets = [_findings_sheet(report, foot), _rows_sheet("Checked", report["rows"], foot)]
    if report["notChecked"]:
        sheets.append(_rows_sheet("Not checked", report["notChecked"], foot))
    if report["frame"]:
        columns = (Column("Kind", 20), Column("Number", 12), Column("Name", 60), Column("Archived", 10))
        rows = [(one["kind"], one["identifier"], one["label"], not one["isLive"]) for one in report["frame"]]
        sheets.append(Sheet("Also in scope", columns, rows, foot=foot))
    return sheets


def rows_of(report: _Report) -> int:
    """How many rows the sheets have."""
    return sum(len(report[name]) for name in ("findings", "rows", "notChecked", "frame"))


def _head(report: _Report) -> Iterator[tuple[str, Cell]]:
    audit, framework = report["audit"], report["framework"]
    yield "Audit", audit["name"] + ("" if audit["isLive"] else " (archived)")
    yield "Type", _words(audit["type"])
    yield "Organization", report["organization"]["name"]
    yield "Auditor", audit["auditor"]
    yield "Dates", " to ".join(day(one) for one in (audit["started"], audit["ended"]) if one)
    yield "Framework", framework and framework["name"]
    yield "Criteria", ", ".join(report["criteria"])
    yield "Owner", ", ".join(audit["owners"])
    yield "Notes", audit["notes"]
    yield "Results", ", ".join(f"{words}: {report['counts'][name]}" for name, words in _COUNTED.items())
    counts = (
        f"{_words(one['type'])}: {one['findings']}, {one['verified']} verified" for one in report["findingCounts"]
    )
    yield "Findings", "; ".join(counts) or "none"


def _findings_sheet(report: _Report, foot: str) -> Sheet:
    columns = (
        Column("Type", 18),
        Column("Finding", 30),
        Column("About", 26),
        Column("What was found", 40),
        Column("Cause", 30),
        Column("Correction and measures", 36),
        Column("Owner and deadline", 20),
        Column("Status", 14),
        Column("Verified", 30),
    )
    rows = [
        (
            _words(one["type"]),
            _lines(one["identifier"], one["name"], None if one["isLive"] else "archived"),
            one["control"],
            one["findings"],
            one["causes"],
            _lines(one["correction"], one["measures"]),
            _lines(", ".join(one["owners"]), one["deadline"] and day(one["deadline"])),
            _words(one["status"]),
            one["verifiedAt"] and _lines(f"{day(one['verifiedAt'])}, {one['verifiedByName']}", one["verificationNote"]),
        )
        for one in report["findings"]
    ]
    return Sheet("Findings", columns, rows, head=tuple(_head(report)), foot=foot)


def _rows_sheet(name: str, rows: Iterable[Mapping[str, Any]], foot: str) -> Sheet:
    columns = (
        Column("Framework", 16),
        Column("Identifier", 12),
        Column("Checked", 40),
        Column("Result", 16),
        Column("Note", 50),
        Column("Checked by", 24),
        Column("Findings", 34),
    )
    return Sheet(name, columns, [_row(one) for one in rows], foot=foot)


def _row(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    about, group = row["about"], row["group"]
    state = None if about["isLive"] else "archived or not adopted"
    return (
        group["framework"] if group else "Policy",
        about["identifier"],
        _lines(about["label"], state, None if row["isInScope"] else "no longer in scope"),
        _RESULTS[row["status"]],
        row["note"],
        row["checkedAt"] and _lines(row["checkedByName"], day(row["checkedAt"])),
        _lines(*(one["name"] + ("" if one["isLive"] else " (archived)") for one in row["findings"])),
    )


def _lines(*parts: str | None) -> str:
    return "\n".join(part for part in parts if part)


def _words(token: str) -> str:
    return token.replace("_", " ").lower()
