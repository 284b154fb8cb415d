"""The tables of the statement of applicability, made from its wire values: the same columns for every format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from normata.coverage.words import evidence_words, implemented
from normata.reports.sheets import EVIDENCE, facts, named, stale_reasons
from normata.reports.tables import Cell, Column, Sheet

TITLE = "Statement of applicability"
MANDATORY = "Mandatory requirements"

_Entry = Mapping[str, Any]
_Cells = tuple[Column, Callable[[_Entry], Cell]]

_OBJECTIONS = {
    "EXCLUDED_WITHOUT_JUSTIFICATION": "does not apply, and nothing says why",
    "INCLUDED_WITHOUT_JUSTIFICATION": "applies, and neither reasons nor a justification say why",
    "APPLICABLE_WITHOUT_STATUS": "applies, and is not assessed",
    "MANDATORY_EXCLUDED": "is mandatory, and excluded nevertheless",
    "CONFLICTING": "is assessed otherwise than matches or other assessments say",
}


def statement_sheets(report: Mapping[str, Any]) -> Sequence[Sheet]:
    """What is printed: the table with the head of the statement, and the mandatory requirements if there are some."""
    mandatory = report["mandatory"]["requirements"]
    return [table_sheet(report), *([_mandatory_sheet(report)] if mandatory else [])]


def statement_book(report: Mapping[str, Any]) -> Sequence[Sheet]:
    """All sheets of a workbook: what is printed, the objections, and the counts."""
    return [*statement_sheets(report), _objections_sheet(report), _counts_sheet(report)]


def table_sheet(report: Mapping[str, Any]) -> Sheet:
    """A row for each control of the table, below the head of the statement."""
    return _sheet(TITLE, report, report["controls"], head=tuple(head_facts(report)))


def head_facts(report: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    """The head of the statement: labels and values. Version and approver are empty if it is no version."""
    framework, baseline, approver = report["framework"], report["baseline"], report["approver"]
    if report["title"]:
        yield "Title", report["title"]
    yield "Organization", report["organization"]["name"]
    yield "Framework", f"{framework['name']}{', ' + baseline['name'] if baseline else ''}"
    if others := report["otherFrameworks"]:
        yield "Further controls of", ", ".join(one["name"] for one in others)
    yield "Scope", report["scope"]
    yield "Version", report["version"]
    yield "Date", report["date"]
    yield "Approver", approver and approver["name"]
    yield "Log of events", _proof(report["log"])


def _proof(log: Mapping[str, Any] | None) -> str:
    if log is None:
        return "not sound, so it proves nothing"
    since = f" up to {log['sealedAt']}" if log["sealedAt"] else ""
    return f"{log['origin']}: {log['size']} events sealed{since}, root {log['root']}"


def _mandatory_sheet(report: Mapping[str, Any]) -> Sheet:
    return _sheet(MANDATORY, report, report["mandatory"]["requirements"])


def _objections_sheet(report: Mapping[str, Any]) -> Sheet:
    """A row for each objection to a requirement, and for each reason why an assessment is stale."""
    columns = [*_named_columns(report), (Column("Objection", 70), lambda entry: entry["objection"])]
    found = [
        {**entry, "objection": objection}
        for entry in (*report["controls"], *report["mandatory"]["requirements"])
        for objection in (
            *(_OBJECTIONS.get(one, one) for one in entry["objections"]),
            *(f"its assessment is stale: {one}" for one in stale_reasons(entry).splitlines()),
        )
    ]
    return Sheet("Objections", *_table(columns, found), foot=_foot(report))


def _counts_sheet(report: Mapping[str, Any]) -> Sheet:
    return Sheet("Summary", (Column("What", 34), Column("Value", 40)), _counted(report), foot=_foot(report))


def _counted(report: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    yield from facts(report)
    if report["applicabilityPrefix"]:
        yield "Table of applicability", f"identifiers that begin with {report['applicabilityPrefix']}"
    others = report["otherRequirements"]
    for title, part in (("Mandatory", report["mandatory"]), ("Outside of the table", others)):
        if part is not None:
            yield f"{title}, requirements", part["counts"]["requirements"]
            for status, count in part["counts"]["effective"].items():
                yield f"{title}, effective {status.upper()}", count
    objections = report["objections"]
    yield "Excluded without justification", objections["excludedWithoutJustification"]
    yield "Included without justification", objections["includedWithoutJustification"]
    yield "Applicable without status", objections["applicableWithoutStatus"]
    yield "Mandatory and excluded", objections["mandatoryExcluded"]
    yield "Conflicting", objections["conflicting"]


# --- The columns


def _sheet(
    name: str, report: Mapping[str, Any], entries: Iterable[_Entry], head: Sequence[tuple[str, Cell]] = ()
) -> Sheet:
    return Sheet(name, *_table(_columns(report), entries), head=head, foot=_foot(report))


def _table(columns: Sequence[_Cells], entries: Iterable[_Entry]) -> tuple[list[Column], Iterator[tuple[Cell, ...]]]:
    """The columns, and the rows of entries."""
    return [column for column, _ in columns], (tuple(cell(entry) for _, cell in columns) for entry in entries)


def _columns(report: Mapping[str, Any]) -> Sequence[_Cells]:
    return [
        *_named_columns(report),
        (Column("Applicable", 13), lambda entry: entry["isApplicable"]),
        (Column("Reasons", 17), _reasons),
        (Column("Justification", 34), justification),
        (Column("Implemented", 17), implemented),
        (Column("Follows from matches", 30), _from_matches),
        (EVIDENCE, lambda entry: evidence_words(entry.get("evidence"))),
        (Column("Owner", 17), lambda entry: entry["owner"] and entry["owner"]["name"]),
        (Column("Note", 36), lambda entry: entry["note"]),
    ]


def _named_columns(report: Mapping[str, Any]) -> Sequence[_Cells]:
    """What a row is about; with its framework, if there are several."""
    frameworks = {one["id"]: one["identifier"] for one in (report["framework"], *report["otherFrameworks"])}
    several = [(Column("Framework", 15), lambda entry: frameworks[entry["frameworkId"]])]
    return [
        (Column("Identifier", 14), lambda entry: entry["identifier"]),
        (Column("Name", 30), lambda entry: entry["name"]),
        *(several if report["otherFrameworks"] else []),
    ]


def _reasons(entry: _Entry) -> str:
    return ", ".join(one.replace("_", " ").lower() for one in entry["reasons"])


def justification(entry: _Entry) -> str | None:
    """Why a requirement applies, or does not: in words, or by what excludes it."""
    baseline, group = entry["outsideOfBaseline"], entry["excludedBy"]
    words: str | None = entry["justification"]
    if entry["isApplicable"]:
        return words
    because = [f"Outside of the baseline {baseline['identifier']}"] if baseline and not words else []
    if group:
        because.append(f"Excluded with {group['identifier']} {group['name']}")
    return ". ".join([*because, *([words] if words else [])]) or None


def _from_matches(entry: _Entry) -> str:
    """What matches make of a requirement that its assessment does not."""
    if not entry["isIndirectlyCovered"]:
        return ""
    matches = (f"{named(one['matchedControl'])} ({one['matchLevel'].lower()} match)" for one in entry["coveredBy"])
    return "\n".join([f"{entry['effectiveCoverageStatus'].lower()}:", *matches])


def _foot(report: Mapping[str, Any]) -> str:
    return f"{report['organization']['name']}, {TITLE.lower()}, {report['framework']['identifier']}, {report['date']}"
