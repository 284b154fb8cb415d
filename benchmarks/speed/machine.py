"""Where it is measured, and with what."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks.scale import memory
from benchmarks.speed.figures import Machine
from benchmarks.speed.generators import Generator
from benchmarks.speed.stores import Store

_PACKAGES = ("granian", "fastapi", "pydantic", "sqlalchemy", "asyncpg")


def describe(folder: Path, generator: Generator, sqlite: Store, postgresql: Store | None) -> Machine:
    """What this machine is; ``folder`` is where the databases are."""
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(memory() / 2**30),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        packages={package: version(package) for package in _PACKAGES},
        sqlite=sqlite.version,
        postgresql=postgresql.version if postgresql else None,
        generator=generator.name,
        fsync_ms=_fsync(folder),
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return platform.machine()


def _fsync(folder: Path, times: int = 50) -> float:
    """Milliseconds, in the median, until the disk has a page of 4 KiB: what a commit cannot be faster than."""
    taken = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(times):
            begun = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)
