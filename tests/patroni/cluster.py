"""Three members of PostgreSQL under Patroni, with etcd, HAProxy and PgBouncer: what operators run, on loopback."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import pwd
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg

from tests.failover.cluster import ROLES, password_file, wait_until
from tests.patroni import configuration
from tests.patroni.parts import Part, Programs, RestartedPart, programs, signal_all
from tests.server import free_port

MEMBERS = ("db1", "db2", "db3")
ROUTES = ("hosts", "haproxy", "pgbouncer")


class Member:
    """One machine of the cluster: Patroni, and the server that it minds."""

    def __init__(self, name: str, folder: Path, binaries: Programs, password: str, etcd_port: int) -> None:
        self.name = name
        self.port = free_port()
        self.rest_port = free_port()
        self.is_frozen = False  # its server is, by us
        self._folder = folder
        self._data = folder / name / "data"
        home = folder / name
        home.mkdir()
        settings = configuration.patroni(
            name,
            folder=folder,
            binaries=binaries.postgres,
            password=password,
            port=self.port,
            rest_port=self.rest_port,
            etcd_port=etcd_port,
        )
        path = folder / f"{name}.json"
        path.write_text(json.dumps(settings))
        for made in (home, path):
            give_to_servers(made)
        self.patroni = Part(f"patroni-{name}", [binaries.patroni, path], folder)

    def start(self) -> None:
        """Start Patroni, which starts the server."""
        self.patroni.start()

    def kill(self) -> None:
        """Lose the machine."""
        self.kill_patroni()
        self.kill_postgres()

    def kill_patroni(self) -> None:
        """Lose Patroni alone: nobody minds the server any more."""
        self.patroni.kill()

    def kill_postgres(self) -> None:
        """Lose the server, with all its processes."""
        if (pid := self._postmaster()) is not None:
            signal_all([pid], signal.SIGKILL)

    def freeze_postgres(self) -> None:
        """Have all of the server's processes hang."""
        self.is_frozen = True
        if (pid := self._postmaster()) is not None:
            signal_all([pid], signal.SIGSTOP)

    def freeze(self) -> None:
        """Have the whole machine hang."""
        self.patroni.signal(signal.SIGSTOP)
        self.freeze_postgres()

    def thaw(self) -> None:
        """Have it go on."""
        if (pid := self._postmaster()) is not None:
            signal_all([pid], signal.SIGCONT)
        self.patroni.signal(signal.SIGCONT)
        self.is_frozen = False

    def wipe(self) -> None:
        """Forget all data, so that Patroni clones it anew."""
        shutil.rmtree(self._data, ignore_errors=True)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None, timeout: float = 1) -> tuple[int, str]:
        """What Patroni answers over HTTP; 0 where it does not."""
        connection = http.client.HTTPConnection("127.0.0.1", self.rest_port, timeout=timeout)
        try:
            connection.request(method, path, json.dumps(body) if body else None)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def query(self, *statements: str, database: str = "postgres", timeout: float = 30) -> list[Any]:
        """The rows of the last of some statements, run by a superuser over the server's own socket."""

        async def fetch() -> list[Any]:
            connection = await self.connect(timeout, database)
            try:
                for statement in statements[:-1]:
                    await connection.execute(statement)
                return list(await connection.fetch(statements[-1]))
            finally:
                await connection.close(timeout=5)

        return asyncio.run(fetch())

    async def connect(self, within: float, database: str = "postgres") -> asyncpg.Connection[Any]:
        """A superuser's connection over the server's own socket; ``within`` is for each answer."""
        connection: asyncpg.Connection[Any] = await asyncpg.connect(
            host=str(self._folder),
            port=self.port,
            user="postgres",
            database=database,
            timeout=min(5, within),
            command_timeout=within,
        )
        return connection

    def _postmaster(self) -> int | None:
        with suppress(OSError, ValueError, IndexError):
            pid = int((self._data / "postmaster.pid").read_text().splitlines()[0])
            os.kill(pid, 0)
            return pid
        return None


@dataclass
class Sample:
    """Who said at a moment that it is the primary."""

    moment: float
    primary: str | None


class Observer(threading.Thread):
    """Asks every member, several times a second, whether it is the primary: Patroni, and the server itself."""

    def __init__(self, members: list[Member]) -> None:
        super().__init__(name="observer", daemon=True)
        self.samples: list[Sample] = []
        self._members = members
        self._ending = threading.Event()
        self._connections: dict[str, asyncpg.Connection[Any]] = {}

    def run(self) -> None:
        """Ask until told to end."""
        with asyncio.Runner() as runner:
            while not self._ending.wait(0.25):
                found = None
                for member in self._members:
                    is_primary = not member.is_frozen and member.ask("GET", "/primary", timeout=0.5)[0] == 200
                    if is_primary and runner.run(self._takes_writes(member)):
                        found = member.name
                self.samples.append(Sample(time.monotonic(), found))
            for connection in self._connections.values():
                connection.terminate()

    def end(self) -> None:
        """Ask no more."""
        self._ending.set()
        self.join(10)

    async def _takes_writes(self, member: Member) -> bool:
        connection = self._connections.pop(member.name, None)
        try:
            if connection is None:
                connection = await member.connect(1)
            is_primary = bool(await connection.fetchval("SELECT NOT pg_is_in_recovery()", timeout=1))
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            if connection is not None:
                connection.terminate()
            return False
        self._connections[member.name] = connection
        return is_primary

    def without(self, start: float, end: float) -> list[tuple[float, float]]:
        """The times without a primary, in the eyes of Patroni: each from the last sample with one to the next."""
        spans: list[tuple[float, float]] = []
        since: float | None = None
        for before, sample in pairwise(self.samples):
            if sample.primary is None and since is None:
                since = before.moment
            if sample.primary is not None and since is not None:
                spans.append((since, sample.moment))
                since = None
        if since is not None:
            spans.append((since, self.samples[-1].moment))
        return [span for span in spans if span[1] > start and span[0] < end]


