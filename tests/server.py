"""The shipped server, as a process of its own."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.prepared import starting

SCRIPT = Path(sys.executable).with_name("normata")
# To read the certificates of all authorities takes a client 20 ms. Nothing here speaks TLS.
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_NO_SETTINGS: Mapping[str, str] = {}


def free_port() -> int:
    """A port of the loopback interface that nothing listens on; another process may take it any moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port of the loopback interface that the system gives to nobody else meanwhile.

    It is bound, but nothing listens on it, so that a server that shares its port may take it.
    """
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield holder.getsockname()[1]


def serve_command(port: int, database_url: str, workers: int = 1) -> list[str]:
    """The command line of a server."""
    return [str(SCRIPT), "serve", "--port", str(port), "--workers", str(workers), "--database", database_url]


@contextmanager
def serving(
    database_url: str, *, workers: int = 1, log: Path | None = None, settings: Mapping[str, str] = _NO_SETTINGS
) -> Iterator[str]:
    """``normata serve`` over a database: the base of its addresses, once it is ready.

    In the values of settings ``{port}`` is the port that it listens on.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
    environment |= {name: os.environ.get(name, "") for name in ("NORMATA_EVENT_KEY", "NORMATA_FILES_URL")}
    environment |= {"NORMATA_ENV_FILE": ""}
    output = subprocess.DEVNULL if log is None else log.open("wb")
    with reserved_port() as port:
        environment |= {name: value.replace("{port}", str(port)) for name, value in settings.items()}
        start = starting(workers, environment)
        process = start(serve_command(port, database_url, workers), env=environment, stdout=output, stderr=output)
        base = f"http://127.0.0.1:{port}"
        try:
            wait_until_ready(base, process)
            yield base
        finally:
            process.terminate()
            process.wait(30)
            if not isinstance(output, int):
                output.close()


def wait_until_ready(base: str, process: subprocess.Popen[Any]) -> None:
    """Return once ``/readyz`` answers 200; fail where the process ends or a minute passes."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        try:
            with urllib.request.urlopen(f"{base}/readyz", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    raise AssertionError("the server was not ready within a minute")
