"""Attack `normata serve` with two workers, and check whether honest clients notice.

    python -m benchmarks.attack [--minutes 10] [--clients 50] [--rate 3] [--postgresql]

It exits with 1 if an honest request failed or waited more than a second, if the memory of a worker grew, or if an
attack got a 5xx or killed a worker. Normata and what the tests need must be installed.
"""

import argparse
import asyncio
import multiprocessing
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.attack import honest, hostile
from benchmarks.attack.honest import Served
from benchmarks.attack.verdict import Outcomes, faults, grown
from benchmarks.installations import PostgreSQL, Server, SQLite, Store, family, normata, tell
from benchmarks.speed.data import arrays
from benchmarks.world import EDITOR, Arrays, made_id
from normata.identity.tokens.tokens import digest, generate
from tests.postgres import running_server

_CONTROLS = 1_500
_GRACE = 30  # seconds for the attackers to end

# Rounds, their seconds, and requests per second of each client before the attack: caches fill up to their limits, which
# would look like growth. Each round has new connections, for workers that have started late.
_WARMING_ROUNDS, _WARMING, _WARMING_RATE = 4, 5, 10


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.attack", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=50, help="honest ones")
    parser.add_argument("--rate", type=float, default=3, help="requests a second of each honest client")
    parser.add_argument("--postgresql", action="store_true", help="over PostgreSQL, and not SQLite")
    options = parser.parse_args()
    seconds = options.minutes * 60
    policies = int(seconds * options.clients * options.rate * 0.12)
    tokens = [generate() for _ in range(options.clients + 1)]  # the last one is for the attackers
    with _store(postgresql=options.postgresql) as store:
        tell(f"loading {policies:,} records into {store.name}")
        store.create("small")
        store.load("small", _world(tokens, policies))
        store.ask("small", *store.settling)
        with normata(store, "small", workers=2) as server:
            run = asyncio.run(_run(server, tokens, policies, options.rate, seconds))
            internal = _internal_errors(server)
            workers = _memory(server)
    served, memory, outcomes = run
    _report(served, memory, outcomes)
    wrong = list(faults(served, memory, outcomes, internal))
    if workers.keys() != memory.keys():
        wrong.append("a worker has died")
    for sentence in wrong:
        print(f"WRONG: {sentence}")
    print("not good" if wrong else "all is well")
    sys.exit(1 if wrong else 0)


@contextmanager
def _store(*, postgresql: bool) -> Iterator[Store]:
    if postgresql:
        with running_server(durable=True) as running:
            yield PostgreSQL(running)
        return
    with tempfile.TemporaryDirectory(prefix="normata-attack-") as folder:
        yield SQLite(Path(folder))


def _world(tokens: list[str], policies: int) -> Arrays:
    """The world of the speed benchmark, with our own tokens."""
    made = [
        {"id": f"token-{number}", "userId": made_id("user", EDITOR), "digest": digest(token), "scope": "write"}
        for number, token in enumerate(tokens)
    ]
    for name, rows in arrays({}, controls=_CONTROLS, policies=policies):
        yield name, made if name == "accessTokens" else rows


async def _run(
    server: Server, tokens: list[str], policies: int, rate: float, seconds: float
) -> tuple[Served, dict[int, list[float]], Outcomes]:
    """Attack while honest clients send requests, and measure the memory each minute."""
    for _ in range(_WARMING_ROUNDS):
        await honest.ask(server.port, tokens[:-1], 0, _WARMING_RATE, time.monotonic() + _WARMING)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    attackers = context.Process(target=hostile.run, args=(server.port, seconds, tokens[-1], theirs))
    attackers.start()
    try:
        asking = asyncio.create_task(honest.ask(server.port, tokens[:-1], policies, rate, time.monotonic() + seconds))
        memory = {worker: [mib] for worker, mib in _memory(server).items()}
        while not asking.done():
            await asyncio.wait({asking}, timeout=60)
            for worker, mib in _memory(server).items():
                memory.setdefault(worker, []).append(mib)
            tell("memory: " + ", ".join(f"{samples[-1]:.1f} MiB" for samples in memory.values()))
        served = await asking
        outcomes: Outcomes = ours.recv() if ours.poll(_GRACE) else {("all", "left waiting"): 1}
        attackers.join(_GRACE)
    finally:
        attackers.kill()  # if it has not ended itself
        attackers.join()
    return served, memory, outcomes


def _memory(server: Server) -> dict[int, float]:
    """The memory of each worker in MiB, by process id."""
    _, *children = family(server.pid)
    workers = [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]
    return {worker.pid: worker.memory_info().rss / 2**20 for worker in workers}


def _internal_errors(server: Server) -> float:
    """How many requests the service has answered with 500, by its own metrics."""
    _, _, body = server.get("/metrics")
    counted = re.findall(r'^normata_problems_total\{code="internal".*\} (\S+)$', body.decode(), re.MULTILINE)
    return sum(map(float, counted))


def _report(served: Served, memory: dict[int, list[float]], outcomes: Outcomes) -> None:
    print(f"honest requests: {len(served.seconds):,}, failed: {served.failures or 'none'}")
    half, most, longest = served.percentile(0.5), served.percentile(0.99), max(served.seconds, default=0.0)
    print(f"their waits: median {half * 1000:.1f} ms, p99 {most * 1000:.1f} ms, longest {longest * 1000:.0f} ms")
    for worker, samples in memory.items():
        listed = ", ".join(f"{mib:.1f}" for mib in samples)
        print(f"memory of worker {worker}, MiB each minute: {listed}; {grown(samples):.3f} times the second minute")
    for (attack, outcome), count in sorted(outcomes.items()):
        print(f"attack: {attack}: {outcome}: {count:,}")


if __name__ == "__main__":
    main()
