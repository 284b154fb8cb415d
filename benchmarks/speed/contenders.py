"""The contenders that are measured in rounds: pages of controls and restores, of Normata and of others."""

import asyncio
import json
import math
import os
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg

from benchmarks.installations import Server, SQLite, Store, normata, processor_seconds, stand_in, tell
from benchmarks.speed.data import CALLER, CREATED, ORGANIZATION, Post, creating, restoring
from benchmarks.speed.figures import Measured, Sample
from benchmarks.speed.plain import DATABASE
from benchmarks.speed.stand_in import ANSWER
from benchmarks.speed.statements import Statement, capture
from benchmarks.speed.unsealed import NOTING
from benchmarks.world import moment

PAGE = f"/controls/?organizationId={ORGANIZATION}&limit=100"
CONNECTIONS = 16
THREADS = 2  # of wrk
ANSWERS = 20  # for each connection in a round, even of a slow contender,
LONGEST = 15  # unless that takes more seconds
SETTLED = 0.3  # seconds after which a server has finished the changes in flight when wrk stopped


class Request(NamedTuple):
    """A request, with its body as JSON, or null."""

    method: str
    path: str
    body: Any = None


Load = tuple[int, Sample]  # the number of answers, and their sample
Transactions = Sequence[Sequence[Statement]]


class MeasurementFailed(Exception):
    """The answers are wrong, so the figures mean nothing."""


@dataclass
class Contender:
    """What is measured: ``load`` runs for some seconds, after ``prepare`` has reverted the changes of former loads.

    It uses ``connections`` connections, and runs for at least ``least`` seconds. ``verify`` raises MeasurementFailed if
    the changes of a load are missing. ``pids`` are the main processes of server and database, or null.
    """

    label: str
    load: Callable[[int], Load]
    pids: Sequence[int | None] = (None, None)
    prepare: Callable[[], None] = lambda: None
    verify: Callable[[int], None] = lambda _: None
    connections: int = CONNECTIONS
    least: int = 1

    def sample(self, seconds: int) -> Sample:
        self.prepare()
        before = [processor_seconds(pid) for pid in self.pids]
        answers, sample = self.loaded(max(seconds, self.least))
        if not answers:
            raise MeasurementFailed(f"{self.label} gave no answer in time")
        used = [(processor_seconds(pid) - start) * 1000 / answers for pid, start in zip(self.pids, before, strict=True)]
        sample.processor, sample.database = (time if pid else None for pid, time in zip(self.pids, used, strict=True))
        self.verify(answers)
        return sample

    def loaded(self, seconds: int) -> Load:
        """Run the load. Raises MeasurementFailed with the name of the contender."""
        try:
            return self.load(seconds)
        except MeasurementFailed as error:
            raise MeasurementFailed(f"{self.label}: {error}") from error


def measure(contenders: dict[str, Contender], rounds: int, seconds: int) -> dict[str, Measured]:
    """Measure all contenders in turn, so that other load on the machine affects all of them equally."""
    measured = {key: Measured(label=contender.label, samples=[]) for key, contender in contenders.items()}
    for contender in contenders.values():
        contender.prepare()
        _, seen = contender.loaded(1)  # warms it up
        contender.least = min(LONGEST, math.ceil(ANSWERS * contender.connections / max(seen.per_second, 1)))
    for number in range(rounds):
        for key in reversed(contenders) if number % 2 else contenders:
            sample = contenders[key].sample(seconds)
            measured[key].samples.append(sample)
            tell(f"round {number + 1} of {rounds}: {measured[key].label}: {sample.per_second:,.0f}/s")
    return measured


