"""The command ``import``."""

from __future__ import annotations

import os
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normata.cli import files as output_files
from normata.cli.shared import (
    DatabaseOption,
    changed,
    echo,
    fail,
    many_objects,
    print_row_counts,
    progress,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normata.catalogs.importing import Outcome
    from normata.catalogs.retirement import RetiredMatch
    from normata.catalogs.unknown import LeftOut
    from normata.core.changes.source import Fault
    from normata.core.changes.unit_of_work import UnitOfWork
    from normata.coverage.rewording import Rewording

_ENDINGS = frozenset((".csv", ".json", ".xlsx", ".yaml", ".yml"))
_SHOWN = 50  # matches that are listed


class _DryRun(Exception):
    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def import_(  # noqa: PLR0917 - Typer makes options of them
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="The files to read, or folders of files.", show_default=False),
    ],
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
    skip_unfit: Annotated[
        bool,
        typer.Option("--skip-unfit", help="Skip files that have faults or that no format recognizes, and list them."),
    ] = False,
    organization: Annotated[
        str | None,
        typer.Option(
            "--organization",
            metavar="ORG",
            help="Import as this organization's own (id or slug), and not as centralized.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="The name of the framework of a table. Default: the name of the file.", show_default=False),
    ] = None,
    editorial: Annotated[
        bool,
        typer.Option("--editorial", help="Changed wordings mean the same: no assessment becomes stale by them."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")] = False,
    database: DatabaseOption = None,
) -> None:
    """Import catalogs and mappings.

    The format is recognized by the content of a file, not by its name: OSCAL catalog, OSCAL profile, OSCAL mapping
    collection, CISO Assistant library, table with a column identifier (CSV), table with a column identifier (XLSX).
    OSCAL needs the extra normata[oscal]. A profile becomes a baseline of its catalog's framework. Importing the same
    version again changes nothing.
    """
    from normata.catalogs import uploads
    from normata.catalogs.importing import import_for_all
    from normata.catalogs.reading import read_published
    from normata.identity.organization_lookup import find

    if left_out is not None and not skip_unknown:
        fail("--left-out goes with --skip-unknown", code=2)
    path = left_out or Path(f"left-out-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.csv")
    if skip_unknown and os.path.lexists(path):  # check before the work, not after it
        fail(f"{path} exists already; name another file with --left-out")
    with many_objects(), progress() as report_progress:
        published = read_published(
            list(_files(files)),
            lambda file: report_progress(f"Reading {file}", 0, 0),
            name=name,
            skip_unfit=skip_unfit,
        )

        def work(unit: UnitOfWork) -> Outcome:
            if organization is None:
                outcome = import_for_all(
                    unit, published, report_progress, skip_unknown=skip_unknown, editorial=editorial
                )
            else:
                owner = find(unit, organization)
                upload = uploads.Upload(published)
                outcome = uploads.take(unit, owner, upload, skip_unknown=skip_unknown, editorial=editorial)
            if dry_run:
                raise _DryRun(outcome)
            return outcome

        try:
            outcome = changed(database, work, create=not dry_run)
        except _DryRun as done:
            outcome = done.outcome
            echo("nothing was changed; the import would result in:")
    print_row_counts({array: counts for array, counts in outcome.row_counts.items() if any(astuple(counts))})
    _report(outcome, published.unfit)
    if outcome.unknown:
        one = len(outcome.unknown) == 1
        count = f"{len(outcome.unknown)} mapping{' was' if one else 's were'} left out"
        if dry_run:
            echo(count)
        else:
            _write_left_out(path, outcome.unknown)
            echo(f"{count}; {path} lists {'it' if one else 'them'}")


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """These files, and the files in folders whose names may be those of catalogs."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(one for one in path.rglob("*") if one.suffix.lower() in _ENDINGS and one.is_file())
        if not found:
            fail(f"{path} has no files that end in {', '.join(sorted(_ENDINGS))}")
        yield from found


def _report(outcome: Outcome, unfit: Sequence[Fault]) -> None:
    if outcome.left_out:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(outcome.left_out.items()) if count)
        echo(f"not imported: {counts}")
    retired = outcome.retirement.matches
    for line in _about_retired(retired):
        echo(line)
    if outcome.retirement.returned:
        echo(f"{outcome.retirement.returned:,} retired matches are back")
    for line in _about_reworded(outcome.rewording):
        echo(line)
    for file in dict.fromkeys(fault.file for fault in unfit):
        faults = [fault for fault in unfit if fault.file == file]
        more = f" (and {len(faults) - 1:,} more faults)" if len(faults) > 1 else ""
        echo(f"skipped: {faults[0]}{more}", err=True)


def _about_retired(retired: Sequence[RetiredMatch]) -> Iterator[str]:
    documents = dict.fromkeys((one.document, one.version) for one in retired)
    for document, version in documents:
        found = [one for one in retired if one.document == document]
        of_version = f" of version {version}" if version else ""
        yield f"{len(found):,} matches are retired, since {document}{of_version} does not have them:"
        for one in found[:_SHOWN]:
            yield f"  {one.source} → {one.target} ({one.level})"
        if len(found) > _SHOWN:
            yield f"  and {len(found) - _SHOWN:,} more"


def _about_reworded(rewording: Rewording) -> Iterator[str]:
    count = len(rewording.controls)
    if count:
        yield f"{count:,} {'control has' if count == 1 else 'controls have'} another wording:"
        for one in rewording.controls[:_SHOWN]:
            yield f"  {one.id} {one.after.name} ({', '.join(one.differing)})"
        if count > _SHOWN:
            yield f"  and {count - _SHOWN:,} more"
    for organization_id, controls in rewording.stale.items():
        named = ", ".join([*controls[:_SHOWN], *(["…"] if len(controls) > _SHOWN else [])])
        yield f"assessments of {organization_id} that become stale: {len(controls):,} ({named})"


def _write_left_out(path: Path, skipped: Sequence[LeftOut]) -> None:
    output_files.write_table(
        path,
        ("file", "place", "source", "relationship", "target", "unknown"),
        ((one.file, one.place, one.source, one.relationship, one.target, " ".join(one.unknown)) for one in skipped),
        force=False,
    )
