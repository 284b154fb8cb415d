"""Mixed traffic: of a hundred requests, seventy read one thing, twenty read a list, ten change a task."""

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from benchmarks.installations import Store, normata, tell
from benchmarks.speed.contenders import PAGE, Contender, Request, measure, wrk
from benchmarks.speed.data import ORGANIZATION, WRITER, arrays
from benchmarks.speed.figures import Figures, Measured, Spread
from benchmarks.speed.outcome import Outcome
from benchmarks.world import Tokens, made_id

CONTROLS, TASKS = 1_500, 2_000  # half of the tasks are archived
CONNECTIONS = (4, 16, 64)
PATIENCE = 100  # milliseconds of the 99th percentile, within which a rate counts
_LEAST_RATE = 1_000  # a second, with one worker
_STATUSES = ("IN_PROGRESS", "TODO")  # each task gets both in turn, so that every request changes something


def measured(stores: Mapping[str, Store], tokens: Tokens, rounds: int, seconds: int) -> dict[str, Measured]:
    """Load the database `mixed` into all stores, and measure the traffic."""
    for store in stores.values():
        tell(f"loading controls and tasks into {store.name}")
        store.create("mixed")
        store.load("mixed", arrays(tokens, controls=CONTROLS, policies=0, tasks=TASKS))
        store.ask("mixed", *store.settling)
    with _traffic(stores, tokens[WRITER]) as asked:
        return measure(asked, rounds, seconds)


def _requests() -> Sequence[Request]:
    """The requests in an order that is always the same; they can be repeated from the start."""
    rng, asked = random.Random(8), f"organizationId={ORGANIZATION}"
    live = [made_id("task", number) for number in range(TASKS // 2, TASKS)]
    changes = [
        Request("PATCH", f"/tasks/{task}/?{asked}", {"status": status})
        for status in _STATUSES
        for task in rng.sample(live, len(live))
    ]
    lists = [PAGE, f"/tasks/?{asked}", f"/notifications/?{asked}", f"/controls/?{asked}&hasGap=true"]
    mixed = []
    for change in changes:
        tasks = (f"/tasks/{rng.choice(live)}/?{asked}" for _ in range(4))
        controls = (f"/controls/{made_id('control', rng.randrange(CONTROLS))}/?{asked}" for _ in range(3))
        batch = [change, *(Request("GET", path) for path in (*tasks, *controls, *rng.sample(lists, 2)))]
        mixed += rng.sample(batch, len(batch))
    return mixed


@contextmanager
def _traffic(stores: Mapping[str, Store], token: str) -> Iterator[dict[str, Contender]]:
    """The traffic over several numbers of connections, with one worker and with two where there are cores for them."""
    mixed = _requests()
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for prefix, store in stores.items():
            for workers in (1, 2) if len(os.sched_getaffinity(0)) >= 2 else (1,):
                server = stack.enter_context(normata(store, "mixed", workers=workers))
                for connections in CONNECTIONS:
                    label = f"Normata, {store.name}, {_words(workers)}, {connections} connections"
                    load = partial(wrk, server, token, requests=mixed, repeats=True, connections=connections)
                    contenders[_key(prefix, workers, connections)] = Contender(
                        label, load, (server.pid, store.pid), connections=connections
                    )
        yield contenders


def of_mixed(figures: Figures) -> Iterator[Outcome]:
    """The highest rate at which the slowest of a hundred requests is answered in time."""
    for prefix, name in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL")):
        for workers in (1, 2):
            measured = (figures.mixed.get(_key(prefix, workers, connections)) for connections in CONNECTIONS)
            in_time = [one for one in measured if one is not None and (one.median("p99") or 0) < PATIENCE]
            if in_time:
                bound = _LEAST_RATE if workers == 1 and prefix == "sqlite" else None
                best = max((_rate(one) for one in in_time), key=lambda rate: rate.value)
                label = f"Mixed traffic, p99 below {PATIENCE} ms, {name}, {_words(workers)}"
                yield Outcome(label, best, bound, True, " /s")


def _rate(measured: Measured) -> Spread:
    rates = [sample.per_second for sample in measured.samples]
    return Spread(measured.per_second, min(rates), max(rates))


def _key(prefix: str, workers: int, connections: int) -> str:
    return f"{prefix}-{workers}-{connections}"


def _words(workers: int) -> str:
    return "one worker" if workers == 1 else f"{workers} workers"
