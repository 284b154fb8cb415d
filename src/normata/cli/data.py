"""The commands for data as a whole: ``load``, ``dump``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer

from normata.cli import files as output_files
from normata.cli.shared import (
    DatabaseOption,
    FilesArgument,
    ForceOption,
    changed,
    echo,
    fail,
    many_objects,
    opened,
    print_row_counts,
    progress,
)
from normata.core.log import visible

if TYPE_CHECKING:
    from io import TextIOWrapper

    from normata.core.db.transaction import Transaction


def load(files: FilesArgument, database: DatabaseOption = None) -> None:
    """Load bundles: insert or update all their rows by id, or change nothing and print every fault.

    Load a file of `normata dump --all` alone, into an empty database. Every row is then as it was.
    """
    from normata.bundle import instance, loading, reading
    from normata.core.changes.source import FaultyInput

    whole = next((file for file in files if instance.has_everything(file)), None)
    if whole is not None:
        if len(files) > 1:
            fail(f"{whole} is a dump of everything, so it must be loaded alone")
        _load_everything(whole, database)
        return
    with many_objects(), progress() as report_progress:
        rows, faults = reading.read_all(files)
        if faults and not rows:
            raise FaultyInput(faults)  # before a database is opened, which may not exist
        row_counts = changed(
            database, lambda unit: loading.load(unit, rows, report_progress, faults=faults), create=True
        )
    print_row_counts(row_counts)


def _load_everything(file: Path, url: str | None) -> None:
    from normata.bundle import instance
    from normata.events.sealing import seal_all_now

    with many_objects(), progress() as report_progress, opened(url, create=True) as target:
        counts = target.write_now(lambda transaction: instance.load_everything(transaction, file, report_progress))
        for reason in seal_all_now(target):
            echo(f"warning: {reason}", err=True)
    for line in instance.rows_of(counts):
        echo(line)
    echo("the key of the events is not in the dump: copy its file to the path of NORMATA_EVENT_KEY", err=True)


def dump(
    organization: Annotated[
        str | None,
        typer.Argument(metavar="[ORG]", help="The organization, by id or slug. Not needed if there is only one."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Write every row of every table, including passwords, sessions and events.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The file to write, readable only by its owner. Default: standard output.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
) -> None:
    """Write an organization, or the whole database, as a bundle that can be loaded into an empty database."""
    from normata.bundle.dumping import dump as write_bundle
    from normata.bundle.instance import dump_everything
    from normata.identity.organization_lookup import find

    if everything and organization is not None:
        fail("--all cannot be combined with an organization", code=2)
    target = output_files.replacing(output, force=force) if output else nullcontext()
    with target as part, opened(database, create=False) as source:

        def work(transaction: Transaction) -> None:
            organization_id = None if everything else find(transaction, organization)
            with part.open("w", encoding="utf-8") if part else nullcontext(_standard_output()) as file:
                if organization_id is None:
                    dump_everything(transaction, file)
                else:
                    write_bundle(transaction, organization_id, file)

        source.read_now(work)


def _standard_output() -> IO[str]:
    # JSON is UTF-8 (RFC 8259), whatever the locale of the terminal.
    cast("TextIOWrapper", sys.stdout).reconfigure(encoding="utf-8")
    return cast("IO[str]", _Terminal()) if sys.stdout.isatty() else sys.stdout


class _Terminal:
    """Standard output to a terminal, which must not interpret control characters in the data."""

    def write(self, text: str) -> int:
        return sys.stdout.write("\n".join(map(visible, text.split("\n"))))
