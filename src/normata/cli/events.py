"""The commands for events: ``events``, and the proof that none was changed."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normata.cli import files as output_files
from normata.cli.connection import ServerOption, connected
from normata.cli.shared import (
    DatabaseOption,
    ForceOption,
    Group,
    changed,
    echo,
    fail,
    opened,
    require_reason,
    settings_with,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from normata.core.changes.unit_of_work import UnitOfWork
    from normata.core.db.transaction import Transaction
    from normata.events.keys import Note
    from normata.events.verifying import Outcome

OrganizationArgument = Annotated[
    str | None,
    typer.Argument(metavar="[ORG]", help="The organization, by id or slug. Default: everything.", show_default=False),
]
LogArgument = Annotated[
    str | None,
    typer.Argument(metavar="[ORG]", help="The organization, by id or slug. Default: the only one."),
]
VerifierOption = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="KEY", help="The output of `normata events key`, or a file with it.", show_default=False
    ),
]
OperatorOption = Annotated[
    bool, typer.Option("--operator", help="The operator's log instead: the events that belong to no organization.")
]


class _ListsByDefault(Group):
    """``events ORG`` is ``events list ORG``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the omitted command ``list``."""
        if "--help" not in args[:1] and next((one for one in args if not one.startswith("-")), "") not in self.commands:
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_ListsByDefault, help="List events, and prove that none was changed.", no_args_is_help=False)


@app.command("list")
def list_(
    organization: OrganizationArgument = None,
    follow: Annotated[bool, typer.Option("--follow", help="Also print new events, until interrupted.")] = False,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Print events, oldest first, one JSON object per line. `normata events ORG` is the same.

    Without an organization it prints the events of all organizations, and those that belong to none: of users, tokens
    and centralized frameworks.
    """
    with connected(database, server) as backend:
        backend.events(organization, _print, follow=follow)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)
    sys.stdout.flush()


