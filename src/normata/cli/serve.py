"""The commands that serve: ``serve`` and ``demo``."""

from __future__ import annotations

import sys
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from normata.cli.shared import DatabaseOption, change, echo, fail, opened, progress, settings_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from normata.core.db.database import Database
    from normata.settings import Settings

HostOption = Annotated[
    str | None,
    typer.Option(
        help="The address to listen on, or a name such as localhost. Default: NORMATA_HOST, else 127.0.0.1.",
        show_default=False,
    ),
]
PortOption = Annotated[
    int | None, typer.Option(help="The port to listen on. Default: NORMATA_PORT, else 8000.", show_default=False)
]
WorkersOption = Annotated[
    int | None, typer.Option(help="The number of processes. Default: NORMATA_WORKERS, else 1.", show_default=False)
]


def serve(
    host: HostOption = None,
    port: PortOption = None,
    workers: WorkersOption = None,
    database: DatabaseOption = None,
) -> None:
    """Serve the API and the console until interrupted."""
    from functools import partial

    from normata.core.http.server import require_free_address, run
    from normata.core.http.telemetry import require_possible
    from normata.files.opening import open_store
    from normata.identity.openid.configuration import single_sign_on

    settings = settings_with(host=host, port=port, workers=workers, database_url=database)
    require_possible(settings)
    single_sign_on(settings)
    open_store(settings)
    require_free_address(settings.host, settings.port)
    run(settings, prepare=partial(_prepare, settings), announce=partial(_announce, settings))


def _prepare(settings: Settings) -> Mapping[str, Sequence[str]]:
    """Bring the database up to date, see that it can be served, and print and return the warnings, by their events."""
    from normata.console.site import Site
    from normata.core.db.opening import open_database
    from normata.core.schema import migrations

    with opened(settings.database_url, create=True, serve=True):
        pass  # the schema version is current
    with closing(open_database(settings, serving=True)) as service:
        service.read_now(migrations.version)  # fails once here, and not in each request, if the service lacks rights
        warnings = {"unsafe_login": service.read_now(lambda transaction: list(service.serving_warnings(transaction)))}
        warnings |= _about_marks(service, settings)
    warnings["unsafe_sign_in"] = list(Site(settings.public_url).warnings())
    for warning in chain.from_iterable(warnings.values()):
        echo(f"warning: {warning}", err=True)
    return warnings


def _about_marks(service: Database, settings: Settings) -> dict[str, list[str]]:
    """Warnings of the key's marks: that the database is older than the newest signed checkpoint."""
    from normata.events.keys import KeyUnusable, Signer
    from normata.events.marks import Marks, rollbacks

    signer = Signer(settings.event_key_file)
    try:
        marks = Marks(signer).all()
        found = service.read_now(lambda transaction: list(rollbacks(transaction, signer, marks)))
        return {"rolled_back": found, "event_marks_unusable": list(Marks(signer).warnings())}
    except KeyUnusable as error:
        return {"event_marks_unusable": [str(error)]}


def _announce(settings: Settings, warnings: Mapping[str, Sequence[str]]) -> None:
    """Print the address of the service: as a log line if programs read the output, otherwise as a sentence."""
    from normata import __version__
    from normata.core.http.server import base_url

    url = base_url(settings)
    if settings.log_format == "text" or sys.stderr.isatty():
        echo(f"Normata {__version__} serves {url}, documentation at /docs; stop with Ctrl-C", err=True)
        return

    from normata.core import log

    log.configure(settings)
    log.logger.info("serving", version=__version__, url=url, workers=settings.workers)
    for event, reasons in warnings.items():
        for reason in reasons:
            log.logger.warning(event, reason=reason)


def demo(host: HostOption = None, port: PortOption = None, database: DatabaseOption = None) -> None:
    """Fill a database with a fictional company, print requests to try, and serve it until interrupted.

    If the database already has the demo, its data does not change, but you get a new link and a new token.
    """
    from functools import partial

    from normata.cli import demo as content
    from normata.core.http.server import require_free_address, run
    from normata.core.http.telemetry import require_possible
    from normata.files.opening import open_store
    from normata.identity.openid.configuration import single_sign_on

    settings = settings_with(host=host, port=port, workers=1, database_url=database)
    require_possible(settings)
    single_sign_on(settings)
    open_store(settings)
    require_free_address(settings.host, settings.port)
    with opened(settings.database_url, create=True, migrate=True) as demonstrated:
        if not demonstrated.read_now(content.is_loaded) and demonstrated.read_now(content.holds_others):
            fail("the database has an organization that is not the demo's; use another database with --database")
    # By the worker, which has forked by then: the PDFs of the demo start threads of Typst, for which whatever is forked
    # after that would wait in vain.
    run(settings, prepare=partial(_prepare_demo, settings), announce=_invite)


def _prepare_demo(settings: Settings) -> list[str]:
    """Fill the database unless it has the demo, and return the lines to print."""
    from normata.cli import demo as content
    from normata.core.http.server import base_url
    from normata.events.keys import Signer
    from normata.events.marks import Marks
    from normata.files.opening import open_store

    with opened(settings.database_url, create=False) as demonstrated:
        if not demonstrated.read_now(content.is_loaded):
            with progress() as report_progress:
                content.fill(demonstrated, report_progress, open_store(settings))
            Marks(Signer(settings.event_key_file)).clear()  # of a previous demo
        token = change(demonstrated, content.new_token)
        base = base_url(settings)
        return [
            f"Console:      {base}{change(demonstrated, content.new_link)}",
            "              (this link signs in once, within 15 minutes; start the demo again for another)",
            *demonstrated.read_now(lambda transaction: list(content.invitation(transaction, base, token))),
        ]


def _invite(lines: Sequence[str]) -> None:
    for line in lines:
        echo(line)
