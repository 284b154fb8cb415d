"""What Normata promises, and whether it keeps it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from benchmarks.speed.figures import Figures, Memory, Spread, ratio

_GROWTH = 1.1


@dataclass(frozen=True, slots=True)
class Outcome:
    """A promise beside what was measured. Without a ``bound`` it is none, but something to know."""

    name: str
    measured: Spread
    bound: float | None = None
    sense: Literal["≥", "<"] = "≥"
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the promise is kept, going by the median."""
        if self.bound is None:
            return True
        return self.measured.value >= self.bound if self.sense == "≥" else self.measured.value < self.bound

    @property
    def target(self) -> str:
        """The promise as it is written."""
        return "" if self.bound is None else f"{self.sense} {self.bound:g}{self.unit}"


def outcomes(figures: Figures) -> list[Outcome]:
    """All that can be told from these figures."""
    return [*_ratios(figures), *_memory(figures.memory), *_starting(figures)]


def missed(figures: Figures) -> list[Outcome]:
    """Those that are not kept."""
    return [outcome for outcome in outcomes(figures) if not outcome.met]


def _ratios(figures: Figures) -> Iterator[Outcome]:
    large = f"{figures.large_controls:,} / {figures.controls:,} controls"
    pages, restores = figures.pages, figures.restores
    wanted = (
        (pages, "sqlite", "bare", "Page, SQLite / bare application", 0.5),
        (pages, "postgresql", "bare", "Page, PostgreSQL / bare application", 0.35),
        (pages, "sqlite-cold", "plain", "Page, nothing kept, SQLite / FastAPI and ORM", 8.0),
        (pages, "postgresql-cold", "plain", "Page, nothing kept, PostgreSQL / FastAPI and ORM on SQLite", None),
        (pages, "sqlite-large", "sqlite", f"Page, SQLite, {large}", 0.9),
        (pages, "postgresql-large", "postgresql", f"Page, PostgreSQL, {large}", 0.9),
        (pages, "sqlite-cold-large", "sqlite-cold", f"Page, nothing kept, SQLite, {large}", 0.7),
        (pages, "postgresql-cold-large", "postgresql-cold", f"Page, nothing kept, PostgreSQL, {large}", 0.7),
        (pages, "sqlite-cold-2", "sqlite-cold", "Page, nothing kept, SQLite, two workers / one", 1.7),
        (pages, "sqlite-2", "sqlite", "Page, SQLite, two workers / one", _spare(figures, 1.7)),
        (pages, "postgresql-cold-2", "postgresql-cold", "Page, nothing kept, PostgreSQL, two workers / one", None),
        (pages, "postgresql-2", "postgresql", "Page, PostgreSQL, two workers / one", None),
        (restores, "sqlite-restore", "sqlite-statements", "Restore, SQLite / the same statements", 0.5),
        (restores, "postgresql-restore", "postgresql-statements", "Restore, PostgreSQL / the same statements", 0.4),
    )
    for measured, upper, lower, name, bound in wanted:
        if (found := ratio(measured, upper, lower)) is not None:
            yield Outcome(name, found, bound)


def _spare(figures: Figures, bound: float) -> float | None:
    """A promise for machines only that have cores for two workers and for the generator beside them."""
    return bound if figures.machine.cores >= 4 else None


def _memory(memory: Memory | None) -> Iterator[Outcome]:
    if memory is None:
        return
    peak, last = max(memory.mib), memory.mib[-1]
    yield Outcome(
        f"Memory of a worker after {memory.requests[-1]:,} requests",
        Spread(last, min(memory.mib), peak),
        200,
        "<",
        " MiB",
    )
    warm = memory.mib[warm_sample(memory)]
    growth = f"Memory, last / after {memory.requests[warm_sample(memory)]:,} requests"
    later = [mib / warm for mib in memory.mib[warm_sample(memory) :]]
    yield Outcome(growth, Spread(last / warm, min(later), max(later)), _GROWTH, "<")


def warm_sample(memory: Memory) -> int:
    """The sample from which on memory is to be flat: after a fifth of the requests, when what is kept has filled."""
    return len(memory.mib) // 5


def _starting(figures: Figures) -> Iterator[Outcome]:
    if figures.starting is None:
        return
    for name, values, bound in (
        ("`normata serve`, start to first answer", figures.starting.serve, 2),
        ("`normata --help`", figures.starting.help, 0.3),
    ):
        yield Outcome(name, Spread(statistics.median(values), min(values), max(values)), bound, "<", " s")