@app.command("export")
def export(
    organization: LogArgument = None,
    *,
    operators: OperatorOption = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The file to write, readable only by its owner. Default: standard output.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Write the log of an organization, with the bytes that were sealed, for `normata events verify`."""
    target = output_files.replacing(output, force=force) if output else nullcontext()
    with target as part, connected(database, server) as backend:
        if part is None:
            backend.log(organization, _print, operators=operators)
            return
        with part.open("w", encoding="utf-8") as file:
            backend.log(organization, lambda lines: file.writelines(f"{line}\n" for line in lines), operators=operators)


@app.command("checkpoint")
def checkpoint(
    organization: LogArgument = None,
    operators: OperatorOption = False,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Print the signed checkpoint of an organization's log, as `GET /events/checkpoint/` answers it."""
    with connected(database, server) as backend:
        typer.echo(backend.checkpoint(organization, operators=operators), nl=False)


@app.command("accept-rollback")
def accept_rollback(
    organization: LogArgument = None,
    operators: OperatorOption = False,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why the database is older, for the event.")],
    database: DatabaseOption = None,
) -> None:
    """Accept that the database is older than the newest signed checkpoint of a log, such as after restoring a backup.

    Until then, `normata check` and the start of the service report it, and no checkpoint of that log is signed. Make
    sure first that it was you: restoring an old database removes the newest events. If each host has a key file of its
    own, run it on each.
    """
    from normata.events.keys import Signer
    from normata.events.marks import accept
    from normata.events.model import OPERATORS
    from normata.events.sealing import named
    from normata.identity.choice import NoSuchOrganization
    from normata.identity.organization_lookup import find

    require_reason(reason)
    signer = Signer(settings_with(database_url=database).event_key_file)

    def work(unit: UnitOfWork) -> tuple[str, Note]:
        owner, is_known = OPERATORS, True
        if not operators:
            try:
                owner = find(unit, organization)
            except NoSuchOrganization:
                if organization is None:
                    raise
                owner, is_known = organization, False  # the older database does not know the organization
        return owner, accept(unit, signer, owner, is_known=is_known, reason=reason)

    owner, mark = changed(database, work)
    echo(f"{named(owner)}: accepted; a checkpoint of {mark.size} events was signed that the database does not have")


@app.command("key")
def key(organization: OrganizationArgument = None, database: DatabaseOption = None) -> None:
    """Print the verifier keys of checkpoints (name+hash+key). Store them with the checkpoints.

    The private key is in the file that NORMATA_EVENT_KEY names. It is created if it does not exist.
    """
    from sqlalchemy import select

    from normata.events.keys import Signer
    from normata.events.model import OPERATORS
    from normata.identity.model import Organization
    from normata.identity.organization_lookup import find

    def work(transaction: Transaction) -> list[str]:
        if organization is not None:
            return [find(transaction, organization)]
        return [OPERATORS, *transaction.scalars(select(Organization.id).order_by(Organization.id))]

    with opened(database, create=False) as source:
        owners = source.read_now(work)
    signer = Signer(settings_with(database_url=database).event_key_file)
    for owner in owners:
        echo(signer.verifier(owner))


@app.command("sign-erasures")
def sign_erasures(
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why these erasures are right, for the events.")],
    database: DatabaseOption = None,
) -> None:
    """Sign erasures that have no valid signature: those of an earlier version, or with a former key.

    `normata check` lists them. Make sure first that you made them: anybody who can write to the database can add such
    an event.
    """
    from normata.events.erasures import sign_erasures as sign
    from normata.events.keys import Signer
    from normata.events.sealing import named

    require_reason(reason)
    signer = Signer(settings_with(database_url=database).event_key_file)
    signed = changed(database, lambda unit: sign(unit, signer, reason))
    for owner, count in signed.items():
        echo(f"{named(owner)}: {count} erased event{'s' if count != 1 else ''} signed")
    if not signed:
        echo("all erasures are already signed; nothing was changed")


@app.command("verify")
def verify(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A file of `normata events export`, or the lines of `GET /events/log/`."),
    ],
    checkpoint_file: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="A checkpoint that was stored elsewhere, as text or JSON.")
    ],
    verifier: VerifierOption = None,
    _database: DatabaseOption = None,
) -> None:
    """Prove that a log has exactly the events of a checkpoint, or list those that were tampered with.

    It needs no database, so --database and NORMATA_DATABASE_URL do not matter. Without --key no signature is verified,
    neither that of the checkpoint nor those of erasures.
    """
    from normata.events import verifying
    from normata.events.keys import read_note, require_signed

    note = read_note(note_in(checkpoint_file))
    verifiers = [] if verifier is None else verifiers_of(verifier, note.origin)
    if verifiers:
        require_signed(note, *verifiers)
    else:
        echo("warning: without --key, the signer of the checkpoint is not verified", err=True)
    with file.open(encoding="utf-8", errors="replace") as lines:
        outcome = verifying.verify(lines, note, verifiers)
    report(outcome, f"{file} is not the log that the checkpoint was made of")


def report(outcome: Outcome, failure: str) -> None:
    """Print the result of verifying a log; end the command with a sentence if there is a fault."""
    for fault in (*outcome.faults, *outcome.lost):
        echo(fault, err=True)
    if outcome.faults:
        fail(failure)
    if outcome.lost:
        one = len(outcome.lost) == 1
        fail(
            f"the content of {len(outcome.lost)} event{'' if one else 's'} is missing, without proof that it was erased"
        )
    erased = f"; of {len(outcome.erased)} the content was erased" if outcome.erased else ""
    later = f"; {outcome.later} came after it and are not proven" if outcome.later else ""
    later_erased = (
        f"; of {len(outcome.erased_later)} the content was erased after it, as signed events say"
        if outcome.erased_later
        else ""
    )
    echo(f"{outcome.proven} events match the checkpoint{erased}{later_erased}{later}")


def note_in(file: Path) -> str:
    """The signed note in a file: the note itself, or JSON with it."""
    import json

    text = file.read_text("utf-8")
    try:
        return str(json.loads(text)["note"])
    except (ValueError, TypeError, KeyError):
        return text


def verifiers_of(verifier_or_file: str, origin: str) -> list[str]:
    """The verifier keys: the one in the option, or those of this log in a file."""
    path = Path(verifier_or_file)
    if "+" in verifier_or_file and not path.exists():
        return [verifier_or_file]
    lines = path.read_text("utf-8").split("\n")
    return [line for line in lines if line.startswith(f"{origin}+")] or lines[:1]
