"""Import catalogs into one organization, and measure how long writes of another one take meanwhile.

    python -m benchmarks.imports [--rows 19900] [--seconds 25] [--loops 2] [--only sqlite postgresql]

Each round has a server with one process. Loops send the same table repeatedly: as dry runs, then as imports, each of
which adds a framework or changes every control of one. After 409 and 429 they wait as `Retry-After` says. It exits with
1 if a write failed.
"""

import argparse
import http.client
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from benchmarks.installations import PostgreSQL, SQLite, Store, normata, tell
from normata.identity.tokens.tokens import digest, generate
from tests.postgres import running_server

_ORGANIZATIONS = ("importing", "writing")
_PAUSE = 0.02  # seconds between two writes
_PATIENCE = 120.0  # seconds until a client gives up


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.imports", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=19_900, help="controls of each import")
    parser.add_argument("--seconds", type=float, default=25, help="of each round")
    parser.add_argument("--loops", type=int, default=2, help="clients that import")
    parser.add_argument("--only", nargs="+", choices=("sqlite", "postgresql"), default=["sqlite", "postgresql"])
    options = parser.parse_args()
    tokens = {name: generate() for name in _ORGANIZATIONS}
    failed = False
    for name in options.only:
        with _store(postgresql=name == "postgresql") as store:
            store.create("imports")
            store.load("imports", _world(tokens).items())
            with normata(store, "imports") as server:
                for kind in ("nothing", "dry runs", "imports"):
                    loops = 0 if kind == "nothing" else options.loops
                    seconds = 5.0 if kind == "nothing" else options.seconds
                    load = _Load(server.port, tokens["importing"], options.rows, seconds, kind == "dry runs")
                    failed |= _round(f"{store.name}, beside {kind}", load, loops, tokens["writing"])
    sys.exit(1 if failed else 0)


@contextmanager
def _store(*, postgresql: bool) -> Iterator[Store]:
    if postgresql:
        with running_server(durable=True) as running:
            yield PostgreSQL(running)
        return
    with tempfile.TemporaryDirectory(prefix="normata-imports-") as folder:
        yield SQLite(Path(folder))


def _world(tokens: dict[str, str]) -> dict[str, list[dict[str, object]]]:
    """Two organizations, each with an admin and a token."""
    return {
        "organizations": [{"id": name, "name": name, "slug": name} for name in tokens],
        "users": [{"id": f"user-{name}", "name": name, "email": f"{name}@example.org"} for name in tokens],
        "memberships": [
            {"id": f"member-{name}", "organizationId": name, "userId": f"user-{name}", "role": "admin"}
            for name in tokens
        ],
        "accessTokens": [
            {"id": f"token-{name}", "userId": f"user-{name}", "digest": digest(token), "scope": "admin"}
            for name, token in tokens.items()
        ],
    }


class _Load(NamedTuple):
    """What each importing client does."""

    port: int
    token: str
    rows: int
    seconds: float
    is_dry_run: bool


def _round(words: str, load: _Load, loops: int, token: str) -> bool:
    """Write while ``loops`` clients import, and print the results; whether a write failed."""
    until = time.monotonic() + load.seconds
    context = multiprocessing.get_context("spawn")
    clients = []
    for number in range(loops):
        ours, theirs = context.Pipe(duplex=False)
        client = context.Process(target=_import, args=(load, number, theirs))
        client.start()
        clients.append((client, ours))
    taken, outcomes = _write(load.port, token, until + (2 if loops else 0))
    imports: Counter[str] = Counter()
    longest = 0.0
    for client, ours in clients:
        found, most = ours.recv()
        imports += found
        longest = max(longest, most)
        client.join()
    failures = {outcome: count for outcome, count in outcomes.items() if outcome != "201"}
    ordered = sorted(taken)
    print(
        f"{words}: {len(taken)} writes, median {statistics.median(taken) * 1e3:.0f} ms,"
        f" p99 {ordered[int(len(ordered) * 0.99)] * 1e3:.0f} ms, longest {ordered[-1] * 1e3:.0f} ms,"
        f" failed {failures or 'none'}; imports {dict(imports)}, longest {longest:.1f} s",
        flush=True,
    )
    return bool(failures)


def _write(port: int, token: str, until: float) -> tuple[list[float], Counter[str]]:
    """Create policies one after the other: the seconds of each, and the number of each outcome."""
    taken: list[float] = []
    outcomes: Counter[str] = Counter()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)) as connection:
        while time.monotonic() < until:
            body = json.dumps({"organizationId": "writing", "title": f"Policy {len(taken)} {time.time_ns()}"})
            began = time.perf_counter()
            connection.request("POST", "/policies/", body, headers)
            answer = connection.getresponse()
            answer.read()
            taken.append(time.perf_counter() - began)
            outcomes[str(answer.status)] += 1
            time.sleep(_PAUSE)
    return taken, outcomes


def _import(load: _Load, number: int, report: Connection) -> None:
    """Import until the time is over; report the numbers of outcomes, and the seconds of the longest import."""
    until, outcomes, longest = time.monotonic() + load.seconds, Counter[str](), 0.0
    headers = {"Authorization": f"Bearer {load.token}", "Content-Type": "text/csv"}
    mark = datetime.now(UTC).strftime("%H%M%S")
    done = 0
    with closing(http.client.HTTPConnection("127.0.0.1", load.port, timeout=_PATIENCE)) as connection:
        while time.monotonic() < until:
            name = f"name={mark}-{number}-{done // 2}"
            query = f"organizationId=importing&{name}" + ("&dryRun=true" if load.is_dry_run else "")
            began = time.perf_counter()
            connection.request("POST", f"/imports/?{query}", _table(load.rows, done % 2), headers)
            answer = connection.getresponse()
            answer.read()
            outcomes[str(answer.status)] += 1
            if answer.status == 400:
                raise AssertionError("the table is refused")
            if answer.status in (409, 429):
                time.sleep(float(answer.headers["Retry-After"]))
                continue
            longest = max(longest, time.perf_counter() - began)
            done += 1
    report.send((outcomes, longest))


def _table(rows: int, version: int) -> bytes:
    """A table of controls in three levels; all names differ between versions."""
    lines = ["identifier,name,parent,purpose,description,mandatory"]
    for place in range(rows):
        parent = f"C-{place // 10:05}" if place >= 10 else ""
        words = "The organization keeps a record of it and reviews it every year and says who answers for it."
        lines.append(f"C-{place:05},Control {place} of version {version},{parent},,{words},yes")
    return "\n".join(lines).encode()


if __name__ == "__main__":
    tell("Times depend on the machine, and on what else it does.")
    main()
