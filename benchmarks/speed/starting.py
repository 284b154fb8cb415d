"""How long it takes to start."""

from __future__ import annotations

import http.client
import subprocess
import time
from pathlib import Path

from benchmarks.speed import processes
from benchmarks.speed.figures import Starting
from benchmarks.speed.rounds import Tell
from benchmarks.speed.stores import Store
from tests.server import SCRIPT, free_port

_PATIENCE = 60.0
_PAUSE = 0.002


def measure_starting(store: Store, rounds: int, tell: Tell) -> Starting:
    """`normata serve` over a database that is there, to the first answer, and `normata --help` to its end."""
    starting = Starting(serve=[], help=[])
    for _ in range(rounds):
        starting.serve.append(_serve(store.url("small")))
        starting.help.append(_help())
        tell(f"serve: {starting.serve[-1]:.2f} s, --help: {starting.help[-1]:.2f} s")
    return starting


def _serve(database_url: str) -> float:
    port = free_port()
    begun = time.perf_counter()
    command: list[str | Path] = [SCRIPT, "serve", "--port", str(port), "--database", database_url]
    with processes.started(command) as process:
        while not _lives(port):
            if process.poll() is not None or time.perf_counter() - begun > _PATIENCE:
                raise RuntimeError("the server did not start")
            time.sleep(_PAUSE)
        return time.perf_counter() - begun


def _lives(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _help() -> float:
    begun = time.perf_counter()
    subprocess.run([SCRIPT, "--help"], env=processes.environment(), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun
