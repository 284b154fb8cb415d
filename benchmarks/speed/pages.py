"""How many pages of controls a second: Normata in several settings, and what it is held against."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.speed import bare, plain, processes
from benchmarks.speed.data import ORGANIZATION
from benchmarks.speed.figures import Measured, Sample
from benchmarks.speed.generators import Generator, Load
from benchmarks.speed.processes import Server, ask
from benchmarks.speed.rounds import Contender, Effort, measure, watched
from benchmarks.speed.stores import SQLite, Store

PAGE = f"/controls/?organizationId={ORGANIZATION}&limit=100"
_WARMING = 1  # seconds

_ALIKE = 0.95  # as long as that at least, of another organization

# However slow a contender is, each connection is to have so many answers in a round, unless that takes too long.
ANSWERS = 20
LONGEST = 15  # seconds

# Nothing is kept of one request for another: what a page costs that has to be read and encoded.
_COLD = {"page_cache_mib": 0}


class DifferentAnswers(Exception):
    """Two contenders do not answer the same, so to compare them would say nothing."""


class _Serving(NamedTuple):
    """A server among the contenders; ``store`` where it has processes to watch."""

    label: str
    server: Server
    store: Store | None


@contextmanager
def _servers(stores: Mapping[str, Store], folder: Path, token: str) -> Iterator[dict[str, _Serving]]:
    """All servers. They run throughout: one that is asked nothing costs nothing."""
    with ExitStack() as stack:
        serving: dict[str, _Serving] = {}

        def serve(key: str, label: str, store: Store, database: str, workers: int = 1, **settings: object) -> None:
            server = stack.enter_context(processes.normata(store.url(database), workers=workers, **settings))
            serving[key] = _Serving(label, server, store)

        two = len(os.sched_getaffinity(0)) >= 2
        for prefix, store in stores.items():
            serve(prefix, f"Normata, {store.name}", store, "small")
            serve(f"{prefix}-cold", f"Normata, {store.name}, nothing kept", store, "small", **_COLD)
            if two:
                serve(f"{prefix}-2", f"Normata, {store.name}, two workers", store, "small", 2)
                label = f"Normata, {store.name}, two workers, nothing kept"
                serve(f"{prefix}-cold-2", label, store, "small", 2, **_COLD)
            serve(f"{prefix}-large", f"Normata, {store.name}, large", store, "large")
            serve(f"{prefix}-cold-large", f"Normata, {store.name}, large, nothing kept", store, "large", **_COLD)
        answer = ask(serving["sqlite"].server, PAGE, token)
        bare.keep_answer(folder / "answer", answer.headers, answer.body)
        environment = {bare.ANSWER: str(folder / "answer")}
        server = stack.enter_context(processes.stand_in("bare", **environment))
        serving["bare"] = _Serving("Bare application on the same server", server, None)
        environment = {plain.DATABASE: stores["sqlite"].url("small")}
        server = stack.enter_context(processes.stand_in("plain", **environment))
        serving["plain"] = _Serving("FastAPI, Pydantic and the ORM, SQLite", server, None)
        yield serving


def measure_pages(
    stores: Mapping[str, Store],
    folder: Path,
    token: str,
    effort: Effort,
) -> tuple[int, dict[str, Measured]]:
    """The length of the page, and all contenders. ``stores`` by their prefix; "sqlite" is one of them."""
    assert isinstance(stores["sqlite"], SQLite)  # noqa: S101 - the plain application reads its file
    with _servers(stores, folder, token) as serving:
        length = _compare(serving, token)
        contenders = {key: _contender(each, effort.generator, token, length) for key, each in serving.items()}
        return length, measure(contenders, effort)


def _contender(each: _Serving, generator: Generator, token: str, length: int) -> Contender:
    enough = _enough_seconds(generator.get(each.server, PAGE, token, _WARMING), generator.connections)

    def load(seconds: int) -> Load:
        done = generator.get(each.server, PAGE, token, seconds)
        if done.body_bytes < done.answers * length * _ALIKE:
            raise DifferentAnswers(f"{each.label} gave {done.answers} answers, but not as many pages")
        return done

    def once(seconds: int) -> Sample:
        return watched(each.server, each.store, lambda: load(max(seconds, enough)))

    return Contender(each.label, once)


def _enough_seconds(seen: Load, connections: int) -> int:
    """How long a slow contender has to be asked.

    What is under way in the end is not counted. Where each connection had but a few answers, that would make much of
    the figure.
    """
    if not seen.answers:
        return LONGEST
    return min(LONGEST, math.ceil(ANSWERS * connections / seen.per_second))


def _compare(serving: Mapping[str, _Serving], token: str) -> int:
    """The length of the page, which all must answer alike. Raises DifferentAnswers.

    Of the large organization only the length can be alike: other controls come first there.
    """
    expected = ask(serving["sqlite"].server, PAGE, token)
    for key, each in serving.items():
        answer = ask(each.server, PAGE, token)
        if answer.status != 200:
            raise DifferentAnswers(f"{each.label} answers {answer.status}")
        if key.endswith("-large"):
            if not _ALIKE < len(answer.body) / len(expected.body) < 1 / _ALIKE:
                raise DifferentAnswers(f"{each.label} answers {len(answer.body)} bytes, not {len(expected.body)}")
        elif json.loads(answer.body) != json.loads(expected.body):
            raise DifferentAnswers(f"{each.label} answers something else than {serving['sqlite'].label}")
    return len(expected.body)
