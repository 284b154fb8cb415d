"""Servers as processes of their own, and what Linux knows of them: processor time and memory."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.server import free_port, serve_command, wait_until_ready

ROOT = Path(__file__).parents[2]
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs."""

    pid: int
    port: int

    @property
    def base(self) -> str:
        """What its addresses begin with."""
        return f"http://127.0.0.1:{self.port}"

    def processor_seconds(self) -> float:
        """What it has used of the processors so far, all its processes together."""
        return processor_seconds(self.pid)

    def resident_mib(self) -> float:
        """Memory of its largest process in MiB: that of the worker, where it has one."""
        return max(resident_mib(pid) for pid in family(self.pid))


class Answer(NamedTuple):
    """What a server said."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def ask(server: Server, path: str, token: str = "", method: str = "GET") -> Answer:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()


@contextmanager
def normata(database_url: str, *, workers: int = 1, **settings: object) -> Iterator[Server]:
    """`normata serve`, ready; ``settings`` by their names, as of the environment without its prefix."""
    port = free_port()
    given = {f"NORMATA_{name.upper()}": str(value) for name, value in settings.items()}
    with _running(serve_command(port, database_url, workers), port, given) as server:
        yield server


@contextmanager
def stand_in(application: str, **given: str) -> Iterator[Server]:
    """Another application, served as Normata is, with one worker; ``given`` goes into its environment."""
    port = free_port()
    module = f"benchmarks.speed.{application}:create_app"
    command = [sys.executable, "-m", "benchmarks.speed.stand_in", module, "--port", str(port)]
    with _running(command, port, given) as server:
        yield server


def environment(given: Mapping[str, str] = {}) -> dict[str, str]:
    """That of this process, without settings that somebody has made for other things."""
    return {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")} | dict(given)


@contextmanager
def _running(command: Sequence[str | Path], port: int, given: Mapping[str, str]) -> Iterator[Server]:
    # The log is written as it always is, to where it costs nobody anything.
    with started(command, given) as process:
        wait_until_ready(f"http://127.0.0.1:{port}", process)
        yield Server(process.pid, port)


@contextmanager
def started(command: Sequence[str | Path], given: Mapping[str, str] = {}) -> Iterator[subprocess.Popen[bytes]]:
    """A process, which is ended with the block."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(given), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def family(pid: int) -> Iterator[int]:
    """A process and all that it has started, itself and through others."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _text(task).split():
            yield from family(int(child))


def processor_seconds(pid: int) -> float:
    """Of a family so far, those of it that have ended included."""
    return sum(_own_seconds(member) for member in family(pid))


def _own_seconds(pid: int) -> float:
    # After the name, which may hold anything: user and system time, and the same of children that have ended.
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICK


def resident_mib(pid: int) -> float:
    """Memory that a process holds, shared libraries included; 0 where it has ended."""
    for line in _text(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def parent(pid: int) -> int | None:
    """Who started a process of this machine; null where there is none of this number."""
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return int(fields[1]) if fields else None


def name(pid: int) -> str:
    """What a process calls itself."""
    return _text(Path(f"/proc/{pid}/comm")).strip()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended in between
        return ""
