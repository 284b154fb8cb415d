"""The commands for data as a whole: ``load``, ``dump``, ``import``, ``migrate``, ``check``."""

from __future__ import annotations

import os
import sys
from contextlib import closing, nullcontext
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from normata.cli import files as output_files
from normata.cli.shared import (
    DatabaseOption,
    FilesArgument,
    ForceOption,
    change,
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
    from collections.abc import Sequence
    from io import TextIOWrapper

    from normata.catalogs.unknown import LeftOut
    from normata.core.changes.unit_of_work import UnitOfWork
    from normata.core.db.database import Database
    from normata.core.db.transaction import Transaction


def load(files: FilesArgument, database: DatabaseOption = None) -> None:
    """Load bundles: all their rows are inserted or updated by id, or none is and every fault is printed."""
    from normata.bundle import loading, reading
    from normata.core.changes.source import FaultyInput

    with many_objects(), progress() as report_progress:
        rows, faults = reading.read_all(files)
        if faults and not rows:
            raise FaultyInput(faults)  # without a database, which there may not be
        row_counts = changed(
            database, lambda unit: loading.load(unit, rows, report_progress, faults=faults), create=True
        )
    print_row_counts(row_counts)


def dump(
    organization: Annotated[
        str | None,
        typer.Argument(metavar="[ORG]", help="The organization, by id or slug. Not needed if there is only one."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All organizations, with tokens (as digests) and audit events.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="The file to write, for its owner alone. Default: standard output.", show_default=False),
    ] = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
) -> None:
    """Write all of an organization, or everything, as a bundle that loads into an empty database."""
    from normata.bundle.dumping import dump as write_bundle
    from normata.identity.organization_lookup import find

    if everything and organization is not None:
        fail("--all takes no organization", code=2)
    target = output_files.replacing(output, force=force) if output else nullcontext()
    with target as part, opened(database, create=False) as source:

        def work(transaction: Transaction) -> None:
            organization_id = None if everything else find(transaction, organization)
            with part.open("w", encoding="utf-8") if part else nullcontext(_standard_output()) as file:
                write_bundle(transaction, organization_id, file)

        source.read_now(work)


def _standard_output() -> IO[str]:
    # JSON is UTF-8 (RFC 8259), whatever the terminal's locale.
    cast("TextIOWrapper", sys.stdout).reconfigure(encoding="utf-8")
    return cast("IO[str]", _Terminal()) if sys.stdout.isatty() else sys.stdout


class _Terminal:
    """Standard output where it is a terminal, which must not obey what is in the data."""

    def write(self, text: str) -> int:
        return sys.stdout.write("\n".join(map(visible, text.split("\n"))))


def import_(  # noqa: PLR0917 - Typer makes options of them
    files: FilesArgument,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out mappings that name unknown controls, and list them.")
    ] = False,
    left_out: Annotated[
        Path | None,
        typer.Option(
            "--left-out",
            help="The file for that list (CSV). Default: left-out-<time>.csv in this folder.",
            show_default=False,
        ),
    ] = None,
    organization: Annotated[
        str | None,
        typer.Option(
            "--organization",
            metavar="ORG",
            help="Make it a framework of this organization's own (id or slug), and not a centralized one.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="The name of the framework that a table becomes. Default: the file's.", show_default=False),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Import catalogs and mappings.

    The content of a file, and not its name, decides which format it has: OSCAL catalog, OSCAL mapping collection, CISO
    Assistant library, table with a column identifier (CSV), table with a column identifier (XLSX). OSCAL needs the
    extra normata[oscal]. Importing the same version again changes nothing.
    """
    from normata.catalogs import uploads
    from normata.catalogs.importing import import_for_all
    from normata.catalogs.reading import read_published
    from normata.identity.organization_lookup import find

    if left_out is not None and not skip_unknown:
        fail("--left-out goes with --skip-unknown", code=2)
    path = left_out or Path(f"left-out-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.csv")
    if skip_unknown and os.path.lexists(path):  # refused before the work, not after it
        fail(f"{path} exists already; name another file with --left-out")
    with many_objects(), progress() as report_progress:
        published = read_published(files, lambda file: report_progress(f"Reading {file}", 0, 0), name=name)

        def work(unit: UnitOfWork) -> tuple[dict[str, Any], list[LeftOut]]:
            if organization is not None:
                owner = find(unit, organization)
                outcome = uploads.take(unit, owner, uploads.Upload(published), skip_unknown=skip_unknown)
                return {
                    array: counts for array, counts in outcome.row_counts.items() if any(astuple(counts))
                }, outcome.left_out
            return import_for_all(unit, published, report_progress, skip_unknown=skip_unknown)

        row_counts, skipped = changed(database, work, create=True)
    print_row_counts(row_counts)
    if skipped:
        _write_left_out(path, skipped)
        one = len(skipped) == 1
        echo(f"{len(skipped)} mapping{' was' if one else 's were'} left out; {path} lists {'it' if one else 'them'}")


def _write_left_out(path: Path, skipped: Sequence[LeftOut]) -> None:
    import csv

    from normata.core.schema.text import harmless

    with output_files.replacing(path, force=False) as part, part.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("file", "place", "source", "relationship", "target", "unknown"))
        for one in skipped:
            cells = (one.file, one.place, one.source, one.relationship, one.target, " ".join(one.unknown))
            table.writerow(map(harmless, cells))


def migrate(
    after: Annotated[
        bool,
        typer.Option("--after", help="Also remove what only the version before needs, once none of it serves."),
    ] = False,
    database: DatabaseOption = None,
) -> None:
    """Create the database, or bring its schema up to date. A current database is left as it is.

    On a server the version before can go on serving, until `normata migrate --after`.
    """
    from normata.core.schema import migrations
    from normata.coverage.recompute import recompute_all

    with opened(database, create=True, migrate=True, finish=after) as migrated:
        if after and not migrated.embedded:
            # While both versions served, the one before may have stored coverage by rules of its own.
            change(migrated, recompute_all)
        found = migrated.read_now(migrations.version)
        echo(f"the schema is at {found}")
        if found != migrations.head():
            echo("when no older version serves any more, run `normata migrate --after`", err=True)


def check(database: DatabaseOption = None) -> None:
    """Check the settings, the files, the schema and the integrity of the database, and list what is in it."""
    from normata.cli import check as checkup
    from normata.console.site import Site
    from normata.core.db.opening import open_database
    from normata.core.schema import migrations
    from normata.errors import Unavailable
    from normata.identity.openid.configuration import single_sign_on
    from normata.operations import SECURITY

    settings = settings_with(database_url=database)
    provider = single_sign_on(settings)
    with closing(open_database(settings)) as checked:
        missing = checked.exists()
        if missing:
            raise Unavailable(f"there is {missing}")
        echo("settings: good")
        for warning in (*_warnings(checked), *Site(settings.public_url).warnings()):
            echo(f"warning: {warning}", err=True)
        checked.read_now(migrations.require_current)
        echo(f"schema: current ({checked.read_now(migrations.version)})")
        for name in checked.read_now(lambda transaction: checkup.unknown_organizations(transaction, provider)):
            echo(f"warning: NORMATA_OIDC_ROLES names the organization {name}, and there is none", err=True)
        faults = checked.read_now(lambda transaction: list(checkup.faults(checked, transaction, SECURITY)))
        for fault in faults:
            echo(fault, err=True)
        if faults:
            fail("the database is not whole")
        echo("integrity: good")
        for line in checked.read_now(lambda transaction: list(checkup.contents(transaction))):
            echo(line)


def _warnings(database: Database) -> list[str]:
    """Warnings: no faults of the database, but worth correcting."""
    from normata.core.db.sqlite.database import SQLite

    if not isinstance(database, SQLite):
        return []
    return list(output_files.readable_by_others(output_files.database_files(database.path)))
