"""Who asks: wrk where it is installed, else Python, which is weaker."""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import statistics
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from benchmarks.speed.processes import Server

_SCRIPT = Path(__file__).with_name("wrk.lua")
_PATIENCE = 60  # seconds that an answer may take


class LoadFailed(Exception):
    """Not every answer was what it has to be, so the figures are of no use."""


class Load(NamedTuple):
    """What came of a load."""

    answers: int
    seconds: float
    body_bytes: int
    p50: float
    p99: float

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds


class Generator(ABC):
    """Asks with many connections at once for some seconds. Raises LoadFailed for any answer but 2xx."""

    name: str

    def __init__(self, connections: int) -> None:
        self.connections = connections

    @abstractmethod
    def get(self, server: Server, path: str, token: str, seconds: int) -> Load:
        """The same page again and again."""

    @abstractmethod
    def post(self, server: Server, paths: Sequence[str], token: str, seconds: int) -> Load:
        """Each path once."""


class Wrk(Generator):
    """wrk, in C: it takes the least of the processors that it shares with the servers."""

    def __init__(self, connections: int, threads: int) -> None:
        super().__init__(connections)
        self._threads = min(threads, connections)
        told = subprocess.run(["wrk", "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S607
        self.name = f"{' '.join(told.split()[:2])}, {self._threads} thread{'s' if self._threads > 1 else ''}"

    def get(self, server: Server, path: str, token: str, seconds: int) -> Load:
        return self._run(server, path, token, seconds, self._threads)

    def post(self, server: Server, paths: Sequence[str], token: str, seconds: int) -> Load:
        with tempfile.NamedTemporaryFile("w", suffix=".paths") as file:
            file.write("\n".join(paths))
            file.flush()
            # One thread: each would begin the list anew.
            return self._run(server, "/", token, seconds, 1, file.name)

    def _run(self, server: Server, path: str, token: str, seconds: int, threads: int, *given: str) -> Load:
        command = [
            *("wrk", "--threads", str(threads), "--connections", str(self.connections), "--duration", f"{seconds}s"),
            *("--timeout", f"{_PATIENCE}s", "--script", str(_SCRIPT), "--header", f"Authorization: Bearer {token}"),
            *(server.base + path, "--", *given),
        ]
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 2 * _PATIENCE)
        if told.returncode:
            raise LoadFailed(f"wrk ended with {told.returncode}: {told.stdout[-500:]}{told.stderr[-500:]}")
        figures = json.loads(told.stdout.strip().splitlines()[-1])
        faults = {name: count for name, count in figures["faults"].items() if count}
        if faults:
            raise LoadFailed(f"{path} of {server.base}: {faults} of {figures['answers']} answers")
        return Load(
            figures["answers"],
            figures["microseconds"] / 1e6,
            figures["bytes"],
            figures["p50"] / 1000,
            figures["p99"] / 1000,
        )


class Request(NamedTuple):
    """Bytes to send, and the statuses that may come back."""

    sent: bytes
    expected: frozenset[int]


def request(method: str, path: str, token: str, expected: Iterable[int], **headers: str) -> Request:
    """A request as it is sent. Names of headers are written with underscores."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return Request("\r\n".join([*lines, "", ""]).encode(), frozenset(expected))


class Python(Generator):
    """Python's own sockets. It takes as much of the processors as the server or more, so it hides differences."""

    name = "a fallback in Python, weaker than wrk: it hides how fast the fastest are"

    def get(self, server: Server, path: str, token: str, seconds: int) -> Load:
        return self._run(server, repeat(request("GET", path, token, [200])), seconds)

    def post(self, server: Server, paths: Sequence[str], token: str, seconds: int) -> Load:
        return self._run(server, (request("POST", path, token, [200]) for path in paths), seconds)

    def _run(self, server: Server, requests: Iterable[Request], seconds: int) -> Load:
        started = time.perf_counter()
        seen = drive(server, iter(requests), self.connections, seconds)
        taken = time.perf_counter() - started
        if not seen.milliseconds:
            raise LoadFailed(f"{server.base} gave no answer")
        ordered = sorted(seen.milliseconds)
        p99 = ordered[math.ceil(len(ordered) * 0.99) - 1]
        return Load(len(ordered), taken, seen.body_bytes, statistics.median(ordered), p99)


@dataclass(slots=True)
class Seen:
    """What answers there were."""

    statuses: Counter[int] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    body_bytes: int = 0


def drive(server: Server, requests: Iterator[Request], connections: int, seconds: float = math.inf) -> Seen:
    """Send requests, each once, over so many connections, until they or the seconds are over. Raises LoadFailed."""
    return asyncio.run(_drive(server, requests, connections, seconds))


async def _drive(server: Server, requests: Iterator[Request], connections: int, seconds: float) -> Seen:
    seen = Seen()
    end = time.perf_counter() + seconds

    async def one_after_the_other() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            for wanted in requests:  # all take from the same
                begun = time.perf_counter()
                if begun >= end:
                    return
                async with asyncio.timeout(_PATIENCE):
                    writer.write(wanted.sent)
                    status, size = await _answer(reader)
                seen.milliseconds.append((time.perf_counter() - begun) * 1000)
                seen.statuses[status] += 1
                seen.body_bytes += size
                if status not in wanted.expected:
                    raise LoadFailed(f"{status} to {wanted.sent.splitlines()[0].decode()}")
        finally:
            writer.close()

    await asyncio.gather(*(one_after_the_other() for _ in range(connections)))
    return seen


async def _answer(reader: asyncio.StreamReader) -> tuple[int, int]:
    """Status and length of the next answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head[9:12])
    _, _, length = head.partition(b"\r\ncontent-length:")
    size = int(length.split(b"\r\n", 1)[0]) if length and status not in (204, 304) else 0
    await reader.readexactly(size)
    return status, size


def choose(name: str, connections: int, threads: int) -> Generator:
    """The one of this name; `auto` is wrk where it is installed. Raises LoadFailed where it is not there."""
    installed = shutil.which("wrk") is not None
    if name == "python" or (name == "auto" and not installed):
        return Python(connections)
    if not installed:
        raise LoadFailed("wrk is not installed; --generator python does without")
    return Wrk(connections, threads)
