"""Honest clients: each sends a few requests a second, for cached lists, other lists and restores."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.speed.data import ORGANIZATION, policy_id
from benchmarks.world import sentence

PATIENCE = 30.0  # seconds until a client gives up

_Request = tuple[str, str]  # method and path


@dataclass
class Served:
    """What the clients got: the number of each outcome, and the seconds of each request."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def failures(self) -> dict[str, int]:
        """The numbers of outcomes other than success."""
        return {outcome: count for outcome, count in self.outcomes.items() if outcome != "200"}

    def percentile(self, share: float) -> float:
        """The seconds within which this share of the requests was answered; 0 without requests."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


async def ask(port: int, tokens: list[str], policies: int, rate: float, until: float) -> Served:
    """Run one client for each token, with ``rate`` requests a second each, until this time of the monotonic clock."""
    served, archived = Served(), iter(range(policies))
    clients = (_Client(port, token, archived, served, number) for number, token in enumerate(tokens))
    await asyncio.gather(*(client.run(rate, until) for client in clients))
    return served


class _Client:
    """A client with a persistent connection."""

    def __init__(self, port: int, token: str, archived: Iterator[int], served: Served, number: int) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nAccept-Encoding: gzip\r\n"
        self._archived = archived
        self._served = served
        self._rng = random.Random(number)
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, rate: float, until: float) -> None:
        due = time.monotonic() + self._rng.random() / rate
        while due < until:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self._note(*self._next())
            due = max(due + 1 / rate, time.monotonic())
        if self._connection is not None:
            self._connection[1].close()

    def _next(self) -> _Request:
        """The next request. Of ten, six are for cached pages, three for lists that must be built, and one is a restore.

        Once all records are restored, there are more lists instead.
        """
        chance, rng = self._rng.random(), self._rng
        number = next(self._archived, None) if chance < 0.1 else None
        if number is not None:
            return "POST", f"/policies/{policy_id(number)}/restore/"
        page = f"organizationId={ORGANIZATION}&limit=20&page={rng.randrange(1, 5)}"
        if chance < 0.3:  # a page that is probably not cached
            return "GET", f"/controls/?{page}&search={'%20'.join(sentence(rng, 2).split())}"
        if chance < 0.4:
            return "GET", f"/notifications/?{page}"
        return "GET", f"/controls/?{page}" if chance < 0.9 else f"/frameworks/?organizationId={ORGANIZATION}"

    async def _note(self, method: str, path: str) -> None:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                outcome = str(await self._status(method, path))
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            outcome = type(error).__name__
            if self._connection is not None:
                self._connection[1].transport.abort()
                self._connection = None
        self._served.seconds.append(time.perf_counter() - began)
        self._served.outcomes[outcome] += 1

    async def _status(self, method: str, path: str) -> int:
        if self._connection is None:
            self._connection = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._connection
        length = "Content-Length: 0\r\n" if method == "POST" else ""
        writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{length}\r\n".encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        _, _, rest = answer.partition(b"\r\ncontent-length:")
        await reader.readexactly(int(rest.split(b"\r\n", 1)[0]))
        return int(answer[9:12])
