"""A server that is killed while clients write: what they sent, and what was acknowledged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from tests.prepared import Normata
from tests.server import serve_command, wait_until_ready

_NO_SETTINGS: Mapping[str, str] = {}


class Acknowledged(NamedTuple):
    """What a request did, and to which record."""

    action: str
    record: str


@dataclass
class Clients:
    """Clients that write all the time, each with a token, and what they have been told."""

    base: str
    sent: set[str] = field(default_factory=set)
    acknowledged: dict[str, Acknowledged] = field(default_factory=dict)  # by request

    def send(self, token: str, method: str, path: str, request: str, body: object = None, *, record: str = "") -> Any:
        """The answer to a request, which is acknowledged then. Its id ends with what it does.

        ``record`` is what it is about; else that is what the answer has.
        """
        self.sent.add(request)
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": request}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        whole = urllib.request.Request(f"{self.base}{path}", data=data, headers=headers, method=method)
        with urllib.request.urlopen(whole, timeout=10) as response:
            answer = json.load(response)
        self.acknowledged[request] = Acknowledged(request.rpartition("-")[2], record or answer["id"])
        return answer

    def read(self, token: str, path: str) -> Any:
        """The answer to a read."""
        whole = urllib.request.Request(f"{self.base}{path}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(whole, timeout=10) as response:
            return json.load(response)

    @contextmanager
    def writing(self, lives: Sequence[Callable[[str], None]]) -> Iterator[None]:
        """While a block runs, each client does one of these over and over, with a name for its requests.

        They end when the server is gone, which the block sees to.
        """
        threads = [threading.Thread(target=_repeat, args=(life, client)) for client, life in enumerate(lives)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for thread in threads:
                thread.join()


def _repeat(life: Callable[[str], None], client: int) -> None:
    for number in count():
        try:
            life(f"{client}-{number}")
        except (OSError, HTTPException):
            return


def start(url: str, port: int, key: Path, settings: Mapping[str, str] = _NO_SETTINGS) -> subprocess.Popen[bytes]:
    """A server in a process group of its own, so that all of it can be killed at once; ready for requests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
    server: subprocess.Popen[bytes] = Normata(
        serve_command(port, url),
        env={**environment, "NORMATA_EVENT_KEY": str(key), **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until_ready(f"http://127.0.0.1:{port}", server)
    except BaseException:
        kill(server)
        raise
    return server


def kill(server: subprocess.Popen[bytes]) -> None:
    """Kill a server with all its processes."""
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()
