"""The commands for the maintenance of a database: ``migrate`` and ``check``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normata.cli import files as output_files
from normata.cli.shared import DatabaseOption, ForceOption, echo, fail, opened, progress, settings_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normata.cli.check import Findings
    from normata.cli.meaning import Difference
    from normata.core.db.database import Database
    from normata.core.db.transaction import Transaction
    from normata.coverage.upgrades import ReportedChange
    from normata.events.keys import Signer
    from normata.events.verified import Verified


def migrate(
    after: Annotated[
        bool,
        typer.Option(
            "--after", help="Also remove what only the previous version needs, once none of its processes serves."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would change in meaning; change nothing.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="The file for the list of these changes, before and after (CSV).",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
) -> None:
    """Create the database, or bring its schema up to date. A current database is left as it is.

    It prints what changes in meaning, such as controls whose coverage follows from new rules. On PostgreSQL the
    previous version can continue to serve until `normata migrate --after`.
    """
    from normata.cli.upgrade import recorded
    from normata.core.schema import migrations

    if report is not None:
        output_files.require_replaceable(report, force=force)  # check before the work, not after it
    if dry_run:
        _try_upgrade(database, report, finish=after, force=force)
        return
    differences: list[Difference] = []
    with opened(database, create=True, migrate=True, finish=after, on_upgrade=differences.extend) as migrated:
        _print_differences(differences, report, migrated.read_now(recorded), force=force)
        found = migrated.read_now(migrations.version)
        echo(f"the schema is at {found}")
        if found != migrations.head():
            echo("once no process of an older version serves, run `normata migrate --after`", err=True)


def _try_upgrade(url: str | None, report: Path | None, *, finish: bool, force: bool) -> None:
    from normata.cli.upgrade import upgrade
    from normata.core.db.opening import open_database
    from normata.core.schema import migrations
    from normata.errors import Unavailable

    with closing(open_database(settings_with(database_url=url))) as tried:
        missing = tried.exists()
        if missing:
            raise Unavailable(f"there is {missing}")
        found = tried.read_now(migrations.version)
        would = upgrade(tried, finish=finish, command="normata migrate", dry_run=True)
        _print_differences(would.differences, report, would.recorded, force=force, prefix="dry run: ")
        target = migrations.head() if finish or tried.embedded or found is None else max(migrations.needed(), found)
        echo(f"the schema is at {found or 'nothing'}, and would become {target}; nothing was changed")


def _print_differences(
    found: list[Difference], report: Path | None, recorded: list[ReportedChange], *, force: bool, prefix: str = ""
) -> None:
    from normata.cli.meaning import sentences, write_report
    from normata.coverage.upgrades import RULES

    for sentence in sentences(found):
        echo(f"{prefix}{sentence}")
    if report is not None:
        write_report(report, found, recorded, force=force)
        count = len(found) + len(recorded)
        echo(f"{report} lists {count} change{'' if count == 1 else 's'}")
        for rule in sorted({change.rule for change in recorded}):
            echo(f"{rule}: {RULES.get(rule, 'by a rule of another version')}", err=True)


def check(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Check only the schema, and the events after those that were verified before."),
    ] = False,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(
            help="A checkpoint that was stored elsewhere, as text or JSON, to compare the events with. Repeatable.",
            show_default=False,
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Check settings, files, schema and the integrity of the database, and list organizations and frameworks."""
    from normata.cli import check as checkup
    from normata.console.site import Site
    from normata.core.db.opening import open_database
    from normata.core.schema import migrations
    from normata.errors import Unavailable
    from normata.events import verified
    from normata.events.keys import Signer
    from normata.identity.openid.configuration import single_sign_on

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
        for warning in checked.read_now(lambda transaction: list(checked.warnings(transaction))):
            echo(f"warning: {warning}", err=True)
        for name in checked.read_now(lambda transaction: checkup.unknown_organizations(transaction, provider)):
            echo(f"warning: NORMATA_OIDC_ROLES names the organization {name}, which does not exist", err=True)
        signer = Signer(settings.event_key_file)
        with progress() as report_progress:
            if quick:
                since = verified.read(signer) if signer.path.exists() else {}
                findings = checkup.look_quickly(checked, settings, signer, since, report_progress)
            else:
                findings = checkup.look_at_everything(checked, settings, signer, report_progress)
        faults = [*findings.faults, *_rollbacks(checked, signer)]
        for fault in faults:
            echo(fault, err=True)
        if faults:
            fail("the database is damaged")
        echo("schema of the database: good" if quick else "integrity: good")
        _print_events(checked, findings)
        for file in checkpoint or ():
            _hold_against(checked, file, signer)
        _keep(signer, findings)
        if quick:
            _print_not_looked_at(findings.since)
            return
        for line in checked.read_now(lambda transaction: list(checkup.contents(transaction))):
            echo(line)


def _rollbacks(database: Database, signer: Signer) -> list[str]:
    """The logs of which the database is older than the newest signed checkpoint."""
    from normata.events.marks import Marks, rollbacks

    for warning in Marks(signer).warnings() if signer.path.exists() else ():
        echo(f"warning: {warning}", err=True)
    marks = Marks(signer).all()
    return database.read_now(lambda transaction: list(rollbacks(transaction, signer, marks)))


def _hold_against(database: Database, file: Path, signer: Signer) -> None:
    """End the command unless the database has the events of a checkpoint that was stored elsewhere."""
    from normata.cli.events import note_in, report
    from normata.events.exporting import export
    from normata.events.keys import owner_of, read_note, require_signed
    from normata.events.sealing import last_checkpoint, named
    from normata.events.verifying import Outcome, verify

    note = read_note(note_in(file))
    owner = owner_of(note.origin)
    verifier = signer.existing_verifier(owner)
    if verifier is None:
        echo(f"warning: there is no key {signer.path}, so the signer of {file} is not verified", err=True)
    else:
        require_signed(note, verifier)

    def work(transaction: Transaction) -> Outcome:
        size = last_checkpoint(transaction, owner).size
        if size < note.size:
            fail(f"the database is older than {file}: the log of {named(owner)} had {note.size} events, and has {size}")
        return verify(export(transaction, owner), note, () if verifier is None else (verifier,))

    echo(f"checkpoint {file}, of {named(owner)}:")
    report(database.read_now(work), f"the log of {named(owner)} is not the one that {file} was made of")


def _print_events(database: Database, findings: Findings) -> None:
    from normata.events.checking import pending

    logs = len(findings.seals)
    echo(f"events: {findings.looked_at:,} verified, in {logs} log{'' if logs == 1 else 's'}")
    count, since = database.read_now(pending)
    if count:
        echo(
            f"pending: {count} event{'s are' if count > 1 else ' is'} not sealed yet, the oldest of {since}; the"
            " service seals, and so do commands that change something"
        )


def _keep(signer: Signer, findings: Findings) -> None:
    """Store what is verified now, for `check --quick`, where there is a key: only the service may own one."""
    from normata.events import verified

    if not signer.path.exists():
        if findings.looked_at:
            echo(f"there is no key {signer.path}, so `normata check --quick` begins at the first event")
        return
    try:
        verified.write(signer, findings.verified())
    except OSError as error:
        echo(
            f"warning: {verified.path_of(signer)} cannot be written ({error.strerror or error}), so the next `normata"
            " check --quick` begins where the last one has begun",
            err=True,
        )


def _print_not_looked_at(since: Mapping[str, Verified]) -> None:
    """Print what a quick check leaves out."""
    events = sum(one.known.size for one in since.values())
    if events:
        oldest = min(one.whole_at for one in since.values() if one.known.size)
        echo(f"not checked: {events:,} events that were verified before, the oldest of these checks at {oldest}")
    echo(
        "not checked: the pages of the file, references, stored coverage, counts of controls; `normata check`"
        " checks them"
    )


def _warnings(database: Database) -> list[str]:
    """Warnings: no faults of the database, but worth correcting."""
    from normata.core.db.sqlite.database import SQLite

    if not isinstance(database, SQLite):
        return []
    return list(output_files.readable_by_others(output_files.database_files(database.path)))