def wrk(
    server: Server,
    token: str,
    seconds: int,
    path: str = "/",
    requests: Sequence[Request] = (),
    *,
    repeats: bool = False,
    connections: int = CONNECTIONS,
) -> Load:
    """Request a page repeatedly, or send ``requests``: each once, or again from the first one if it ``repeats``.

    Raises MeasurementFailed for answers other than 2xx.

    wrk is written in C, so it takes little of the processors that it shares with the servers.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".paths") as file:
        for one in requests:
            file.write(f"{one.method}\t{one.path}")
            file.write("\n" if one.body is None else f"\t{json.dumps(one.body)}\n")
        file.flush()
        threads = 1 if requests else THREADS  # each thread would send the list from its start
        command = [
            *("wrk", "--threads", str(threads), "--connections", str(connections), "--duration", f"{seconds}s"),
            *("--timeout", "60s", "--script", str(Path(__file__).with_name("wrk.lua"))),
            *("--header", f"Authorization: Bearer {token}", f"http://127.0.0.1:{server.port}{path}"),
            *(["--", file.name, *(["repeat"] if repeats else [])] if requests else []),
        ]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 120)
    if requests:
        time.sleep(SETTLED)
    found = json.loads(told.stdout.strip().splitlines()[-1])
    if any(found["faults"].values()):
        raise MeasurementFailed(f"{path}: {found['faults']} of {found['answers']} answers")
    per_second, p50, p99 = found["answers"] / found["microseconds"] * 1e6, found["p50"] / 1000, found["p99"] / 1000
    return found["answers"], Sample(per_second=per_second, p50=p50, p99=p99)


@contextmanager
def pages(stores: Mapping[str, Store], folder: Path, token: str) -> Iterator[tuple[int, dict[str, Contender]]]:
    """The length of the page, and all contenders that answer it. ``stores`` by prefix; "sqlite" is one of them.

    All servers run all the time, because an idle one takes no processor time.
    """
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        answer = folder / "answer"  # a line of headers, then the body

        def add(key: str, label: str, serving: AbstractContextManager[Server], pid: int | None) -> None:
            server = stack.enter_context(serving)
            contenders[key] = Contender(label, partial(wrk, server, token, path=PAGE), (server.pid, pid))
            _, headers, body = server.get(PAGE, token)
            if key == "sqlite":
                answer.write_bytes(json.dumps(headers).encode() + b"\n" + body)
            expected = answer.read_bytes().partition(b"\n")[2]
            # In the large organization other controls come first, so only the length can be compared.
            if len(body) < len(expected) * 0.95 if "large" in key else json.loads(body) != json.loads(expected):
                raise MeasurementFailed(f"{label} answers something else than Normata, SQLite")

        sizes = [("", "", "small", 1), ("-large", ", large", "large", 1)]
        if len(os.sched_getaffinity(0)) >= 2:
            sizes.append(("-2", ", two workers", "small", 2))
        for prefix, store in stores.items():
            for key, words, label, workers in sizes:
                name = f"Normata, {store.name}{words}"
                add(f"{prefix}{key}", name, normata(store, label, workers=workers), store.pid)
                # Without a page cache, so that each page is read and encoded.
                cold = normata(store, label, workers=workers, page_cache_mib=0)
                add(f"{prefix}-cold{key}", f"{name}, nothing cached", cold, store.pid)
        add("bare", "Bare application on the same server", stand_in("stand_in:bare", {ANSWER: str(answer)}), None)
        plain = stand_in("plain:create_app", {DATABASE: stores["sqlite"].url("small")})
        add("plain", "FastAPI, Pydantic and the ORM, SQLite", plain, None)
        yield len(answer.read_bytes().partition(b"\n")[2]), contenders


class Sort(NamedTuple):
    """A type of change: its requests, how its statement begins, and a condition for the changed policies."""

    name: str
    post: Callable[[int], Post]
    write: str
    made: str


SORTS = (
    Sort("restore", restoring, "UPDATE policy", "archived_at IS NULL"),
    Sort("create", creating, "INSERT INTO policy", f"title LIKE '{CREATED} %'"),
)


@contextmanager
def changes(stores: Mapping[str, Store], policies: int, token: str) -> Iterator[dict[str, Contender]]:
    """Normata's changes in each store, and the same statements without Normata."""
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for prefix, store in stores.items():
            if store.is_ours:
                contenders[f"{prefix}-restore-unsealed"] = _unsealed(store, stack, policies, token)
            server = stack.enter_context(normata(store, "small"))
            for sort in SORTS if store.is_ours else SORTS[:1]:
                posts = [sort.post(number) for number in range(policies)]
                hooks: Any = {"prepare": partial(archive_again, store), "verify": partial(_require_made, store, sort)}
                if store.is_ours:  # this process has the application of this checkout only
                    archive_again(store)
                    transaction = capture(store.url("small"), token, posts[0], sort.write)
                    # In advance, because preparing parameters is not part of the measurement.
                    prepared = [transaction.of(post.mark) for post in posts]
                    send, driver = _send_to_postgresql, f"{CONNECTIONS} connections of asyncpg"
                    if isinstance(store, SQLite):
                        send, driver = _send_to_sqlite, "one connection of sqlite3"
                    load = partial(send, store.url("small"), prepared)
                    label = f"The statements of a {sort.name}, {driver}"
                    contenders[f"{prefix}-{sort.name}-statements"] = Contender(label, load, **hooks)
                load = partial(wrk, server, token, requests=_requests(posts))
                pids = server.pid, store.pid
                contenders[f"{prefix}-{sort.name}"] = Contender(
                    f"Normata, {sort.name}, {store.name}", load, pids, **hooks
                )
        yield contenders


