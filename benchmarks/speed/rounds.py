"""Measuring several contenders so that whatever else the machine does strikes all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from benchmarks.speed.figures import Measured, Sample
from benchmarks.speed.generators import Generator, Load, LoadFailed
from benchmarks.speed.processes import Server
from benchmarks.speed.stores import Store

Tell = Callable[[str], None]


class Contender(NamedTuple):
    """Something that is measured: ``once`` does it for some seconds."""

    label: str
    once: Callable[[int], Sample]


class Effort(NamedTuple):
    """How hard to measure."""

    generator: Generator
    rounds: int
    seconds: int  # of one contender in one round
    tell: Tell


def measure(contenders: Mapping[str, Contender], effort: Effort) -> dict[str, Measured]:
    """All contenders, one after the other, in several rounds; every other round goes backwards."""
    measured = {key: Measured(label=contender.label, samples=[]) for key, contender in contenders.items()}
    for number in range(effort.rounds):
        order = list(contenders.items())
        for key, contender in reversed(order) if number % 2 else order:
            sample = contender.once(effort.seconds)
            measured[key].samples.append(sample)
            at = f"round {number + 1} of {effort.rounds}"
            effort.tell(f"{at}: {contender.label}: {sample.per_second:,.0f}/s")
    return measured


def watched(server: Server, store: Store | None, load: Callable[[], Load]) -> Sample:
    """A load, and what it cost the processors."""
    before, database_before = server.processor_seconds(), _processor_seconds(store)
    done = load()
    after, database_after = server.processor_seconds(), _processor_seconds(store)
    if not done.answers:
        raise LoadFailed(f"{server.base} gave no answer in time; more --seconds may help")
    used = None if database_before is None or database_after is None else database_after - database_before
    return Sample(
        per_second=done.per_second,
        p50=done.p50,
        p99=done.p99,
        processor=(after - before) * 1000 / done.answers,
        database=None if used is None else used * 1000 / done.answers,
    )


def _processor_seconds(store: Store | None) -> float | None:
    return None if store is None else store.processor_seconds()
