"""Commands about the past: the option ``--as-of`` of others, ``coverage history`` and ``coverage changes``."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import typer

from normata.cli import calls
from normata.cli.backend import Refused, as_json, every_item
from normata.cli.connection import ServerOption, connected
from normata.cli.shared import DatabaseOption, Group, echo, fail

AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="MOMENT",
        help="What held at a moment instead of now: a date, or an RFC 3339 time. A date is the midnight (UTC) at its"
        " start.",
        show_default=False,
    ),
]

app = typer.Typer(
    cls=Group, no_args_is_help=True, help="Coverage over time.", rich_markup_mode=None, pretty_exceptions_enable=False
)

OrganizationArgument = Annotated[str, typer.Argument(metavar="ORG", help="The organization, by id or slug.")]
FormatOption = Annotated[
    Literal["json", "csv"] | None,
    typer.Option("--format", help="The format. Default: a table.", show_default=False),
]

_NAMES = ("full", "partial", "none", "excluded", "conflicts", "stale")


def moment_of(value: str | None) -> str | None:
    """A moment of the command line in wire form; null for none. Ends the command if it is none."""
    if value is None:
        return None
    from normata.core.schema.fields import parse_timestamp

    try:
        return parse_timestamp(value)
    except ValueError as error:
        fail(f"{value!r} is no moment: it {error}", code=2)


@contextmanager
def about(moment: str | None) -> Iterator[None]:
    """Say of the moment of --as-of what is wrong with it. Raises CommandError."""
    from normata.errors import CommandError

    try:
        yield
    except Refused as error:
        reason = error.fault("asOf")
        if reason is None:
            raise
        raise CommandError(f"{moment} {reason}") from None


@contextmanager
def _about_span() -> Iterator[None]:
    """The same of --from and --to."""
    from normata.errors import CommandError

    try:
        yield
    except Refused as error:
        reason = error.fault("from", "to", "step")
        if reason is None:
            raise
        raise CommandError(f"--from and --to {reason}") from None


@app.command("history")
def history(
    organization: OrganizationArgument,
    framework: Annotated[str, typer.Argument(metavar="FRAMEWORK", help="A framework, by id, slug or identifier.")],
    *,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="MOMENT", help="The first moment. Default: a year ago.", show_default=False),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="MOMENT", help="The last moment. Default: now.", show_default=False)
    ] = None,
    step: Annotated[Literal["day", "week", "month"], typer.Option(help="The time between two moments.")] = "week",
    wanted: FormatOption = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Show how the requirements of a framework were covered over time."""
    query = {"step": step, "from": moment_of(since), "to": moment_of(until)}
    with connected(database, server) as backend, _about_span():
        owner = backend.organization(organization)
        framework_id = backend.adopted(owner, framework)
        found = backend.read(calls.HISTORY, framework_id, organizationId=owner, **query)
    points = found["points"]
    if wanted == "json":
        echo(as_json(found))
    elif wanted == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\r\n")
        writer.writerow(["at", "adopted", *_NAMES])
        writer.writerows([point["at"], point["isAdopted"], *(point[name] for name in _NAMES)] for point in points)
    else:
        _print(points)


@app.command("changes")
def changes(
    organization: OrganizationArgument,
    *,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="MOMENT", help="The earlier moment. Default: 30 days ago.", show_default=False),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="MOMENT", help="The later moment. Default: now.", show_default=False)
    ] = None,
    wanted: FormatOption = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Show whose effective status differs between two moments, and who has made it so."""
    query = {"from": moment_of(since), "to": moment_of(until)}
    with connected(database, server) as backend, _about_span():
        owner = backend.organization(organization)
        found = list(every_item(backend, calls.CHANGES, organizationId=owner, **query))
        users = {event["userId"] for one in found for event in one["events"]} - {None}
        names = backend.user_names(owner, users)
    if wanted == "json":
        echo(as_json(found))
    elif wanted == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\r\n")
        writer.writerow(["framework", "control", "before", "after", "at", "by", "action"])
        writer.writerows(_lines(found, names))
    else:
        _print_changes(_lines(found, names))


def _lines(found: list[dict[str, Any]], names: Mapping[str, str]) -> Iterator[list[str]]:
    """A line for each event that changed a control; one for a change that has none, as by a centralized catalog."""
    for one in found:
        start = [one["framework"]["identifier"], one["identifier"], one["before"] or "", one["after"] or ""]
        for event in one["events"]:
            yield [*start, event["at"], names.get(event["userId"], "normata"), event["action"]]
        if not one["events"]:
            yield [*start, one["changedAt"][-1], "", ""]


def _print_changes(lines: Iterable[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("Framework", "Control", "Before", "After", "When", "Who", "What", box=None, pad_edge=False)
    for column in table.columns:
        column.no_wrap = True
    for *names, at, who, what in lines:
        table.add_row(*names, at[: len("2026-11-20 12:00")].replace("T", " "), who, what)
    Console(file=sys.stdout).print(table)


def _print(points: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("Day", *(name.title() for name in _NAMES), box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for point in points:
        counts = [str(point[name]) for name in _NAMES] if point["isAdopted"] else ["-"] * len(_NAMES)
        table.add_row(point["at"][: len("2026-11-20")], *counts)
    Console(file=sys.stdout).print(table)
