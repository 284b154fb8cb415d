"""The commands ``export-records`` and ``import-records``: registers as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from normata.cli import calls
from normata.cli import files as output_files
from normata.cli.backend import Refused, RefusedField
from normata.cli.connection import ServerOption, connected
from normata.cli.records import FiltersArgument, KindArgument, OrganizationArgument, filters_of, require_kind
from normata.cli.shared import DatabaseOption, ForceOption, echo, fail, progress
from normata.core.log import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEDIA_TYPES = {
    "csv": "text/csv",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_LARGEST = 16 * 2**20  # bytes of a file to import
_ROWS = "rows/"

FormatOption = Annotated[
    Literal["csv", "xlsx"] | None,
    typer.Option("--format", help="The format. Default: by the ending of FILE, else csv.", show_default=False),
]


def export_records(
    organization: OrganizationArgument,
    kind: KindArgument,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file to write, readable only by its owner; - for standard output."),
    ],
    filters: FiltersArgument = None,
    *,
    search: Annotated[str | None, typer.Option(help="Words that must all occur.", show_default=False)] = None,
    archived: Annotated[
        Literal["exclude", "include", "only"], typer.Option(help="Whether archived records are exported.")
    ] = "exclude",
    wanted: FormatOption = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Write all records of a kind to a CSV file or a workbook, from one state of the data.

    `normata import-records` takes the file, and changes nothing if nothing in it was changed.
    """
    require_kind(kind)
    name = wanted or _format_of(file)
    to_output = str(file) == "-"
    if to_output and sys.stdout.isatty() and name == "xlsx":
        fail("xlsx cannot be printed to a terminal; name a file", code=2)
    query = filters_of(filters or ()) | {"search": search, "archived": archived}
    if not to_output:
        output_files.require_replaceable(file, force=force)  # check before the work, not after it
    with connected(database, server) as backend, progress() as report_progress:
        owner = backend.organization(organization)
        report_progress(f"Exporting {kind}", 0, 0)
        call = calls.of_kind("GET", kind)
        if to_output:
            backend.download(call, name, sys.stdout.buffer, **query, organizationId=owner)
            sys.stdout.buffer.flush()
            return
        with output_files.replacing(file, force=force) as part, part.open("wb") as opened:
            backend.download(call, name, opened, **query, organizationId=owner)


def import_records(
    organization: OrganizationArgument,
    kind: KindArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to read, CSV or XLSX.")],
    *,
    wanted: FormatOption = None,
    mode: Annotated[
        Literal["all", "each"],
        typer.Option(help="Whether one refused row refuses all, or each row is imported for itself."),
    ] = "all",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would become of each row; change nothing.")
    ] = False,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Create and change the records of a kind by the rows of a file.

    The first row names the columns, by the names of the fields. A row is about the record with its id, else with its
    externalSource and externalId, else with its slug, and else new. Columns that are not there stay as they are. Every
    fault is listed with its row and column.
    """
    require_kind(kind)
    content = _read(file)
    media_type = _MEDIA_TYPES[wanted or _format_of(file)]
    call = calls.importing(kind)
    try:
        with connected(database, server) as backend, progress() as report_progress:
            owner = backend.organization(organization)
            report_progress(f"Importing {file.name}", 0, 0)
            found = backend.upload(call, content, media_type, dry_run=dry_run, organizationId=owner, mode=mode)
    except Refused as error:
        raise Refused(str(error), error.status, [_with_cell(one) for one in error.faults]) from None
    _print(found, dry_run=dry_run)
    if found["refused"]:
        fail(f"{found['refused']} row{'s were' if found['refused'] > 1 else ' was'} refused")


def _print(found: Mapping[str, Any], *, dry_run: bool) -> None:
    """Print the outcomes: in a dry run of each row that changes something, and always of those that were refused."""
    if dry_run:
        echo("nothing was changed; the import would result in:")
    for row in found["rows"]:
        if dry_run and row["outcome"] not in ("unchanged", "refused"):
            echo(f"row {row['row']}: {row['outcome']}: {row['label']}")
        for fault in row["faults"]:
            column = f", {fault['column']}" if fault["column"] else ""
            echo(f"row {row['row']}{column}: {fault['message']}", err=True)
    echo(f"{found['created']} new, {found['updated']} changed, {found['unchanged']} unchanged")


def _with_cell(fault: RefusedField) -> RefusedField:
    """A fault whose place in the file is written as people say it: `rows/4/name` is row 4, name."""
    if not fault.name.startswith(_ROWS):
        return fault
    row, _, column = fault.name.removeprefix(_ROWS).partition("/")
    return fault._replace(name=f"row {row}, {column}" if column else f"row {row}")


def _format_of(file: Path) -> Literal["csv", "xlsx"]:
    return "xlsx" if file.suffix.lower() == ".xlsx" else "csv"


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        fail(f"{visible(str(file))} cannot be read: {error.strerror or error}")
    if len(content) > _LARGEST:
        fail(f"{visible(str(file))} is larger than {_LARGEST // 2**20} MiB; split it")
    return content
