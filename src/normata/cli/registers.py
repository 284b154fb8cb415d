"""The commands ``export-records`` and ``import-records``: registers as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from normata.cli import calls
from normata.cli import files as output_files
from normata.cli.connection import ServerOption, connected
from normata.cli.records import FiltersArgument, KindArgument, OrganizationArgument, filters_of, require_kind
from normata.cli.shared import DatabaseOption, ForceOption, fail, progress

if TYPE_CHECKING:
    pass

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

    `POST /{kind}/import/` takes the file, and changes nothing if nothing in it was changed.
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


def _format_of(file: Path) -> Literal["csv", "xlsx"]:
    return "xlsx" if file.suffix.lower() == ".xlsx" else "csv"
