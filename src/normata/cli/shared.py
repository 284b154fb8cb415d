"""Shared parts of commands: options, messages, settings, the database, and a progress bar."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from normata.core.log import visible

if TYPE_CHECKING:
    from normata.bundle.loading import Progress
    from normata.cli.meaning import Difference
    from normata.core.changes.unit_of_work import UnitOfWork
    from normata.core.db.database import Database
    from normata.settings import Settings

T = TypeVar("T")

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="The database, such as sqlite:///normata.db. Default: NORMATA_DATABASE_URL, else normata.db in this"
        " folder.",
        show_default=False,
    ),
]
FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE…", help="The files to read.", show_default=False)]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file if it exists, without asking.")]


# --- Messages


def echo(text: str, *, err: bool = False) -> None:
    """Print a line. Control characters become visible: others may have written parts of it."""
    typer.echo(visible(text), err=err)


def fail(sentence: str, *, code: int = 1) -> NoReturn:
    """End the command with a sentence on standard error."""
    echo(f"normata: {sentence}", err=True)
    raise SystemExit(code)


# --- Settings and database


def settings_with(**options: object) -> Settings:
    """The settings, with options taking precedence over the environment and the file of settings."""
    from normata.settings import Settings

    load_settings_file()
    return Settings(**{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]


def load_settings_file() -> None:
    """Take the settings of the file of settings into the environment. Raises BadSetting."""
    from normata.cli import env_file

    env_file.load(_env_file.get())


@contextmanager
def opened(
    url: str | None,
    *,
    create: bool,
    migrate: bool = False,
    finish: bool = True,
    serve: bool = False,
    begin: bool = False,
    on_upgrade: Callable[[list[Difference]], None] | None = None,
) -> Iterator[Database]:
    """The database, with a current schema.

    Only commands that may ``create`` one make an embedded database where there is none. An embedded database is brought
    up to date by every command. A server's schema is changed only with ``migrate``, since others may be using the old
    one; then it is also secured again, even where it is current. Without ``finish``, what the previous version still
    needs is left there. To ``serve``, a server's schema may also be that of the next version. To ``begin``, a server's
    database that is empty gets its schema. ``on_upgrade`` gets the changes in meaning of an upgrade; if it is null,
    these are printed.
    """
    from normata.core.db.opening import open_database
    from normata.core.schema import migrations
    from normata.errors import Unavailable

    database = open_database(settings_with(database_url=url), create=create)
    try:
        missing = None if create else database.exists()
        if missing:
            raise Unavailable(f"there is {missing}")
        found = database.read_now(migrations.version)
        if found != migrations.head() if database.embedded else migrate or (begin and found is None):
            from normata.cli.upgrade import upgrade

            (on_upgrade or _print_differences)(upgrade(database, finish=finish, command=_command.get()).differences)
        if not (serve and database.read_now(migrations.is_servable)):
            database.read_now(migrations.require_current)
        yield database
    finally:
        database.close()


def _print_differences(found: list[Difference]) -> None:
    from normata.cli.meaning import sentences

    for sentence in sentences(found):
        echo(f"the upgrade of the database: {sentence}", err=True)


def changed(url: str | None, work: Callable[[UnitOfWork], T], *, create: bool = False, begin: bool = False) -> T:
    """Run ``work`` in a unit of work, and return its result once everything is durable."""
    with opened(url, create=create, begin=begin) as database:
        return change(database, work)


def change(database: Database, work: Callable[[UnitOfWork], T]) -> T:
    """:func:`changed`, in a database that is open."""
    from normata.core.changes.unit_of_work import Actor
    from normata.events.sealing import seal_all_now
    from normata.wiring import changes_of

    mails = bool(settings_with().smtp_url)
    result = changes_of(database, mails=mails).make_now(work, actor=Actor(command=_command.get()))
    for reason in seal_all_now(database):
        echo(f"warning: {reason}", err=True)
    return result


# --- Rows and addresses


def print_table(columns: Sequence[str], rows: Iterable[Any]) -> None:
    """Print rows, one per line, with tabs between the columns, and null as a hyphen."""
    typer.echo("\t".join(columns))
    for row in rows:
        values = (getattr(row, name) for name in columns)
        typer.echo("\t".join("-" if value is None else visible(str(value)) for value in values))


def require(kind: Any, value: str, sentence: str) -> None:
    """End the command with a sentence unless ``value`` is one of a type of fields."""
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        fail(sentence, code=2)


def require_address(email: str) -> None:
    """End the command unless ``email`` is an address."""
    from normata.core.schema.fields import VisibleEmail

    require(VisibleEmail, email, f"{email} is not a valid email address")


def require_name(name: str) -> None:
    """End the command unless ``name`` is one that people can read."""
    from normata.core.schema.fields import VisibleName

    require(
        VisibleName,
        name,
        "a name must have 1 to 500 visible characters, and no control characters or direction marks",
    )


def require_reason(reason: str) -> None:
    """End the command unless ``reason`` is one that people can read."""
    from normata.core.schema.fields import VisibleName

    require(VisibleName, reason, "a reason must have 1 to 500 visible characters, in one line")


# --- The command that runs, and its settings

_command: ContextVar[str] = ContextVar("command", default="normata")
_env_file: ContextVar[Path | None] = ContextVar("env_file", default=None)
_ENV_FILE_HELP = (
    "The file of settings. Default: NORMATA_ENV_FILE, else /etc/normata/normata.env if it exists. Variables of the"
    " environment take precedence over it."
)


def _take_env_file(ctx: typer.Context, path: Path | None) -> Path | None:
    """Read the settings from this file. The program's own option comes first, and without it nothing is named yet."""
    if path is not None or ctx.parent is None:
        _env_file.set(path)
    return path


EnvFileOption = Annotated[
    Path | None,
    typer.Option("--env-file", metavar="FILE", help=_ENV_FILE_HELP, show_default=False, callback=_take_env_file),
]


class Group(TyperGroup):
    """A group of commands. It records which of them runs, for the events, and gives each the program's --env-file."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; null if there is none."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and not isinstance(command, TyperGroup):
            known = {name for parameter in command.params for name in parameter.opts}
            for option in ctx.find_root().command.params:
                if "--env-file" in option.opts and "--env-file" not in known:
                    own = copy(option)
                    own.expose_value = False  # the command's function has no such parameter
                    command.params.append(own)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is to run."""
        name, command, rest = super().resolve_command(ctx, args)
        names = [name or ""]
        while ctx.parent is not None:
            names.append(ctx.info_name)
            ctx = ctx.parent
        _command.set(" ".join(["normata", *reversed(names)]))
        return name, command, rest


# --- Long work


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress bar on standard error if that is a terminal, otherwise nothing."""
    if not sys.stderr.isatty():
        yield lambda _step, _done, _total: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    step_column = TextColumn("{task.description}", markup=False)  # the name of a file may look like markup
    columns = (SpinnerColumn(), step_column, BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Reading files", total=None)

        def show(step: str, done: int, total: int) -> None:
            bar.update(task, description=visible(step), completed=done, total=total)

        yield show


@contextmanager
def many_objects() -> Iterator[None]:
    """Work with hundreds of thousands of rows, without garbage collection.

    There are hardly any reference cycles, and the collection takes a tenth of the time of a load and most of that of
    reading YAML.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def print_row_counts(row_counts: dict[str, Any]) -> None:
    """Print what a load did to the rows of each array."""
    for array, counts in row_counts.items():
        echo(f"{array}: {counts.inserted} new, {counts.updated} changed, {counts.unchanged} unchanged")
    if not row_counts:
        echo("the files have no rows; nothing was changed")
