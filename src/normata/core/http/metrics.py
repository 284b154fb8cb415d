"""What the service counts, in the form that Prometheus reads.

Names and labels of requests follow OpenTelemetry's semantic conventions for HTTP servers.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from normata import __version__
from normata.core.db.monitoring import WaitName
from normata.core.http.context import RequestContext

_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
# Anyone may send any method; as a label each would be kept for ever.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class _Labels(NamedTuple):
    method: str
    route: str
    status: str


class Metrics:
    """Requests, how long they took, what was refused, and how often a page was cached.

    With several workers, each keeps its figures in a file of the folder that ``PROMETHEUS_MULTIPROC_DIR`` names
    (``normata serve`` sees to it), and whichever is asked adds them up.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._seconds = Histogram(
            "http_server_request_duration_seconds",
            "Seconds from the request's arrival to the end of the answer.",
            ["http_request_method", "http_route", "http_response_status_code"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._active = Gauge(
            "http_server_active_requests",
            "Requests that are being answered.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._problems = Counter(
            "normata_problems",
            "Answers that are no success, with the reason where one code has several.",
            ["code", "reason"],
            registry=registry,
        )
        pages = Counter(
            "normata_cached_pages", "Pages of cached lists, by whether one was cached.", ["cached"], registry=registry
        )
        self._hit, self._missed = pages.labels("yes"), pages.labels("no")
        build = Gauge(
            "normata_build_info", "1, with the version.", ["version"], multiprocess_mode="mostrecent", registry=registry
        )
        build.labels(__version__).set(1)
        self._database = _Database(registry)
        # Finding a child by its labels costs more than counting. There are as many as there are routes and statuses.
        self._histograms: dict[_Labels, Histogram] = {}

    def begin(self) -> None:
        """Count a request that has arrived."""
        self._active.inc()

    def end(self, context: RequestContext, method: str, status: int, seconds: float) -> None:
        """Count its answer, by what its context has found out: the template of the path, and the problem."""
        self._active.dec()
        method = method if method in METHODS else "_OTHER"
        labels = _Labels(method, "other" if context.route is None else context.route.rstrip("/"), str(status))
        histogram = self._histograms.get(labels)
        if histogram is None:
            histogram = self._histograms[labels] = self._seconds.labels(*labels)
        histogram.observe(seconds)
        if context.problem is not None:
            self._problems.labels(context.problem, context.reason).inc()

    def page(self, *, cached: bool) -> None:
        """Count a page of a cached list, which was cached or had to be built."""
        (self._hit if cached else self._missed).inc()

    def waits(self, name: WaitName) -> _Waits:
        """Who counts those who wait for this; see :class:`normata.core.db.monitoring.Monitor`."""
        return _Waits(self._database.waiting.labels(name), self._database.seconds.labels(name))

    def connections(self, *, used: int, idle: int, limit: int) -> None:
        """Note the connections of the pool; see :class:`normata.core.db.monitoring.Monitor`."""
        self._database.used.set(used)
        self._database.idle.set(idle)
        self._database.limit.set(limit)

    def exposition(self) -> bytes:
        """All figures in Prometheus's text format. ``process_*`` are those of the process that is asked."""
        answering = CollectorRegistry()
        ProcessCollector(registry=answering)
        PlatformCollector(registry=answering)
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry) + generate_latest(answering)
        MultiProcessCollector(answering)  # type: ignore[no-untyped-call]
        return generate_latest(answering)


class _Database:
    """The figures of the database: who waits for what, and the connections of PostgreSQL's pool."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = Histogram(
            "normata_database_wait_seconds",
            "Seconds until work had what it waited for, or gave up.",
            ["wait"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.waiting = Gauge(
            "normata_database_waiting",
            "Work that waits now.",
            ["wait"],
            multiprocess_mode="livesum",
            registry=registry,
        )
        connections = Gauge(
            "normata_database_connections",
            "Open connections of the pool, when one was last taken or given back.",
            ["state"],
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.used, self.idle = connections.labels("used"), connections.labels("idle")
        self.limit = Gauge(
            "normata_database_connection_limit",
            "The most connections that the pool opens.",
            multiprocess_mode="livesum",
            registry=registry,
        )


class _Waits:
    """Counts those who wait for one thing; see :class:`normata.core.db.monitoring.WaitMonitor`."""

    def __init__(self, waiting: Gauge, seconds: Histogram) -> None:
        self._waiting = waiting
        self._seconds = seconds

    def begin(self) -> None:
        """Count one more."""
        self._waiting.inc()

    def end(self, seconds: float) -> None:
        """Count one less, and how long it waited."""
        self._waiting.dec()
        self._seconds.observe(seconds)
