"""The databases: made, filled through the product, and set back between rounds behind its back."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks.speed import processes
from benchmarks.speed.data import World
from benchmarks.speed.figures import Loaded
from tests import postgres
from tests.server import SCRIPT


class Store(ABC):
    """Where the databases are."""

    name: str
    version: str

    @abstractmethod
    def create(self, label: str) -> None:
        """Make an empty database, with what Normata wants to find."""

    @abstractmethod
    def url(self, label: str) -> str:
        """The address of a database."""

    @abstractmethod
    def run(self, label: str, *statements: str) -> None:
        """Run statements in one transaction, as nobody that the product knows."""

    @abstractmethod
    def count(self, label: str, table: str, condition: str) -> int:
        """How many rows there are."""

    @abstractmethod
    def settle(self, label: str) -> None:
        """Do what the database would come to do by itself, so that it does not while times are taken."""

    def processor_seconds(self) -> float | None:
        """What its own processes have used so far; null where it has none, or none here."""
        return None

    def fill(self, label: str, bundle: Path, world: World) -> Loaded:
        """Load a bundle with `normata load` and tell what that took."""
        self.create(label)
        seconds, peak = _spend([str(SCRIPT), "load", str(bundle), "--database", self.url(label)])
        self.settle(label)
        return Loaded(
            database=self.name,
            controls=world.controls,
            matches=world.matches,
            policies=world.policies,
            seconds=seconds,
            peak_mib=peak,
        )


class SQLite(Store):
    """Files of a folder."""

    name = "SQLite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.version = sqlite3.sqlite_version

    def create(self, label: str) -> None:
        """Nothing: Normata makes the file."""

    def path(self, label: str) -> Path:
        """The file of a database."""
        return self._folder / f"{label}.db"

    def url(self, label: str) -> str:
        return f"sqlite:///{self.path(label)}"

    def run(self, label: str, *statements: str) -> None:
        with closing(sqlite3.connect(self.path(label), timeout=60)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    def count(self, label: str, table: str, condition: str) -> int:
        with closing(sqlite3.connect(self.path(label), timeout=60)) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0])  # noqa: S608 - ours

    def settle(self, label: str) -> None:
        # No ANALYZE: nothing does that in the life of this database.
        with closing(sqlite3.connect(self.path(label), timeout=60)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class PostgreSQL(Store):
    """A server."""

    name = "PostgreSQL"

    def __init__(self, server: postgres.Server) -> None:
        self._server = server
        self._databases: list[str] = []
        self.version = str(self._ask("postgres", "SHOW server_version")).split()[0]
        self._pid = asyncio.run(_postmaster(server.url("postgres")))

    def create(self, label: str) -> None:
        self._databases.append(_database(label))
        self._server.drop(_database(label))
        self._server.create(_database(label))
        subprocess.run(
            [SCRIPT, "migrate", "--database", self.url(label)],
            env=processes.environment(),
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def url(self, label: str) -> str:
        return self._server.url(_database(label))

    def run(self, label: str, *statements: str) -> None:
        self._ask(_database(label), ";".join(statements))

    def count(self, label: str, table: str, condition: str) -> int:
        return int(self._ask(_database(label), f"SELECT count(*) FROM {table} WHERE {condition}"))  # noqa: S608 - ours

    def settle(self, label: str) -> None:
        self._ask(_database(label), "VACUUM ANALYZE")
        self._ask(_database(label), "CHECKPOINT")

    def processor_seconds(self) -> float | None:
        return None if self._pid is None else processes.processor_seconds(self._pid)

    def remove(self) -> None:
        """Drop all that was made."""
        for database in self._databases:
            self._server.drop(database)

    def _ask(self, database: str, statements: str) -> Any:
        """Run statements and return the first value, where there is but one statement."""

        async def ask() -> Any:
            connection = await asyncpg.connect(self._server.url(database))
            try:
                if ";" in statements:
                    return await connection.execute(statements)
                return await connection.fetchval(statements, timeout=600)
            finally:
                await connection.close()

        return asyncio.run(ask())


async def _postmaster(url: str) -> int | None:
    """The process whose family all backends are; null where the server runs on another machine."""
    connection = await asyncpg.connect(url)
    try:
        backend = int(await connection.fetchval("SELECT pg_backend_pid()"))
        return processes.parent(backend) if processes.name(backend) == "postgres" else None
    finally:
        await connection.close()


def _database(label: str) -> str:
    return f"normata_speed_{label}"


@contextmanager
def postgresql(url: str | None) -> Iterator[PostgreSQL]:
    """The server of this URL, as a superuser; else one from the wheel, as durable as it comes."""
    with nullcontext(postgres.Server(url)) if url else postgres.running_server(durable=True) as server:
        store = PostgreSQL(server)
        try:
            yield store
        finally:
            store.remove()


def _spend(command: Sequence[str]) -> tuple[float, float]:
    """Seconds and MiB at the peak that a command takes. Raises CalledProcessError."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=processes.environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, usage.ru_maxrss / 1024
