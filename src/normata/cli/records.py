"""The commands for records: ``record list``, ``show``, ``create``, ``change``, ``archive`` and ``restore``."""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from normata.cli import calls
from normata.cli.backend import Refused, as_json, every_item
from normata.cli.connection import ServerOption, connected
from normata.cli.shared import DatabaseOption, Group, echo, fail
from normata.core.log import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from normata.cli.backend import Backend

_COLUMNS = ("id", "shortId", "slug", "name", "status", "archivedAt")
_TITLES = ("name", "title", "acronym")
_OF_COMMAND = ("organizationId", "limit", "page", "cursor", "archived", "search", "format")  # of the query of a list
_LARGEST = 2**24  # bytes of a file of fields

app = typer.Typer(
    cls=Group,
    help="List, show, create, change, archive and restore records: tasks, vendors, risks and all other kinds.",
    no_args_is_help=True,
)

OrganizationArgument = Annotated[str, typer.Argument(metavar="ORG", help="The organization, by id or slug.")]
KindArgument = Annotated[
    str, typer.Argument(metavar="KIND", help=f"The kind of the records: {', '.join(calls.KINDS)}.")
]
RecordArgument = Annotated[str, typer.Argument(metavar="RECORD", help="The record, by id or slug.")]
RecordsArgument = Annotated[list[str], typer.Argument(metavar="RECORD…", help="The records, by id or slug.")]
_FIELDS = (
    "A field and its text, such as name=Mail, or its value as JSON, such as ownerId:=null. The names are those of the"
    " HTTP interface."
)
FieldsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[FIELD=TEXT|FIELD:=JSON]…", help=_FIELDS, show_default=False)
]
FiltersArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FIELD=TEXT]…",
        help="A filter, such as status=OPEN, or the order, as sortColumn=deadline: the parameters of the list over"
        " HTTP.",
        show_default=False,
    ),
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="A file with fields as a JSON object; - for standard input. Those in the arguments take precedence.",
        show_default=False,
    ),
]


@app.command("list")
def list_(
    organization: OrganizationArgument,
    kind: KindArgument,
    filters: FiltersArgument = None,
    *,
    search: Annotated[str | None, typer.Option(help="Words that must all occur.", show_default=False)] = None,
    archived: Annotated[
        Literal["exclude", "include", "only"], typer.Option(help="Whether archived records are listed.")
    ] = "exclude",
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD", help="A field to print. May be repeated. Default: what all kinds have.", show_default=False
        ),
    ] = None,
    wanted: Annotated[
        Literal["json"] | None,
        typer.Option("--format", help="JSON: an object per line, with all fields. Default: a table."),
    ] = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """List the records of a kind, newest first: one per line, with tabs between the columns."""
    require_kind(kind)
    query = filters_of(filters or ()) | {"search": search, "archived": archived}
    columns = tuple(column or _COLUMNS)
    with connected(database, server) as backend:
        owner = backend.organization(organization)
        found = every_item(backend, calls.of_kind("GET", kind), **query, organizationId=owner)
        first = next(found, None)  # before anything is printed: the list may be refused
        if wanted is None:
            typer.echo("\t".join(map(visible, columns)))
        for one in () if first is None else chain([first], found):
            typer.echo(visible(as_json(one)) if wanted else "\t".join(_cell(one, name) for name in columns))


