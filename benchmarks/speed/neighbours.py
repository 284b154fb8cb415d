"""What others notice of one client that asks for what is dear, again and again."""

import csv
import http.client
import io
import itertools
import multiprocessing
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import NamedTuple

from benchmarks.installations import Server, Store, normata
from benchmarks.speed.contenders import Contender, Load, MeasurementFailed, Request
from benchmarks.speed.coverage import one_by_one
from benchmarks.speed.data import IMPORTER, ORGANIZATION, READER
from benchmarks.world import Tokens, made_id

TASKS = 300_000
LABEL = "neighbours"  # of the database
ALONE = "alone"
_ROWS = 20_000  # of an imported table
_LIVE = 1_000  # tasks that are asked for one by one
_BEGINNING = 0.5  # seconds until the neighbour is at work
_PATIENCE = 120  # seconds for an answer to the neighbour

_FRAMEWORK = f"/frameworks/{made_id('framework', 1)}"


class Dear(NamedTuple):
    """A request that is repeated; with a body it is an import."""

    words: str
    path: str
    body: bytes | None = None


def _table() -> bytes:
    """A catalog as CSV, which is not stored: its requests are dry runs."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(["identifier", "name", "description"])
    lines.writerows([f"R-{n}", f"Requirement {n}", "What is required here, in some more words"] for n in range(_ROWS))
    return text.getvalue().encode()


def dear() -> dict[str, Dear]:
    """What the neighbour asks for."""
    of = f"organizationId={ORGANIZATION}"
    return {
        "search": Dear("a search in all tasks", f"/tasks/?{of}&search=nowhere%20to%20find&limit=100"),
        "statement": Dear("a statement of applicability", f"{_FRAMEWORK}/statement-of-applicability/?{of}"),
        "workbook": Dear("a statement as a workbook", f"{_FRAMEWORK}/statement-of-applicability/?{of}&format=xlsx"),
        "gaps": Dear("the gaps of a framework", f"{_FRAMEWORK}/gaps/?{of}"),
        "adoption": Dear("the preview of an adoption", f"{_FRAMEWORK}/adoption/preview/?{of}"),
        "import": Dear("the preview of an import", f"/imports/?{of}&name=A%20table&dryRun=true", _table()),
    }


def cheap(tasks: int) -> dict[str, list[Request]]:
    """What others ask for meanwhile: pages that are not cached, and single rows."""
    of = f"organizationId={ORGANIZATION}"
    live = range(tasks // 2, tasks // 2 + min(_LIVE, tasks // 2))
    return {
        "page": [Request("GET", f"/tasks/?{of}&limit=100&page={number}") for number in range(1, 11)],
        "row": [Request("GET", f"/tasks/{made_id('task', number)}/?{of}") for number in live],
    }


@contextmanager
def beside(stores: Mapping[str, Store], tokens: Tokens, tasks: int) -> Iterator[dict[str, Contender]]:
    """Cheap reads, alone and beside each dear one, on each database."""
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for prefix, store in stores.items():
            server = stack.enter_context(normata(store, LABEL))
            for kind, requests in cheap(tasks).items():
                words = {"page": "page of tasks", "row": "task"}[kind]
                neighbours = {ALONE: None, **dear()}
                for name, one in neighbours.items():
                    contenders[f"{prefix}-{kind}-{name}"] = Contender(
                        f"{store.name}, {words}, {ALONE if one is None else f'beside {one.words}'}",
                        partial(_load, server, tokens, requests, one),
                        connections=1,
                    )
        yield contenders


def _load(server: Server, tokens: Tokens, requests: list[Request], neighbour: Dear | None, seconds: int) -> Load:
    """Send cheap requests for some seconds, beside a neighbour, if there is one."""
    if neighbour is None:
        return one_by_one(server, tokens[READER], itertools.cycle(requests), seconds)
    token = tokens[READER if neighbour.body is None else IMPORTER]
    working = multiprocessing.Process(target=_repeat, args=(server.port, token, neighbour), daemon=True)
    working.start()
    try:
        time.sleep(_BEGINNING)
        found = one_by_one(server, tokens[READER], itertools.cycle(requests), seconds)
        if not working.is_alive():
            raise MeasurementFailed("the neighbour was refused")
        return found
    finally:
        working.kill()
        working.join()


def _repeat(port: int, token: str, one: Dear) -> None:
    """Send a request again and again."""
    while True:
        if not ask(port, token, one):
            time.sleep(1)


def ask(port: int, token: str, one: Dear) -> bool:
    """Send a request, and read the answer. Returns false if the last import has not ended yet."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/csv"}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)) as connection:
        connection.request("GET" if one.body is None else "POST", one.path, one.body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status not in (200, 409):
            raise RuntimeError(f"{one.path}: {answer.status}")
        return answer.status == 200
