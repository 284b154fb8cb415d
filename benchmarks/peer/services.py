"""The two services under comparison, each over SQLite with one worker, and the requests that do the same in both."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from benchmarks.installations import SQLite, family, normata
from normata.identity.tokens.tokens import digest, generate

_PATIENCE = 900  # seconds; CISO Assistant's migrations take minutes
_EMAIL = "admin@benchmark.example"
_ORGANIZATION = "peer"
_SECRET = "not-secret" * 5
_TOKEN = f"""
from iam.models import User
from knox.models import AuthToken
print("token", AuthToken.objects.create(User.objects.get(email="{_EMAIL}"))[1])
"""


class Ask(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes | None = None
    media_type: str = "application/json"


class Service(ABC):
    """A running service, with one connection to it."""

    name: str

    def __init__(self, pid: int, port: int, authorization: str) -> None:
        self.pid = pid
        self._authorization = authorization
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)

    def send(self, ask: Ask) -> bytes:
        """Send a request and return the body of the answer; any status but 2xx is an error."""
        headers = {"Authorization": self._authorization, "Content-Type": ask.media_type}
        self._connection.request(ask.method, ask.path, ask.body, headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if not 200 <= answer.status < 300:
            raise RuntimeError(f"{self.name}: {ask.method} {ask.path}: {answer.status} {body[:500]!r}")
        return body

    def close(self) -> None:
        """Close the connection. The next request opens another one, so do this after a pause that a server may end."""
        self._connection.close()

    def memory(self) -> float:
        """The memory of all its processes in MiB; what they share counts once."""
        shares: list[int] = [process.memory_full_info().pss for process in family(self.pid)]
        return sum(shares) / 2**20

    @abstractmethod
    def load_library(self, library: Path) -> None:
        """Import a library, so that its controls are in the list."""

    @abstractmethod
    def create(self, number: int) -> str:
        """Create a record that has a status, and return its id."""

    @abstractmethod
    def list(self) -> Ask:
        """The first 100 controls."""

    @abstractmethod
    def search(self, word: str) -> Ask:
        """The first 100 controls with a word."""

    @abstractmethod
    def change(self, record: str, *, begun: bool) -> Ask:
        """Change the status of a record."""


class Normata(Service):
    """Normata of this checkout: tasks are its records."""

    name = "Normata"

    def load_library(self, library: Path) -> None:
        query = urlencode({"organizationId": _ORGANIZATION, "skipUnknown": "true"})
        body = self.send(Ask("POST", f"/imports/?{query}", library.read_bytes(), "application/yaml"))
        for framework in json.loads(body)["frameworkIds"]:
            self.send(Ask("PUT", f"/frameworks/{quote(framework)}/adoption/?{query}"))

    def create(self, number: int) -> str:
        values = {"organizationId": _ORGANIZATION, "title": f"Review number {number}"}
        return str(json.loads(self.send(Ask("POST", "/tasks/", json.dumps(values).encode())))["id"])

    def list(self) -> Ask:
        return Ask("GET", f"/controls/?organizationId={_ORGANIZATION}&limit=100")

    def search(self, word: str) -> Ask:
        return Ask("GET", f"/controls/?organizationId={_ORGANIZATION}&limit=100&search={word}")

    def change(self, record: str, *, begun: bool) -> Ask:
        status = "IN_PROGRESS" if begun else "TODO"
        path = f"/tasks/{record}/?organizationId={_ORGANIZATION}"
        return Ask("PATCH", path, json.dumps({"status": status}).encode(), "application/merge-patch+json")


class CisoAssistant(Service):
    """CISO Assistant's backend: requirement nodes are its controls, and applied controls its records."""

    name = "CISO Assistant"

    def __init__(self, pid: int, port: int, authorization: str) -> None:
        super().__init__(pid, port, authorization)
        libraries = json.loads(self.send(Ask("GET", "/api/stored-libraries/?limit=1000")))["results"]
        self._libraries = {library["urn"]: library["id"] for library in libraries}
        self._folder = json.loads(self.send(Ask("GET", "/api/folders/")))["results"][0]["id"]

    def load_library(self, library: Path) -> None:
        # Its migrations have read the files already, so this is less than what Normata does.
        lines = library.read_text("utf-8").splitlines()
        urn = next(line.removeprefix("urn:").strip() for line in lines if line.startswith("urn:"))
        self.send(Ask("POST", f"/api/stored-libraries/{self._libraries[urn]}/import/", b"{}"))

    def create(self, number: int) -> str:
        values = {"folder": self._folder, "name": f"Review number {number}"}
        return str(json.loads(self.send(Ask("POST", "/api/applied-controls/", json.dumps(values).encode())))["id"])

    def list(self) -> Ask:
        return Ask("GET", "/api/requirement-nodes/?limit=100")

    def search(self, word: str) -> Ask:
        return Ask("GET", f"/api/requirement-nodes/?limit=100&search={word}")

    def change(self, record: str, *, begun: bool) -> Ask:
        values: dict[str, Any] = {"status": "in_progress" if begun else "to_do"}
        return Ask("PATCH", f"/api/applied-controls/{record}/", json.dumps(values).encode())


