"""The commands for reports: ``gaps`` and ``soa``. They write the same bytes as HTTP answers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from normata.cli import files as output_files
from normata.cli.shared import DatabaseOption, ForceOption, echo, fail, opened
from normata.core.log import visible

if TYPE_CHECKING:
    from normata.core.db.transaction import Transaction
    from normata.core.http.formats import FormatName

_SHOWN = 40  # rows of a table on a terminal

_Kind = Literal["gaps", "soa"]

OrganizationArgument = Annotated[str, typer.Argument(metavar="ORG", help="The organization, by id or slug.")]
FrameworkArgument = Annotated[
    str, typer.Argument(metavar="FRAMEWORK", help="A framework that it has adopted, by id, slug or identifier.")
]
FormatOption = Annotated[
    Literal["json", "csv", "xlsx"] | None,
    typer.Option(
        "--format",
        help="The format. Default: by the ending of the output file, else a short table.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(help="The file to write, readable only by its owner. Default: standard output.", show_default=False),
]


def gaps(
    organization: OrganizationArgument,
    framework: FrameworkArgument,
    *,
    wanted: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
) -> None:
    """Report the gaps of a framework, the worst first, and what would close them."""
    _report("gaps", organization, framework, wanted, output, force=force, database=database)


def soa(
    organization: OrganizationArgument,
    framework: FrameworkArgument,
    *,
    wanted: FormatOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
) -> None:
    """Report the statement of applicability of a framework (ISO/IEC 27001, 6.1.3 d)."""
    _report("soa", organization, framework, wanted, output, force=force, database=database)


def _report(
    kind: _Kind,
    organization: str,
    framework: str,
    wanted: FormatName | None,
    output: Path | None,
    *,
    force: bool,
    database: str | None,
) -> None:
    from normata.reports.operations import APPLICABILITY, GAPS

    formats = {"gaps": GAPS, "soa": APPLICABILITY}[kind]
    name = wanted or _format_of(output)
    if name == "xlsx" and output is None and sys.stdout.isatty():
        fail("a workbook cannot be printed to a terminal; use --output with a file name", code=2)
    if output is not None:
        output_files.require_replaceable(output, force=force)  # check before the work, not after it
    report = formats.present(_read(kind, organization, framework, database))
    if name is None:
        _show(report)
        return
    content = formats.by_name[name].render(report)
    if output is None:
        _print(content)
        return
    with output_files.replacing(output, force=force) as part:
        part.write_bytes(content)


def _read(kind: _Kind, organization: str, framework: str, database: str | None) -> Any:
    """Read the data of a report."""
    from normata.identity.organization_lookup import find
    from normata.reports.applicability import read_applicability
    from normata.reports.gaps import read_gaps
    from normata.reports.report_header import find_adopted

    read = {"gaps": read_gaps, "soa": read_applicability}[kind]

    def work(transaction: Transaction) -> Any:
        organization_id = find(transaction, organization)
        return read(transaction, organization_id, find_adopted(transaction, organization_id, framework))

    with opened(database, create=False) as source:
        return source.read_now(work)


def _format_of(output: Path | None) -> FormatName | None:
    """The format by the extension of a file; None if there is no file."""
    if output is None:
        return None
    known: Mapping[str, FormatName] = {".json": "json", ".csv": "csv", ".xlsx": "xlsx"}
    found = known.get(output.suffix.lower())
    if found is None:
        fail(f"{output} has no known extension; use --format json, csv or xlsx", code=2)
    return found


def _print(content: bytes) -> None:
    if sys.stdout.isatty():  # data must not control the terminal
        echo("\n".join(map(visible, content.decode("utf-8-sig").splitlines())))
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


# --- The short table


def _show(report: Mapping[str, Any]) -> None:
    framework, counts = report["framework"], report["counts"]
    covered = ", ".join(f"{count} {status.upper()}" for status, count in counts["effective"].items())
    baseline = f", {report['baseline']['name']}" if report["baseline"] else ""
    echo(f"{framework['identifier']} {framework['name']}{baseline}, {report['organization']['name']}")
    echo(f"{counts['applicable']} controls apply ({covered}), {counts['notApplicable']} do not")
    if "gaps" in report:
        _print_table(("Identifier", "Covered", "Mandatory", "Name", "Closed by"), map(_gap, report["gaps"]))
    else:
        if others := report["otherRequirements"]:
            echo(_outside(others))
        titles = ("Identifier", "Applies", "Assessed", "Covered", "Name", "Objections")
        _print_table(titles, map(_entry, report["controls"]))


def _outside(others: Mapping[str, Any]) -> str:
    counts = others["counts"]
    covered = ", ".join(f"{count} {status.upper()}" for status, count in counts["effective"].items())
    excluded = ", ".join(f"{one['identifier']} {one['name']}" for one in others["excluded"])
    line = f"{counts['requirements']} other requirements are outside of the statement ({covered})"
    return line + (f"; mandatory, and excluded nevertheless: {excluded}" if excluded else "")


def _gap(gap: Mapping[str, Any]) -> tuple[str, ...]:
    suggestions = [
        f"{one['control']['framework']['identifier']} {one['control']['identifier']}" for one in gap["suggestions"]
    ]
    return (
        gap["identifier"],
        gap["effectiveCoverageStatus"],
        "yes" if gap["isMandatory"] else "no",
        gap["name"],
        ", ".join(suggestions),
    )


def _entry(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        entry["identifier"],
        "yes" if entry["isApplicable"] else "no",
        entry["coverageStatus"] if entry["isAssessed"] else "",
        entry["effectiveCoverageStatus"],
        entry["name"],
        ", ".join(one.replace("_", " ").lower() for one in entry["objections"]),
    )


def _print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*titles, box=None, pad_edge=False)
    for column in table.columns[:-2]:
        column.no_wrap = True
    count = 0
    for count, row in enumerate(rows, 1):
        if count <= _SHOWN:
            table.add_row(*(Text(visible(cell)) for cell in row))  # a text may look like markup
    if count:
        echo("")
        Console(file=sys.stdout).print(table)
    if count > _SHOWN:
        echo(f"… and {count - _SHOWN} more; --format csv has them all")
