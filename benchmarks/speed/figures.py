"""What was measured, as it is kept: the page is made from this and from nothing else."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from pydantic import BaseModel


class Sample(BaseModel):
    """One contender in one round; times in milliseconds."""

    per_second: float
    p50: float | None = None
    p99: float | None = None
    processor: float | None = None  # of the server's processes, a request
    database: float | None = None  # of PostgreSQL's processes, a request


class Measured(BaseModel):
    """One contender in all rounds."""

    label: str
    samples: list[Sample]

    @property
    def per_second(self) -> float:
        """The median over the rounds."""
        return statistics.median(sample.per_second for sample in self.samples)

    def median(self, name: str) -> float | None:
        """The median of another figure; null where it was not taken."""
        values = [getattr(sample, name) for sample in self.samples]
        return None if None in values else statistics.median(values)


class Loaded(BaseModel):
    """A bundle went into a database."""

    database: str
    controls: int
    matches: int
    policies: int
    seconds: float
    peak_mib: float


class Memory(BaseModel):
    """The memory of a worker by the number of requests that it had answered."""

    requests: list[int]
    mib: list[float]
    statuses: dict[int, int]


class Starting(BaseModel):
    """Seconds that starts took."""

    serve: list[float]
    help: list[float]


class Machine(BaseModel):
    """Where it was measured, and with what."""

    processor: str
    cores: int
    memory_gib: int
    system: str
    python: str
    packages: dict[str, str]
    sqlite: str
    postgresql: str | None = None
    generator: str
    fsync_ms: float


class Figures(BaseModel):
    """All of one run. What was left out is empty."""

    date: str
    machine: Machine
    rounds: int
    seconds: int
    connections: int
    controls: int
    large_controls: int
    page_bytes: int = 0
    loaded: list[Loaded] = []
    pages: dict[str, Measured] = {}
    restores: dict[str, Measured] = {}
    memory: Memory | None = None
    starting: Starting | None = None


class Spread(NamedTuple):
    """A figure and what it was at least and at most."""

    value: float
    low: float
    high: float


def ratio(measured: dict[str, Measured], upper: str, lower: str) -> Spread | None:
    """How many times faster one contender is than another: the medians' ratio, and the extremes of single rounds.

    Null where one of them was not measured.
    """
    if upper not in measured or lower not in measured:
        return None
    above, below = measured[upper], measured[lower]
    rounds = [a.per_second / b.per_second for a, b in zip(above.samples, below.samples, strict=True)]
    return Spread(above.per_second / below.per_second, min(rounds), max(rounds))
