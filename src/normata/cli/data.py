"""The commands for data as a whole: ``load``, ``dump``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

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
    settings_with,
)
from normata.core.log import visible

if TYPE_CHECKING:
    from io import TextIOWrapper

    from normata.core.changes.unit_of_work import UnitOfWork
    from normata.core.db.transaction import Transaction


def load(
    files: FilesArgument,
    bytes_from: Annotated[
        Path | None,
        typer.Option(
            "--files",
            metavar="FOLDER",
            help="The folder with uploaded files that `normata dump --files` has written.",
            show_default=False,
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Load bundles: insert or update all their rows by id, or change nothing and print every fault.

    Load a file of `normata dump --all` alone, into an empty database. Every row is then as it was.
    """
    from normata.bundle import instance, loading, reading
    from normata.core.changes.source import FaultyInput
    from normata.files import copying
    from normata.files.model import File
    from normata.files.opening import open_store

    whole = next((file for file in files if instance.has_everything(file)), None)
    if whole is not None:
        if len(files) > 1:
            fail(f"{whole} is a dump of everything, so it must be loaded alone")
        _load_everything(whole, bytes_from, database)
        return
    with many_objects(), progress() as report_progress:
        rows, faults = reading.read_all(files)
        if faults and not rows:
            raise FaultyInput(faults)  # before a database is opened, which may not exist

        def work(unit: UnitOfWork) -> tuple[Any, int]:
            counts = loading.load(unit, rows, report_progress, faults=faults)
            return counts, copying.read_from(bytes_from, unit, uploaded, store)

        uploaded = [str(row.values["id"]) for row in rows if row.array == File.array and "id" in row.values]
        store = open_store(settings_with(database_url=database))
        row_counts, missing = changed(database, work, create=True)
    print_row_counts(row_counts)
    _warn_of(missing)


def _warn_of(missing: int) -> None:
    if missing:
        many = "files are" if missing > 1 else "file is"
        echo(f"warning: the bytes of {missing} uploaded {many} not here; load with --files to get them", err=True)


def _load_everything(file: Path, bytes_from: Path | None, url: str | None) -> None:
    from normata.bundle import instance
    from normata.events.sealing import seal_all_now
    from normata.files import copying
    from normata.files.opening import open_store

    with many_objects(), progress() as report_progress, opened(url, create=True) as target:
        store = open_store(settings_with(database_url=url))

        def work(transaction: Transaction) -> tuple[dict[str, int], int]:
            loaded = instance.load_everything(transaction, file, report_progress)
            return loaded, copying.read_from(bytes_from, transaction, None, store)

        counts, missing = target.write_now(work)
        for reason in seal_all_now(target):
            echo(f"warning: {reason}", err=True)
    for line in instance.rows_of(counts):
        echo(line)
    _warn_of(missing)
    echo("the key of the events is not in the dump: copy its file to the path of NORMATA_EVENT_KEY", err=True)


def dump(
    organization: Annotated[
        str | None,
        typer.Argument(metavar="[ORG]", help="The organization, by id or slug. Not needed if there is only one."),
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Write every row of every table, including passwords, sessions and events.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The file to write, readable only by its owner. Default: standard output.", show_default=False
        ),
    ] = None,
    bytes_to: Annotated[
        Path | None,
        typer.Option(
            "--files",
            metavar="FOLDER",
            help="Write uploaded files to this folder, each with its SHA-256 as its name.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
) -> None:
    """Write an organization, or the whole database, as a bundle that can be loaded into an empty database."""
    from normata.bundle.dumping import dump as write_bundle
    from normata.bundle.instance import dump_everything
    from normata.files import copying
    from normata.files.opening import open_store
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
            if bytes_to is not None:
                store = open_store(settings_with(database_url=database))
                copying.write_to(bytes_to, transaction, store, organization_id)

        source.read_now(work)


def _standard_output() -> IO[str]:
    # JSON is UTF-8 (RFC 8259), whatever the locale of the terminal.
    cast("TextIOWrapper", sys.stdout).reconfigure(encoding="utf-8")
    return cast("IO[str]", _Terminal()) if sys.stdout.isatty() else sys.stdout


class _Terminal:
    """Standard output to a terminal, which must not interpret control characters in the data."""

    def write(self, text: str) -> int:
        return sys.stdout.write("\n".join(map(visible, text.split("\n"))))
