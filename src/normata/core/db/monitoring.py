"""Who waits for the database, and how long: reported to whoever counts it, since this package knows no metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from typing_extensions import override

# What is waited for: SQLite's one thread each for reads, writes and dry runs in this process, its lock while another
# one has it, and a connection of PostgreSQL's pool.
WaitName = Literal["reader", "planner", "writer", "dry_run", "lock", "connection"]


class WaitMonitor(Protocol):
    """Takes note of those who wait for one thing. It is called from any thread."""

    def begin(self) -> None:
        """Somebody begins to wait."""

    def end(self, seconds: float) -> None:
        """Somebody has what it waited for, or has given up, after so many seconds."""


class Monitor(Protocol):
    """Takes note of how busy a database is."""

    def waits(self, name: WaitName) -> WaitMonitor:
        """Who takes note of those who wait for this."""

    def connections(self, *, used: int, idle: int, limit: int) -> None:
        """The connections of the pool: those in use, those that are open and free, and how many there may be."""


class NoMonitor(Monitor, WaitMonitor):
    """Takes note of nothing: a :class:`Monitor`, and its :class:`WaitMonitor`, for commands."""

    @override
    def waits(self, name: WaitName) -> WaitMonitor:
        return self

    @override
    def connections(self, *, used: int, idle: int, limit: int) -> None:
        pass

    @override
    def begin(self) -> None:
        pass

    @override
    def end(self, seconds: float) -> None:
        pass


@contextmanager
def measured_wait(waits: WaitMonitor) -> Iterator[None]:
    """Report a block that does nothing but wait to ``waits``."""
    began = time.perf_counter()
    waits.begin()
    try:
        yield
    finally:
        waits.end(time.perf_counter() - began)
