"""What clients see of two processes of the service while the cluster is taken apart: every answer, and when."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import cycle
from pathlib import Path

from tests.failover.load import Answer, Client, Load, Record, Request
from tests.failover.records import ORGANIZATION
from tests.server import free_port, serve_command, wait_until_ready

LISTS = ("controls", "frameworks", "notifications")
_RESTORES = 6  # a second, of each of the four clients
_LISTS = 8
_REVOKED_FOR = 15  # seconds during which a revoked token is tried

Revoke = Callable[[str], bool]  # ends the token of a digest; whether that is certain


class Normata:
    """One process of the service, on a port that it keeps when it is started again."""

    def __init__(self, name: str, url: str, folder: Path) -> None:
        self.name = name
        self.port = free_port()
        self._url = url
        self._log = folder / f"normata-{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; returns once it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(serve_command(self.port, self._url), stdout=log, stderr=log)
        wait_until_ready(f"http://127.0.0.1:{self.port}", self._process)

    def stop(self) -> None:
        """Have it end in good order."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)

    def log(self) -> str:
        """What it has said."""
        return self._log.read_text(errors="replace")

    @property
    def pid(self) -> int:
        """Its process, which must be there."""
        assert self._process is not None
        assert self._process.poll() is None, f"the process {self.name} ended: {self.log()[-2000:]}"
        return self._process.pid


@dataclass
class Revoked:
    """A token that is known to be revoked since a moment."""

    token: str
    moment: float


@dataclass
class Tried:
    """A revoked token in use: how long after its revocation the request began, and what was answered."""

    after: float
    status: int


class Revoker(threading.Thread):
    """Revokes a token a second, past the service, as another process would."""

    def __init__(self, tokens: Sequence[str], revoke: Revoke) -> None:
        super().__init__(name="revoker", daemon=True)
        self.revoked: list[Revoked] = []
        self._tokens = tokens
        self._revoke = revoke
        self._ending = threading.Event()

    def run(self) -> None:
        """Revoke until told to end."""
        for token in self._tokens:
            while not self._ending.wait(1):
                if self._revoke(sha256(token.encode()).hexdigest()):
                    self.revoked.append(Revoked(token, time.monotonic()))
                    break

    def end(self) -> None:
        """Revoke no more."""
        self._ending.set()
        self.join(60)


class Intruder(threading.Thread):
    """Tries the tokens that were revoked a short time ago, at one process."""

    def __init__(self, process: Normata, revoker: Revoker) -> None:
        super().__init__(name=f"intruder-{process.name}", daemon=True)
        self.tried: list[Tried] = []
        self._port = process.port
        self._revoker = revoker
        self._ending = threading.Event()

    def run(self) -> None:
        """Try until told to end."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        number = 0
        while not self._ending.wait(0.05):
            recent = [one for one in self._revoker.revoked[-20:] if time.monotonic() - one.moment < _REVOKED_FOR]
            if not recent:
                continue
            number += 1
            one = recent[number % len(recent)]
            began = time.monotonic()
            try:
                connection.request("GET", "/me/", headers={"Authorization": f"Bearer {one.token}"})
                answer = connection.getresponse()
                answer.read()
                self.tried.append(Tried(began - one.moment, answer.status))
            except (OSError, http.client.HTTPException):
                connection.close()
        connection.close()

    def end(self) -> None:
        """Try no more."""
        self._ending.set()
        self.join(60)


@dataclass
class Seen:
    """All that was seen of one process."""

    process: Normata
    load: Load
    intruder: Intruder
    told: list[Answer] = field(default_factory=list)


@contextmanager
def watched(
    processes: Sequence[Normata], editors: Sequence[str], owner: str, records: Sequence[Record], revoker: Revoker
) -> Iterator[list[Seen]]:
    """Have every process restore, list, tell how it is and refuse revoked tokens, until the block ends.

    Each process is asked for every record at about the same time as the other, for half of them a little earlier.
    """
    seen = []
    for number, (process, editor) in enumerate(zip(processes, editors, strict=True)):
        clients = [
            Client(f"{process.name}-restore-{half}", process.port, editor, _restores(part), _RESTORES)
            for half, part in enumerate((records[number::2][2:], records[1 - number :: 2]))
        ]
        lists = [Request(name, "GET", f"/{name}/?organizationId={ORGANIZATION}") for name in LISTS]
        inbox = [Request("inbox", "GET", f"/notifications/?organizationId={ORGANIZATION}&limit=5")]
        clients.append(Client(f"{process.name}-list", process.port, editor, cycle(lists), _LISTS))
        clients.append(Client(f"{process.name}-inbox", process.port, owner, cycle(inbox), _LISTS))
        for name, pace in (("livez", 2), ("readyz", 10)):
            probe = cycle([Request(name, "GET", f"/{name}")])
            clients.append(Client(f"{process.name}-{name}", process.port, None, probe, pace))
        seen.append(Seen(process, Load(clients), Intruder(process, revoker)))
    with ExitStack() as stack:
        for one in seen:
            one.load.start()
            stack.callback(one.load.end)
            one.intruder.start()
            stack.callback(one.intruder.end)
        revoker.start()
        stack.callback(revoker.end)
        yield seen


def total(answer: Answer) -> int:
    """How many items a list has."""
    found: int = json.loads(answer.body)["total"]
    return found


def _restores(records: Sequence[Record]) -> Iterator[Request]:
    for record in records:
        yield Request("restore", "POST", f"/{record.path}/{record.id}/restore/", record)