@app.command("show")
def show(
    organization: OrganizationArgument,
    kind: KindArgument,
    record: RecordArgument,
    *,
    wanted: Annotated[
        Literal["json"] | None, typer.Option("--format", help="JSON: one object. Default: a field per line.")
    ] = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Show a record, live or archived: its fields, one per line, but for those without a value."""
    require_kind(kind)
    with connected(database, server) as backend:
        found = _find(backend, backend.organization(organization), kind, record)
    if wanted == "json":
        echo(as_json(found))
        return
    for name, value in found.items():
        if value not in (None, [], {}):
            echo(f"{name}: {_shown(value)}")


@app.command("create")
def create(
    organization: OrganizationArgument,
    kind: KindArgument,
    fields: FieldsArgument = None,
    *,
    file: FileOption = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Create a record, and print its id and name."""
    require_kind(kind)
    values = _values(fields or (), file)
    with connected(database, server) as backend:
        body = values | {"organizationId": backend.organization(organization)}
        _print(backend.change(calls.of_kind("POST", kind), body=body))


@app.command("change")
def change(
    organization: OrganizationArgument,
    kind: KindArgument,
    record: RecordArgument,
    fields: FieldsArgument = None,
    *,
    file: FileOption = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Change fields of a record; all others stay as they are."""
    require_kind(kind)
    values = _values(fields or (), file)
    with connected(database, server) as backend:
        found = _find(backend, backend.organization(organization), kind, record)
        _print(backend.change(calls.of_kind("PATCH", kind, "{id}/"), found["id"], body=values))


@app.command("archive")
def archive(
    organization: OrganizationArgument,
    kind: KindArgument,
    records: RecordsArgument,
    *,
    reason: Annotated[str | None, typer.Option(help="Why, for later readers.", show_default=False)] = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Archive records, one after the other. Nothing is deleted: `normata record restore` brings them back."""
    require_kind(kind)
    call = calls.of_kind("POST", kind, "{id}/archive/")
    with connected(database, server) as backend:
        for found in _find_all(backend, backend.organization(organization), kind, records):
            backend.change(call, found["id"], body=None if reason is None else {"reason": reason})
            echo(f"{found['id']}: archived")


@app.command("restore")
def restore(
    organization: OrganizationArgument,
    kind: KindArgument,
    records: RecordsArgument,
    *,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Restore archived records, one after the other."""
    require_kind(kind)
    call = calls.of_kind("POST", kind, "{id}/restore/")
    with connected(database, server) as backend:
        for found in _find_all(backend, backend.organization(organization), kind, records):
            backend.change(call, found["id"])
            echo(f"{found['id']}: restored")


# --- Records


def _find_all(backend: Backend, organization: str, kind: str, names: Sequence[str]) -> list[Any]:
    """The records with these names, all of which must exist before anything is done to one of them."""
    return [_find(backend, organization, kind, name) for name in names]


def _find(backend: Backend, organization: str, kind: str, name: str) -> Any:
    """The record with this id or slug, live or archived; an id takes precedence over an equal slug."""
    if name.strip("."):  # a path cannot end with those
        try:
            return backend.read(calls.of_kind("GET", kind, "{id}/"), name, organizationId=organization)
        except Refused as error:
            if error.status != 404:
                raise
    try:
        query = {"organizationId": organization, "slug": name, "archived": "include"}
        found = list(every_item(backend, calls.of_kind("GET", kind), **query)) if name else []
    except Refused as error:
        if error.fault("slug") is None:
            raise
        found = []  # the kind has no slugs, or none can be like this
    live = [one for one in found if one["archivedAt"] is None] or found
    if len(live) > 1:
        fail(f"{name!r} names {len(live)} records; name one by its id: {', '.join(one['id'] for one in live)}")
    if not live:
        fail(f"the organization has no record {name!r} of the kind {kind}")
    return live[0]


def _title(record: Mapping[str, Any]) -> str:
    return next((str(record[name]) for name in _TITLES if record.get(name) is not None), "-")


def _print(record: Mapping[str, Any]) -> None:
    echo(f"{record['id']}: {_title(record)}")


def _cell(record: Mapping[str, Any], name: str) -> str:
    if name == "name":
        return visible(_title(record))
    value = record.get(name)
    return "-" if value is None else visible(_shown(value))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value)


# --- Arguments


def require_kind(kind: str) -> None:
    """End the command unless there is a kind of this name."""
    if kind not in calls.KINDS:
        fail(f"there is no kind {kind!r}; there are {', '.join(calls.KINDS)}", code=2)


def _texts(arguments: Iterable[str]) -> Iterable[tuple[str, str]]:
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not name or not equals:
            fail(f"{argument!r} is not FIELD=TEXT", code=2)
        yield name, value


def filters_of(arguments: Iterable[str]) -> dict[str, Any]:
    """The parameters of a list in the arguments of a command."""
    query: dict[str, Any] = {}
    for name, value in _texts(arguments):
        if name in _OF_COMMAND:
            fail(f"{name} is no filter; use the options and ORG", code=2)
        query.setdefault(name, []).append(value)
    return query


def _values(arguments: Iterable[str], file: Path | None) -> dict[str, Any]:
    """The fields of the file and of the arguments."""
    values = {} if file is None else _read(file)
    for name, value in _texts(arguments):
        if not name.endswith(":"):
            values[name] = value
            continue
        try:
            values[name[:-1]] = _parsed(value)
        except (ValueError, RecursionError):
            fail(f"the value of {name[:-1]} is not JSON; for a text write {name[:-1]}=TEXT", code=2)
    if not values:
        fail("name at least one field, as FIELD=TEXT, or a file with --json", code=2)
    if "organizationId" in values:
        fail("organizationId is no field; the organization is ORG", code=2)
    return values


def _parsed(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError, also for numbers and halves of characters that JSON cannot have."""
    value = json.loads(text)
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    return value


def _read(file: Path) -> dict[str, Any]:
    name = "standard input" if str(file) == "-" else str(file)
    try:
        if str(file) == "-":
            content = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(_LARGEST + 1)
        values = _parsed(content) if len(content) <= _LARGEST else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        fail(f"{name} must have one JSON object, of at most {_LARGEST // 2**20} MiB", code=2)
    return values
