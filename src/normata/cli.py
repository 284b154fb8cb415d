"""The command line: what there is to type. What it does is elsewhere, and imported only once it is asked for."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, cast

import typer

if TYPE_CHECKING:
    from io import TextIOWrapper

    from sqlalchemy import Connection

    from normata.bundle.loading import Progress, Tally
    from normata.database import Database
    from normata.settings import Settings

T = TypeVar("T")

_SHOWN_FAULTS = 50

app = typer.Typer(
    name="normata",
    help="Normata, a self-hosted compliance service: frameworks, live coverage, and records that are never lost.",
    no_args_is_help=True,
    rich_markup_mode=None,  # it would take normata[oscal] for markup
    pretty_exceptions_enable=False,
    add_completion=False,
)
tokens = typer.Typer(help="Make, list and revoke the access tokens of users.", no_args_is_help=True)
app.add_typer(tokens, name="token")

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="The database, such as sqlite:///normata.db; else NORMATA_DATABASE_URL, else normata.db in this folder.",
        show_default=False,
    ),
]
HostOption = Annotated[str | None, typer.Option(help="The address to listen on; else NORMATA_HOST, else 127.0.0.1.")]
PortOption = Annotated[int | None, typer.Option(help="The port to listen on; else NORMATA_PORT, else 8000.")]
FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE…", help="The files to read.", show_default=False)]


def main() -> None:
    """Run the command line. Whatever fails is told in one sentence, never by a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        _fail("interrupted", code=130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone, so there is nobody to tell
        raise SystemExit(1) from None
    except Exception as error:  # the last resort of a program
        _tell(error)


def _tell(error: Exception) -> NoReturn:
    from pydantic import ValidationError
    from sqlalchemy.exc import DBAPIError, IntegrityError

    from normata.database import BadDatabaseUrl, Unavailable
    from normata.refusal import Refusal
    from normata.source import FaultyInput

    match error:
        case FaultyInput():
            _show_faults(error.faults)
        case BadDatabaseUrl():
            _fail(str(error), code=2)
        case ValidationError():
            fault = error.errors()[0]
            _fail(f"the setting NORMATA_{str(fault['loc'][0]).upper()} is wrong: {fault['msg'].lower()}", code=2)
        case Unavailable():
            _fail(f"the database cannot be used: {error}")
        case IntegrityError():
            _fail(f"rows of the input conflict with each other: {error.orig}")
        case DBAPIError():
            _fail(f"the database refuses: {str(error.orig).splitlines()[0]}")
        case Refusal():
            _fail(str(error))
        case OSError():
            _fail(f"{error.filename or 'the system'}: {error.strerror or error}")
    _fail(f"something unexpected went wrong: {type(error).__name__}: {error}")


def _show_faults(faults: list[Any]) -> NoReturn:
    for fault in faults[:_SHOWN_FAULTS]:
        typer.echo(str(fault), err=True)
    more = f"; the first {_SHOWN_FAULTS} are shown" if len(faults) > _SHOWN_FAULTS else ""
    _fail(f"{len(faults)} fault{'s' if len(faults) != 1 else ''} found, nothing was changed{more}")


def _fail(sentence: str, *, code: int = 1) -> NoReturn:
    typer.echo(f"normata: {sentence}", err=True)
    raise SystemExit(code)


# --- What commands share


def _settings(**given: object) -> Settings:
    from normata.settings import Settings

    return Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


@contextmanager
def _database(url: str | None, *, create: bool, migrate: bool = False) -> Iterator[Database]:
    """The database, with a current schema.

    Only what writes makes an embedded one where there is none. A server's schema is brought up to date only by those
    who were asked to: others may be using the old one. They secure it anew, too, even where it is current.
    """
    from normata import migrations
    from normata.database import Unavailable, open_database

    database = open_database(_settings(database_url=url), create=create)
    try:
        missing = None if create else database.exists()
        if missing:
            raise Unavailable(f"there is {missing}")
        if database.read_now(migrations.version) != migrations.head() if database.embedded else migrate:
            from normata.migrations import upgrading

            database.write_now(lambda connection: upgrading.prepare(database, connection))
        database.read_now(migrations.require_current)
        yield database
    finally:
        database.close()


@contextmanager
def _progress() -> Iterator[Progress]:
    """A progress bar on standard error where that is a terminal, else nothing."""
    if not sys.stderr.isatty():
        yield lambda _step, _done, _total: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Reading files", total=None)

        def show(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total)

        yield show


@contextmanager
def _many_rows() -> Iterator[None]:
    """Work with rows by the hundred thousand, without Python looking through them for circles again and again.

    There are none to speak of, and it takes a tenth of the time of a load and most of that of reading YAML.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _report(tallies: dict[str, Tally]) -> None:
    for array, tally in tallies.items():
        typer.echo(f"{array}: {tally.inserted} new, {tally.updated} changed, {tally.unchanged} unchanged")
    if not tallies:
        typer.echo("the files hold no rows; nothing was changed")


def _write(url: str | None, work: Callable[[Connection], T], *, create: bool) -> T:
    with _database(url, create=create) as database:
        return database.write_now(work)


# --- Commands


@app.command()
def serve(
    host: HostOption = None,
    port: PortOption = None,
    workers: Annotated[int | None, typer.Option(help="Processes to run; else NORMATA_WORKERS, else 1.")] = None,
    database: DatabaseOption = None,
) -> None:
    """Serve the HTTP interface until interrupted."""
    from normata import __version__, migrations
    from normata.database import open_database
    from normata.serving import base_url, require_free_address, run

    settings = _settings(host=host, port=port, workers=workers, database_url=database)
    require_free_address(settings.host, settings.port)
    with _database(settings.database_url, create=True):
        pass  # the schema is current from here on
    with closing(open_database(settings, serving=True)) as service:
        service.read_now(migrations.version)  # told here what every request would be told: the service may not act
    typer.echo(f"Normata {__version__} serves {base_url(settings)}, documentation at /docs; stop with Ctrl-C", err=True)
    run(settings)


@app.command()
def demo(host: HostOption = None, port: PortOption = None, database: DatabaseOption = None) -> None:
    """Fill a database with a made-up company, print how to ask for its data, and serve it until interrupted.

    Run again, it takes the database as it has become and only makes a new token.
    """
    from normata import demo as content
    from normata.serving import require_free_address, run

    settings = _settings(host=host, port=port, workers=1, database_url=database)
    require_free_address(settings.host, settings.port)
    with _database(settings.database_url, create=True, migrate=True) as opened:
        if not opened.read_now(content.is_loaded):
            if opened.read_now(content.holds_others):
                _fail("the database holds an organization that is not the demo's; name another one with --database")
            with _progress() as progress:
                opened.write_now(lambda connection: content.fill(connection, progress))
        token = opened.write_now(content.new_token)
        for line in opened.read_now(lambda connection: list(content.invitation(connection, settings, token))):
            typer.echo(line)
    run(settings)


@app.command()
def load(files: FilesArgument, database: DatabaseOption = None) -> None:
    """Load bundles: all their rows, inserted or updated by id, or none and every reason why."""
    from normata.bundle import loading, reading

    with _many_rows(), _progress() as progress:
        rows = reading.read(files)
        tallies = _write(database, lambda connection: loading.load(connection, rows, progress), create=True)
    _report(tallies)


@app.command()
def dump(
    organization: Annotated[
        str | None,
        typer.Argument(
            metavar="[ORG]", help="The organization, by id or slug; may be left out where there is only one."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All organizations, with tokens (as digests) and audit events.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="The file to write, else standard output.", show_default=False)
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Write all of an organization, or everything, as a bundle that loads into an empty database."""
    from normata.bundle.dumping import dump as write_bundle
    from normata.identity.organizations import find

    if everything and organization is not None:
        _fail("--all takes no organization", code=2)
    with _database(database, create=False) as opened:

        def work(connection: Connection) -> None:
            organization_id = None if everything else find(connection, organization)
            if output is None:
                # JSON is UTF-8 (RFC 8259), whatever the terminal's locale.
                cast("TextIOWrapper", sys.stdout).reconfigure(encoding="utf-8")
                write_bundle(connection, organization_id, sys.stdout)
                return
            with _replacing(output) as file:
                write_bundle(connection, organization_id, file)

        opened.read_now(work)


@contextmanager
def _replacing(path: Path) -> Iterator[Any]:
    """A file that takes the place of ``path`` once it is complete, so that a failure leaves the old one whole."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@app.command(name="import")
def import_(files: FilesArgument, database: DatabaseOption = None) -> None:
    """Import catalogs and mappings made elsewhere: OSCAL (JSON, YAML) and CISO Assistant libraries (YAML).

    Each file is told by its content. Importing the same version again changes nothing. OSCAL needs the extra
    normata[oscal].
    """
    from normata.bundle import loading
    from normata.frameworks import importing

    with _many_rows(), _progress() as progress:
        rows = importing.read(files, lambda name: progress(f"Reading {name}", 0, 0))
        tallies = _write(database, lambda connection: loading.load(connection, rows, progress, sync=True), create=True)
    _report(tallies)


@app.command()
def adopt(
    organization: Annotated[str, typer.Argument(metavar="ORG", help="The organization, by id or slug.")],
    frameworks: Annotated[
        list[str], typer.Argument(metavar="FRAMEWORK…", help="Frameworks, by id, slug or identifier.")
    ],
    database: DatabaseOption = None,
) -> None:
    """Have an organization adopt frameworks, and bring its coverage up to date."""
    from normata.frameworks.adoption import adopt as adopt_frameworks
    from normata.identity.organizations import find

    def work(connection: Connection) -> dict[str, bool]:
        return adopt_frameworks(connection, find(connection, organization), frameworks)

    for framework_id, new in _write(database, work, create=False).items():
        typer.echo(f"{framework_id}: {'adopted' if new else 'was adopted already'}")


@tokens.command("create")
def create_token(
    user: Annotated[str, typer.Option(metavar="EMAIL", help="The user that the token acts as.")],
    scope: Annotated[str, typer.Option(metavar="read|write", help="What the token may do.")] = "read",
    expires_in: Annotated[
        str,
        typer.Option(metavar="90d|12h|never", help="How long it is good: minutes (m), hours (h), days (d), weeks (w)."),
    ] = "90d",
    database: DatabaseOption = None,
) -> None:
    """Make a token and print it, alone, on standard output. It is kept nowhere: this is the only time it is shown."""
    from normata.identity import tokens as life

    if scope not in ("read", "write"):
        _fail("--scope must be read or write", code=2)
    lifetime = _lifetime(expires_in)
    try:
        token = _write(
            database,
            lambda connection: life.create(connection, email=user, scope=scope, lifetime=lifetime),
            create=False,
        )
    except life.NoSuchUser:
        _fail(f"there is no user with the email address {user}")
    typer.echo(token)


def _lifetime(text: str) -> timedelta | None:
    if text == "never":
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text)
    if match is None:
        _fail("--expires-in must be a number with m, h, d or w, such as 90d, or never", code=2)
    unit = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}[match[2]]
    lifetime = timedelta(**{unit: int(match[1])})
    if lifetime > timedelta(days=36_500):
        _fail("--expires-in must be at most 100 years; for no end, say never", code=2)
    return lifetime


@tokens.command("list")
def list_tokens(
    user: Annotated[str | None, typer.Option(metavar="EMAIL", help="Only the tokens of this user.")] = None,
    database: DatabaseOption = None,
) -> None:
    """List tokens, without the tokens themselves: a line each, with tabs between the columns."""
    from normata.identity import tokens as life

    with _database(database, create=False) as opened:
        rows = opened.read_now(lambda connection: life.listing(connection, email=user))
    columns = ("id", "email", "scope", "created_at", "expires_at", "last_used_at", "revoked_at")
    typer.echo("\t".join(columns))
    for row in rows:
        typer.echo("\t".join(row[column] or "-" for column in columns))


@tokens.command("revoke")
def revoke_token(
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="The id of the token, as `normata token list` shows it.")
    ],
    database: DatabaseOption = None,
) -> None:
    """Revoke a token. From the next request on it is worth nothing."""
    from normata.identity import tokens as life

    with _database(database, create=False) as opened:
        if not opened.write_now(lambda connection: life.revoke(connection, token_id)):
            _fail(f"there is no token with the id {token_id}")
    typer.echo(f"{token_id}: revoked")


@app.command()
def migrate(database: DatabaseOption = None) -> None:
    """Make the database, or bring its schema up to date. Where it is, nothing is changed."""
    from normata import migrations

    with _database(database, create=True, migrate=True) as opened:
        typer.echo(f"the schema is at {opened.read_now(migrations.version)}")


@app.command()
def check(database: DatabaseOption = None) -> None:
    """Check the settings, the schema and the integrity of the database, and list what is in it."""
    from normata import checkup, migrations
    from normata.database import Unavailable, open_database

    opened = open_database(_settings(database_url=database))
    missing = opened.exists()
    if missing:
        raise Unavailable(f"there is {missing}")
    typer.echo("settings: good")
    opened.read_now(migrations.require_current)
    typer.echo(f"schema: current ({migrations.head()})")
    faults = opened.read_now(lambda connection: list(checkup.faults(opened, connection)))
    for fault in faults:
        typer.echo(fault, err=True)
    if faults:
        _fail("the database is not whole")
    typer.echo("integrity: good")
    for line in opened.read_now(lambda connection: list(checkup.contents(connection))):
        typer.echo(line)
    opened.close()
