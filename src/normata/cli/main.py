"""The command line: every command, and how errors are printed.

What the commands do is in the modules beside this one. Each command imports what it needs when it runs, so that
``normata --help`` and small commands are quick.
"""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from normata.cli import (
    backup,
    coverage,
    data,
    erase,
    events,
    evidence,
    explain,
    importing,
    members,
    organizations,
    past,
    people,
    records,
    registers,
    reports,
    serve,
    upkeep,
)
from normata.cli.shared import EnvFileOption, Group, echo, fail

_SHOWN_FAULTS = 50

app = typer.Typer(
    name="normata",
    cls=Group,
    help="Normata, a self-hosted compliance service: frameworks, live coverage, and records that are never lost.",
    no_args_is_help=True,
    rich_markup_mode=None,  # Rich would take normata[oscal] for markup
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(serve.serve)
app.command()(serve.demo)
app.command()(organizations.init)
app.command()(data.load)
app.command()(data.dump)
app.command("import")(importing.import_)
app.command()(coverage.adopt)
app.command()(coverage.leave)
app.command()(coverage.assess)
app.command()(reports.gaps)
app.add_typer(reports.statements, name="soa")
app.command()(explain.explain)
app.add_typer(past.app, name="coverage")
app.add_typer(records.app, name="record")
app.command()(registers.export_records)
app.command()(registers.import_records)
app.add_typer(organizations.app, name="organization")
app.add_typer(members.member, name="member")
members.user.command("erase")(erase.erase_user)
app.add_typer(members.user, name="user")
app.add_typer(people.tokens, name="token")
app.add_typer(events.app, name="events")
app.command()(upkeep.migrate)
app.command()(upkeep.check)
app.add_typer(backup.app, name="backup")
app.add_typer(evidence.app, name="evidence")


def _print_version(wanted: bool) -> None:
    if wanted:
        from normata import __version__

        echo(f"normata {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    _env_file: EnvFileOption = None,
) -> None: ...


def main() -> None:
    """Run the command line. Every error is printed as one sentence, never as a traceback."""
    try:
        app(prog_name="normata")
    except BrokenPipeError:
        sys.stderr.close()  # the reader has closed the pipe
        raise SystemExit(1) from None
    except Exception as error:  # no traceback for users
        _report_error(error)


def _report_error(error: Exception) -> NoReturn:
    from normata.cli.backend import Refused

    if isinstance(error, Refused):
        if error.faults:
            _show_faults([str(fault) for fault in error.faults])
        fail(str(error))
    from pydantic import ValidationError
    from sqlalchemy.exc import DBAPIError

    from normata.core.changes.source import FaultyInput
    from normata.core.db.database import BadDatabaseUrl
    from normata.core.db.transaction import ConstraintViolation, NotPermitted
    from normata.core.schema.faults import describe
    from normata.errors import BadSetting, DomainError, Unavailable

    match error:
        case FaultyInput():
            _show_faults([str(fault) for fault in error.faults])
        case BadDatabaseUrl() | BadSetting():
            fail(str(error), code=2)
        case ValidationError():
            fault = error.errors()[0]
            fail(f"the setting NORMATA_{str(fault['loc'][0]).upper()} is wrong: it {describe(fault)[1]}", code=2)
        case UnicodeEncodeError():
            fail("an argument is not valid UTF-8", code=2)
        case Unavailable():
            fail(f"the database cannot be used: {error}")
        case NotPermitted():
            fail(
                f"the login role of the database URL does not have the rights for this ({error}); `normata serve`"
                f" needs a member"
                " of the service's role, every other command the owner of the tables"
            )
        case ConstraintViolation():
            fail(f"rows conflict with each other or with stored rows, so nothing was changed: {error}")
        case DBAPIError():
            fail(f"the database reports an error: {str(error.orig).splitlines()[0]}")
        case DomainError():
            fail(str(error))
        case OSError():
            fail(f"{error.filename or 'the system'}: {error.strerror or error}")
    fail(f"unexpected error: {type(error).__name__}: {error}")


def _show_faults(faults: list[str]) -> NoReturn:
    for fault in faults[:_SHOWN_FAULTS]:
        echo(fault, err=True)
    more = f"; the first {_SHOWN_FAULTS} are shown" if len(faults) > _SHOWN_FAULTS else ""
    fail(f"{len(faults)} fault{'s' if len(faults) != 1 else ''} found, nothing was changed{more}")


if __name__ == "__main__":
    main()
