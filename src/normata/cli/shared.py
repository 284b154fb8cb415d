"""What commands share: options, messages, settings, the database, and a progress bar."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from normata.core.log import visible

if TYPE_CHECKING:
    from normata.bundle.loading import Progress
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
    """The settings, with what was given as options in place of the environment's."""
    from normata.settings import Settings

    return Settings(**{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]


@contextmanager
def opened(
    url: str | None,
    *,
    create: bool,
    migrate: bool = False,
    finish: bool = True,
    serve: bool = False,
    begin: bool = False,
) -> Iterator[Database]:
    """The database, with a current schema.

    Only commands that may ``create`` one make an embedded database where there is none. An embedded database is
    brought up to date by every command. A server's schema is changed only with ``migrate``, since others may be using
    the old one; then it is also secured again, even where it is current. Without ``finish``, what the version before
    still needs is left there. To ``serve``, a server's schema may also be that of the next version. To ``begin``, a
    server's database that is empty gets its schema.
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
            from normata.core.schema.migrations import upgrading
            from normata.events.sealing import seal_all_now
            from normata.operations import SECURITY
            from normata.tables import Table

            upgrading.prepare(database, Table.metadata, SECURITY, finish=finish or database.embedded)
            seal_all_now(database)  # the events that an older version has written
        if not (serve and database.read_now(migrations.is_servable)):
            database.read_now(migrations.require_current)
        yield database
    finally:
        database.close()


def changed(url: str | None, work: Callable[[UnitOfWork], T], *, create: bool = False, begin: bool = False) -> T:
    """What ``work`` returns, once it and all that follows from it are durable."""
    with opened(url, create=create, begin=begin) as database:
        return change(database, work)


def change(database: Database, work: Callable[[UnitOfWork], T]) -> T:
    """:func:`changed`, in a database that is open."""
    from normata.core.changes.unit_of_work import Actor
    from normata.events.sealing import seal_all_now
    from normata.wiring import changes_of

    result = changes_of(database).make_now(work, actor=Actor(command=_command.get()))
    seal_all_now(database)
    return result


# --- Rows and addresses


def print_table(columns: Sequence[str], rows: Iterable[Any]) -> None:
    """Print rows one a line, with tabs between the columns; what is null as a hyphen."""
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

    require(VisibleEmail, email, f"{email} is no address of e-mail")


def require_name(name: str) -> None:
    """End the command unless ``name`` is one that people can read."""
    from normata.core.schema.fields import VisibleName

    require(
        VisibleName,
        name,
        "a name has 1 to 500 characters that can be seen, and no control characters or direction marks",
    )


# --- Which command runs

_command: ContextVar[str] = ContextVar("command", default="normata")


class Group(TyperGroup):
    """A group of commands that records which of them runs, for the events."""

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
    """Work with rows by the hundred thousand, without a search for reference cycles again and again.

    There are hardly any cycles, and the search takes a tenth of the time of a load and most of that of reading YAML.
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
        echo("the files hold no rows; nothing was changed")