@dataclass
class PatroniCluster:
    """All of it."""

    folder: Path
    binaries: Programs
    password: str
    password_file: Path
    members: list[Member] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in ("etcd", "peer", *ROUTES[1:])})

    def __post_init__(self) -> None:
        etcd: list[str | Path] = ["--data-dir", self.folder / "etcd", "--name", "etcd", "--unsafe-no-fsync"]
        client, peer = (f"http://127.0.0.1:{self.ports[name]}" for name in ("etcd", "peer"))
        etcd += ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer]
        etcd += ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"etcd={peer}", "--log-level", "warn"]
        self.etcd = Part("etcd", [self.binaries.etcd, *etcd], self.folder)
        self.members = [
            Member(name, self.folder, self.binaries, self.password, self.ports["etcd"])
            for name in ("db1", "db2", "db3")
        ]
        proxy = self.folder / "haproxy.cfg"
        addresses = {member.name: (member.port, member.rest_port) for member in self.members}
        proxy.write_text(configuration.haproxy(port=self.ports["haproxy"], members=addresses))
        self.haproxy = Part("haproxy", [self.binaries.haproxy, "-db", "-f", proxy], self.folder)
        pooler = self.folder / "pgbouncer.ini"
        pooler.write_text(
            configuration.pgbouncer(folder=self.folder, port=self.ports["pgbouncer"], behind=self.ports["haproxy"])
        )
        users = self.folder / "users.txt"
        users.write_text(f'"normata" "{self.password}"\n"normata_owner" "{self.password}"\n')
        for made in (proxy, pooler, users):
            give_to_servers(made)
        self.pgbouncer = RestartedPart("pgbouncer", [self.binaries.pgbouncer, pooler], self.folder)

    @property
    def parts(self) -> list[Part]:
        """All processes but the servers."""
        return [self.etcd, self.haproxy, self.pgbouncer, *(member.patroni for member in self.members)]

    def url(self, route: str, user: str = "normata") -> str:
        """The address of Normata's database over one of the ROUTES."""
        if route != "hosts":
            return f"postgresql://{user}@127.0.0.1:{self.ports[route]}/normata"
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"postgresql://{user}@{hosts}/normata?target_session_attrs=read-write"

    def start(self) -> None:
        """Start everything; returns once there is a primary with a synchronous standby."""
        self.etcd.start()
        for member in self.members:
            member.start()
        self.haproxy.start()
        self.pgbouncer.start()
        self.wait_until_whole(120)

    def primary(self) -> Member:
        """The primary, which there must be."""
        return next(member for member in self.members if member.ask("GET", "/primary")[0] == 200)

    def wait_until_whole(self, seconds: float = 90) -> None:
        """Return once there is one primary, and all others follow it, one of them synchronously."""
        wait_until(self._is_whole, "the cluster is whole", seconds=seconds)

    def repair(self) -> None:
        """Bring back whatever a fault has left behind. A server that nobody minds is stopped first."""
        for member in self.members:
            member.thaw()
            if not member.patroni.runs:
                member.kill_postgres()
                member.start()
        for part in (self.etcd, self.haproxy, self.pgbouncer):
            if not part.runs:
                part.start()
        try:
            self.wait_until_whole(60)
        except AssertionError:  # one could not be rewound: clone it
            for member in self.members:
                if member.ask("GET", "/health")[0] != 200 and member.ask("GET", "/primary")[0] != 200:
                    member.kill()
                    member.wipe()
                    member.start()
            self.wait_until_whole(120)

    def stop(self) -> None:
        """End everything, in whatever state it is."""
        for member in self.members:
            member.thaw()
            member.kill()
        for part in self.parts:
            part.kill()

    def _is_whole(self) -> bool:
        for member in self.members:
            status, body = member.ask("GET", "/cluster")
            if status == 200:
                found = json.loads(body)["members"]
                roles = sorted(one["role"] for one in found)
                states = {one["state"] for one in found if one["role"] != "leader"}
                return roles == ["leader", "replica", "sync_standby"] and states == {"streaming"}
        return False


def give_to_servers(path: Path) -> None:
    """Have the user who runs the servers own a file or folder."""
    if os.geteuid() == 0:
        owner = pwd.getpwnam("postgres")
        os.chown(path, owner.pw_uid, owner.pw_gid)


@contextmanager
def running_cluster() -> Iterator[PatroniCluster]:
    """A new cluster, with an empty database ``normata`` and its roles in it."""
    with tempfile.TemporaryDirectory(prefix="normata-patroni-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)
        servers = folder / "servers"
        servers.mkdir(mode=0o700)
        give_to_servers(servers)
        password = secrets.token_urlsafe()
        cluster = PatroniCluster(servers, programs(), password, password_file(folder / "pgpass", password))
        try:
            cluster.start()
            primary = cluster.primary()
            for statement in ROLES:
                primary.query(statement.format(password=password))
            yield cluster
        finally:
            cluster.stop()