@contextmanager
def serve_normata(folder: Path, label: str, *, page_cache_mib: int = 64) -> Iterator[Normata]:
    """Serve this checkout over a new database with one organization."""
    store, token = SQLite(folder), generate()
    store.create(label)
    store.load(
        label,
        [
            ("organizations", [{"id": _ORGANIZATION, "name": "Peer", "slug": "peer"}]),
            ("users", [{"id": "admin", "name": "Admin", "email": _EMAIL}]),
            (
                "memberships",
                [{"id": "admin", "organizationId": _ORGANIZATION, "userId": "admin", "role": "admin"}],
            ),
            ("accessTokens", [{"id": "admin", "userId": "admin", "digest": digest(token), "scope": "admin"}]),
        ],
    )
    with (
        normata(store, label, page_cache_mib=page_cache_mib) as server,
        closing(Normata(server.pid, server.port, f"Bearer {token}")) as it,
    ):
        yield it


@contextmanager
def serve_ciso_assistant(checkout: Path, python: Path, folder: Path) -> Iterator[CisoAssistant]:
    """Migrate a new database with the backend of a checkout, and serve it as its ``startup.sh`` does, by one worker.

    ``python`` has the backend's requirements. The migrated database stays in the folder, for the next run.
    """
    migrated, database, backend = folder / "migrated.sqlite3", folder / "served.sqlite3", checkout / "backend"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ},
        "DJANGO_SETTINGS_MODULE": "ciso_assistant.settings",
        "DJANGO_SECRET_KEY": _SECRET,
        "DJANGO_SUPERUSER_EMAIL": _EMAIL,
        "DJANGO_SUPERUSER_PASSWORD": _SECRET,
        "CISO_ASSISTANT_URL": f"http://127.0.0.1:{port}",
        "ALLOWED_HOSTS": "127.0.0.1",
        "LOG_LEVEL": "WARNING",
    }

    def over(database: Path) -> dict[str, str]:
        return environment | {"SQLITE_FILE": str(database)}

    def manage(database: Path, *arguments: str) -> str:
        command = [str(python), "manage.py", *arguments]
        done = subprocess.run(command, cwd=backend, env=over(database), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"CISO Assistant: manage.py {arguments[0]} failed: {done.stderr[-2000:]}")
        return done.stdout

    if not migrated.exists():
        unfinished = folder / "unfinished.sqlite3"
        unfinished.unlink(missing_ok=True)
        manage(unfinished, "migrate")
        manage(unfinished, "createsuperuser", "--noinput")
        manage(unfinished, "storelibraries")
        unfinished.rename(migrated)
    shutil.copyfile(migrated, database)
    token = next(
        line.split()[1] for line in manage(database, "shell", "-c", _TOKEN).splitlines() if line.startswith("token ")
    )
    command = [str(python), "-m", "gunicorn", "--chdir", "ciso_assistant", "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*command, "--workers", "1", "--keep-alive", "30", "--env", "RUN_MAIN=true", "ciso_assistant.wsgi:application"],
        cwd=backend,
        env=over(database),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with ExitStack() as stack:
        stack.callback(process.wait, 60)
        stack.callback(process.terminate)
        _wait_for(port, process)
        yield stack.enter_context(closing(CisoAssistant(process.pid, port, f"Token {token}")))


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with suppress(OSError), closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("GET", "/api/health/")
            if connection.getresponse().status == 200:
                return
        time.sleep(0.1)
    raise RuntimeError("CISO Assistant did not start")