UNSEALED = "unsealed"
_SEALED = ("unsealed_event", "event_leaf", "event_checkpoint")


def _unsealed(store: Store, stack: ExitStack, policies: int, token: str) -> Contender:
    """Restores without the sealing of events."""
    store.copy(UNSEALED, "small")
    store.ask(UNSEALED, f"DROP TRIGGER {NOTING} {store.of_trigger}")
    server = stack.enter_context(stand_in("unsealed:create_app", {"NORMATA_DATABASE_URL": store.url(UNSEALED)}))
    return Contender(
        f"Normata, restore, {store.name}, nothing sealed",
        partial(wrk, server, token, requests=_requests([restoring(number) for number in range(policies)])),
        (server.pid, store.pid),
        prepare=partial(archive_again, store, UNSEALED),
        verify=partial(_require_made, store, SORTS[0], label=UNSEALED),
    )


def _requests(posts: Sequence[Post]) -> list[Request]:
    return [Request("POST", post.path, post.body) for post in posts]


def archive_again(store: Store, label: str = "small") -> None:
    """Archive the records again, and remove the rows that the changes have added."""
    store.ask(
        label,
        f"DELETE FROM policy WHERE title LIKE '{CREATED} %'",  # noqa: S608 - ours
        f"UPDATE policy SET archived_at = '{moment(1_500)}' WHERE archived_at IS NULL",  # noqa: S608 - ours
        "DELETE FROM audit_event",
        *(f"DELETE FROM {table}" for table in _SEALED if store.is_ours),  # noqa: S608 - ours
        f"DELETE FROM notification WHERE user_id != '{CALLER}'",  # noqa: S608 - ours
        *store.settling,
    )


def _require_made(store: Store, sort: Sort, answers: int, label: str = "small") -> None:
    (made,) = store.ask(label, f"SELECT count(*) FROM policy WHERE {sort.made}")  # noqa: S608 - ours
    if made < answers * 0.9:  # wrk's count is not exact, because it stops with requests in flight
        raise MeasurementFailed(f"{store.name}: {made} of {answers} policies are there after {sort.name}")


def _send_to_sqlite(url: str, transactions: Transactions, seconds: int) -> Load:
    """Run transactions one after the other, as durably as Normata."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60, isolation_level=None)) as connection:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -16384"):
            connection.execute(f"PRAGMA {pragma}")
        done, started = 0, time.perf_counter()
        while done < len(transactions) and time.perf_counter() - started < seconds:
            for text, parameters, _ in transactions[done]:
                connection.execute(text, parameters).fetchall()
            done += 1
        return done, Sample(per_second=done / (time.perf_counter() - started))


def _send_to_postgresql(url: str, transactions: Transactions, seconds: int) -> Load:
    """Run transactions over several connections at once."""

    async def send(connection: Any, waiting: Iterator[Sequence[Statement]], end: float) -> int:
        done = 0
        while time.perf_counter() < end and (statements := next(waiting, None)):
            for text, parameters, _ in statements:
                # asyncpg cannot prepare several statements in one text.
                await (connection.fetch(text, *parameters) if parameters else connection.execute(text))
            done += 1
        return done

    async def run() -> Load:
        pool = [await asyncpg.connect(url) for _ in range(CONNECTIONS)]
        waiting, started = iter(transactions), time.perf_counter()
        done = sum(await asyncio.gather(*(send(connection, waiting, started + seconds) for connection in pool)))
        sample = Sample(per_second=done / (time.perf_counter() - started))
        for connection in pool:
            await connection.close()
        return done, sample

    return asyncio.run(run())
