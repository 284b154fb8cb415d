"""The memory of one worker under all sorts of requests, many of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from benchmarks.scale import sentence
from benchmarks.speed import processes
from benchmarks.speed.data import FRAMEWORKS, ORGANIZATION, Tokens, policy_id
from benchmarks.speed.figures import Memory
from benchmarks.speed.generators import Request, drive, request
from benchmarks.speed.pages import PAGE
from benchmarks.speed.processes import Server, ask
from benchmarks.speed.restores import archive_again
from benchmarks.speed.rounds import Tell
from benchmarks.speed.stores import Store

CONNECTIONS = 16
_STEPS = 20  # samples


def measure_memory(store: Store, policies: int, tokens: Tokens, requests: int, tell: Tell) -> Memory:
    """Samples of the worker's memory while it answers so many requests; the first before any."""
    archive_again(store)
    measured = Memory(requests=[], mib=[], statuses={})
    statuses: Counter[int] = Counter()
    with processes.normata(store.url("small")) as server:
        mixed = _mixed(server, tokens, policies)
        for step in range(_STEPS + 1):
            if step:
                statuses += drive(server, islice(mixed, requests // _STEPS), CONNECTIONS).statuses
            measured.requests.append(statuses.total())
            measured.mib.append(server.resident_mib())
            tell(f"memory after {measured.requests[-1]:,} requests: {measured.mib[-1]:.1f} MiB")
    measured.statuses = dict(sorted(statuses.items()))
    return measured


def _mixed(server: Server, tokens: Tokens, policies: int) -> Iterator[Request]:
    """Requests without end: of a hundred, five restore, ten are refused, ten ask whether a page has changed."""
    rng = random.Random("mixed")
    validator = dict(ask(server, PAGE, tokens.reader).headers).get("etag", '"none"')
    numbers = iter(range(policies))
    while True:
        chance = rng.random()
        number = next(numbers, None) if chance < 0.05 else None
        if number is not None:
            yield request("POST", f"/policies/{policy_id(number)}/restore/", tokens.writer, [200])
        elif chance < 0.15:
            yield _refused(rng, tokens)
        elif chance < 0.25:
            # 200 where something has been written since.
            yield request("GET", PAGE, tokens.reader, [200, 304], If_None_Match=validator)
        else:
            yield request("GET", _list(rng), tokens.reader, [200])


def _list(rng: random.Random) -> str:
    """A list with a query that has hardly ever been asked before, or one of few."""
    page = f"organizationId={ORGANIZATION}&limit={rng.randrange(5, 20)}&page={rng.randrange(1, 4)}"
    match rng.randrange(10):
        case 0:
            return f"/frameworks/?{page}&search={sentence(rng, 1)}"
        case 1 | 2:
            return f"/notifications/?{page}&unreadOnly={rng.choice(('true', 'false'))}"
        case 3 | 4 | 5:
            return f"/controls/?organizationId={ORGANIZATION}&limit=20&page={rng.randrange(1, 5)}"
        case 6:
            return f"/controls/?{page}&frameworks=framework-{rng.randrange(FRAMEWORKS)}"
    order = rng.choice(("identifier", "name", "slug", "type", "framework", "createdAt", "updatedAt"))
    direction = rng.choice(("asc", "desc"))
    return f"/controls/?{page}&sortColumn={order}&sortDirection={direction}&search={sentence(rng, 1)}"


def _refused(rng: random.Random, tokens: Tokens) -> Request:
    match rng.randrange(5):
        case 0:
            return request("GET", f"/controls/?organizationId={rng.random()}", tokens.reader, [404])
        case 1:
            return request("GET", f"{PAGE}&page=0", tokens.reader, [400, 422])
        case 2:
            return request("GET", PAGE, f"nobody-{rng.random()}", [401])
        case 3:
            return request("POST", f"/policies/{rng.random()}/restore/", tokens.writer, [404])
    return request("POST", f"/policies/{policy_id(0)}/restore/", tokens.reader, [403])
