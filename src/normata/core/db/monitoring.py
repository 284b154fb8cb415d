"""Monitoring of waits for the database. This package does not depend on metrics, so it reports to an interface."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from typing_extensions import override

# What a call can wait for: a thread of SQLite for reads, plans, writes or dry runs, its lock while another process has
# it, a connection from PostgreSQL's pool, or a process for long reads.
WaitName = Literal["reader", "long_reader", "planner", "writer", "dry_run", "lock", "connection", "read_process"]


class WaitMonitor(Protocol):
    """Records waits for one resource. It is called from any thread."""

    def begin(self) -> None:
        """A wait begins."""

    def end(self, seconds: float) -> None:
        """A wait ends, successfully or not, after a number of seconds."""


class Monitor(Protocol):
    """Records the load of a database."""

    def waits(self, name: WaitName) -> WaitMonitor:
        """The monitor of waits for this resource."""

    def connections(self, *, used: int, idle: int, limit: int) -> None:
        """Record the connections of the pool: in use, idle, and the limit."""


class NoMonitor(Monitor, WaitMonitor):
    """Records nothing: a :class:`Monitor`, and its :class:`WaitMonitor`, for commands."""

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
    """Report the duration of a block that only waits to ``waits``."""
    began = time.perf_counter()
    waits.begin()
    try:
        yield
    finally:
        waits.end(time.perf_counter() - began)
