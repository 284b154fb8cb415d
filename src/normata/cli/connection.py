"""Which service a command works with: a server, or the database.

Nothing here imports the application before it is needed, so that a command that talks to a server starts quickly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from normata.cli.backend import Backend
from normata.cli.shared import fail, load_settings_file

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="The server to work with over HTTP instead of the database, with the token in NORMATA_TOKEN. Default:"
        " NORMATA_SERVER.",
        show_default=False,
    ),
]


@contextmanager
def connected(database: str | None, server: str | None) -> Iterator[Backend]:
    """The service that the options name: a server, else the database.

    A server of the environment counts only where no option names the database.
    """
    if database is not None and server is not None:
        fail("--server and --database name two places; use one of them", code=2)
    load_settings_file()
    address = server or (os.environ.get("NORMATA_SERVER") if database is None else None)
    if address:
        from normata.cli.remote.server import reached

        with reached(address, is_option=bool(server)) as remote:
            yield remote
        return
    from normata.cli.on_database import on_database

    with on_database(database) as local:
        yield local
