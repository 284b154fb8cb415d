"""A steady load of restores and lists, and every answer to it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, pairwise

BROKEN = 0  # in place of a status: there was no answer


@dataclass(frozen=True, slots=True)
class Record:
    """An archived record that the clients are to restore."""

    table: str
    path: str
    id: str
    told: bool  # whether its restore notifies a member


@dataclass(frozen=True, slots=True)
class Answer:
    """How one request ended."""

    operation: str
    record: Record | None
    request_id: str
    status: int
    retry_after: str | None
    body: bytes
    started: float
    ended: float

    @property
    def unsettled(self) -> bool:
        """Whether the client cannot know what came of its request, and so must ask again."""
        return self.status in (BROKEN, 503)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client is to send; ``operation`` is what the report calls it."""

    operation: str
    method: str
    path: str
    record: Record | None = None


class Client(threading.Thread):
    """A client with one connection, which sends its requests one by one at a steady pace.

    What got no answer, or 503, it sends again, at that same pace: to wait as ``Retry-After`` asks would be kinder, but
    would blur the figure of how long the service was away.
    """

    def __init__(self, name: str, port: int, token: str | None, requests: Iterable[Request], per_second: float) -> None:
        super().__init__(name=name, daemon=True)
        self.answers: list[Answer] = []
        self._ending = threading.Event()
        self._port = port
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._requests = requests
        self._interval = 1 / per_second
        self._connection = self._new_connection()

    def run(self) -> None:
        """Send until told to end, or until there is no more to send."""
        due = time.monotonic()
        for request in self._requests:
            unsettled = True
            while unsettled:
                # Who is late does not hurry: a burst after the gap would measure the burst.
                due = max(due + self._interval, time.monotonic())
                if self._ending.wait(due - time.monotonic()):
                    self._connection.close()
                    return
                answer = self._ask(request)
                self.answers.append(answer)
                unsettled = answer.unsettled
        self._connection.close()

    def end(self) -> None:
        """Finish the request that is under way, and send no more."""
        self._ending.set()
        self.join(60)
        assert not self.is_alive(), f"{self.name} waits for an answer for more than a minute"

    def _ask(self, request: Request) -> Answer:
        request_id = f"{self.name}-{len(self.answers)}"
        started = time.monotonic()
        try:
            self._connection.request(
                request.method, request.path, headers={**self._headers, "X-Request-Id": request_id}
            )
            response = self._connection.getresponse()
            status, retry_after, body = response.status, response.headers["Retry-After"], response.read()
        except (OSError, http.client.HTTPException) as error:
            status, retry_after, body = BROKEN, None, repr(error).encode()
            self._connection.close()
            self._connection = self._new_connection()
        ended = time.monotonic()
        return Answer(request.operation, request.record, request_id, status, retry_after, body, started, ended)

    def _new_connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)


class Load:
    """All clients together."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients

    def answers(self, operation: str | None = None) -> list[Answer]:
        """What has been answered so far, in the order of the answers."""
        found = [answer for client in self._clients for answer in list(client.answers)]
        return sorted(
            (answer for answer in found if operation in (None, answer.operation)), key=lambda answer: answer.ended
        )

    def count(self, operation: str, status: int, *, since: float = 0) -> int:
        """How many answers of an operation there are with a status, to requests sent after a moment."""
        return sum(answer.status == status and answer.started >= since for answer in self.answers(operation))

    def last(self, operation: str, count: int, *, since: float) -> list[int]:
        """The statuses of an operation's last answers, of those to requests sent after a moment."""
        return [answer.status for answer in self.answers(operation) if answer.started >= since][-count:]

    def start(self) -> None:
        """Have every client begin."""
        for client in self._clients:
            client.start()

    def end(self) -> None:
        """Have every client finish the request that it has under way, and send no more."""
        with ThreadPoolExecutor(len(self._clients)) as pool:
            list(pool.map(Client.end, self._clients))


@contextmanager
def under_load(port: int, tokens: Sequence[str], records: Sequence[Record], organization: str) -> Iterator[Load]:
    """Have the service at ``port`` restore, list and say how it is, until the block ends.

    The users of the first two ``tokens`` each have two clients, which go through the same records in the same order,
    so that every record is asked for twice at about the same time.
    """
    clients = [
        restoring(port, token, records[half::2], name=f"restore-{user}-{half}")
        for user, token in enumerate(tokens[:2])
        for half in (0, 1)
    ]
    lists = [
        Request(name, "GET", f"/{name}/?organizationId={organization}")
        for name in ("controls", "frameworks", "notifications")
    ]
    clients += [Client(f"list-{user}", port, token, cycle(lists), 15) for user, token in enumerate(tokens)]
    clients += [Client(name, port, None, cycle([Request(name, "GET", f"/{name}")]), 20) for name in ("livez", "readyz")]
    load = Load(clients)
    load.start()
    try:
        yield load
    finally:
        load.end()


def restoring(port: int, token: str, records: Iterable[Record], *, name: str = "restore") -> Client:
    """A client that restores these records, in this order."""
    return Client(name, port, token, _restores(records), 25)


def _restores(records: Iterable[Record]) -> Iterator[Request]:
    for record in records:
        yield Request("restore", "POST", f"/{record.path}/{record.id}/restore/", record)


def code(answer: Answer) -> str:
    """The stable code of a problem."""
    found: str = json.loads(answer.body)["code"]
    return found


def longest_gap(answers: Iterable[Answer], start: float, end: float) -> tuple[float, float]:
    """The longest time without a 200, of those that touch the time from ``start`` to ``end``: from when to when."""
    moments = [answer.ended for answer in answers if answer.status == 200]
    pairs = [pair for pair in pairwise(moments) if pair[1] > start and pair[0] < end]
    return max(pairs, key=lambda pair: pair[1] - pair[0])
