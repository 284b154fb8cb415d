"""The content of the reports' tables, made from the reports' wire values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from normata.coverage.words import STALE_WORDS, day, evidence_words
from normata.reports.tables import Cell, Column, Sheet

_CONTROL = (Column("Identifier", 14), Column("Name", 40), Column("Category", 30), Column("Mandatory", 11))

_STALE = Column("Stale", 40)
EVIDENCE = Column("Evidence", 24)


def gaps_sheet(report: Mapping[str, Any]) -> Sheet:
    """A row for each gap."""
    columns = (
        *_CONTROL,
        Column("Effective status", 16),
        Column("Assessed status", 15),
        Column("Gap", 50),
        Column("What would close it", 60),
        _STALE,
        EVIDENCE,
    )
    return Sheet("Gaps", columns, map(_gap, report["gaps"]))


def conflicts_sheet(report: Mapping[str, Any]) -> Sheet:
    """A row for each control whose assessment cannot be right."""
    columns = (
        *_CONTROL,
        Column("Effective status", 16),
        Column("Assessed status", 15),
        Column("Gap", 50),
        Column("In conflict with", 40),
        _STALE,
        EVIDENCE,
    )
    return Sheet("Conflicts", columns, map(_conflict, report["conflicts"]))


def next_steps_sheet(report: Mapping[str, Any]) -> Sheet:
    """A row for each control that would lift many gaps."""
    columns = (
        Column("Framework", 20),
        Column("Identifier", 14),
        Column("Name", 40),
        Column("Effective status", 16),
        Column("Gaps it would close", 20),
        Column("Gaps it would lift", 20),
    )
    return Sheet("Next steps", columns, map(_step, report["nextSteps"]))


def summary_sheet(report: Mapping[str, Any]) -> Sheet:
    """The head of the report, and its counts, one per row."""
    return Sheet("Summary", (Column("What", 34), Column("Value", 40)), facts(report))


def file_name(report: Mapping[str, Any], kind: str) -> str:
    """The file name of the report, without the extension."""
    return f"{kind}-{report['organization']['slug']}-{report['framework']['slug']}"


def _gap(gap: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        *_control(gap),
        gap["effectiveCoverageStatus"],
        gap["coverageStatus"],
        gap["coverageGap"],
        "\n".join(map(_suggestion, gap["suggestions"])),
        stale_reasons(gap),
        evidence_words(gap["evidence"]),
    )


_AGAINST = {"MATCHES": "matches that make it FULL", "BELOW": "requirements below it that are assessed lower"}


def _conflict(conflict: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        *_control(conflict),
        conflict["effectiveCoverageStatus"],
        conflict["coverageStatus"],
        conflict["coverageGap"],
        _AGAINST[conflict["conflict"]],
        stale_reasons(conflict),
        evidence_words(conflict["evidence"]),
    )


def stale_reasons(item: Mapping[str, Any]) -> str:
    """Why an assessment is stale, each reason with the day since which it is."""
    return "\n".join(f"{STALE_WORDS[one['reason']]}, since {day(one['since'])}" for one in item["stale"])


def _suggestion(suggestion: Mapping[str, Any]) -> str:
    verb = "closes it" if suggestion["wouldBecome"] == "FULL" else "makes it PARTIAL"
    others = suggestion["lifts"] - 1
    also = f", and lifts {others} other{'' if others == 1 else 's'}" if others else ""
    return f"{named(suggestion['control'])}: {verb}{also}"


def _step(step: Mapping[str, Any]) -> tuple[Cell, ...]:
    control = step["control"]
    return (
        control["framework"]["identifier"],
        control["identifier"],
        control["name"],
        step["effectiveCoverageStatus"],
        step["closes"],
        step["lifts"],
    )


def _control(item: Mapping[str, Any]) -> tuple[Cell, ...]:
    parent = item["parent"]
    category = f"{parent['identifier']} {parent['name']}" if parent else None
    return item["identifier"], item["name"], category, item["isMandatory"]


def named(control: Mapping[str, Any]) -> str:
    """A control of another framework, by what people know it by."""
    return f"{control['framework']['identifier']} {control['identifier']} {control['name']}"


def facts(report: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    """The head of a report and its counts: labels and values."""
    framework, counts = report["framework"], report["counts"]
    yield "Organization", report["organization"]["name"]
    yield "Framework", framework["name"]
    yield "Identifier", framework["identifier"]
    yield "Version", framework["version"]
    if report["baseline"] is not None:
        yield "Baseline", report["baseline"]["name"]
    yield "Requirements", counts["requirements"]
    yield "Applicable", counts["applicable"]
    yield "Not applicable", counts["notApplicable"]
    yield "Without an assessment", counts["withoutAssessment"]
    yield "Indirectly covered", counts["indirectlyCovered"]
    yield "Conflicts", counts["conflicts"]
    yield "Stale assessments", counts["stale"]
    for sort in ("assessed", "effective"):
        for status, count in counts[sort].items():
            yield f"{sort.title()} {status.upper()}", count
