"""The metrics of the service, for Prometheus.

Names and labels of requests follow OpenTelemetry's semantic conventions for HTTP servers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import override

from normata import __version__
from normata.core.db.monitoring import WaitName
from normata.core.http.context import RequestContext

_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
# Clients can send any method, and each label would be stored for ever.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


# Metrics that are the same in all processes. One that cannot be read is omitted.
FIGURES: Mapping[str, str] = {
    "normata_unsealed_events": "Events that are not sealed.",
    "normata_unsealed_event_age_seconds": "The age of the oldest event that is not sealed; 0 where there is none.",
    "normata_due_jobs": "Jobs that are due, and that no process does.",
    "normata_due_job_age_seconds": "For how long the oldest of these has been due; 0 where there is none.",
    "normata_failed_jobs": "Jobs whose last attempt has failed, and that are attempted again.",
    "normata_failing_webhooks": "Active webhooks whose last attempt has failed.",
    "normata_disabled_webhooks": "Webhooks that are disabled, by hand or after failures.",
    "normata_webhook_events_behind": "Events that active webhooks have not sent or passed over yet.",
    "normata_database_size_bytes": "SQLite: the size of the database.",
    "normata_database_log_bytes": "SQLite: the size of its log of recent changes.",
    "normata_database_free_bytes": "SQLite: the free space of the file system that the database is on.",
    "normata_last_backup_timestamp_seconds": "SQLite: when `normata backup make` last made a backup.",
}
# Why sealing fails: the database is not available, a log differs from what was sealed, the key cannot be used, or
# another reason.
SealingFailure = Literal["unavailable", "unsound", "key", "other"]
WebhookOutcome = Literal["delivered", "failed", "disabled"]  # as in `normata.webhooks.sender`
Delivery = Literal["off", "sent", "failed"]  # as in `normata.identity.mail`
NO_FIGURES: Mapping[str, float] = {}


class _Labels(NamedTuple):
    method: str
    route: str
    status: str


class Metrics:
    """Requests, how long they took, what was refused, and how often a page was cached.

    With several workers, each stores its figures in a file of the folder that ``PROMETHEUS_MULTIPROC_DIR`` names
    (``normata serve`` sets it), and the worker that answers adds them up.
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
        self._jobs = Counter(
            "normata_jobs",
            "Attempts at jobs, by what has become of them.",
            ["type", "outcome"],
            registry=registry,
        )
        build = Gauge(
            "normata_build_info", "1, with the version.", ["version"], multiprocess_mode="mostrecent", registry=registry
        )
        build.labels(__version__).set(1)
        self._work = _Work(registry)
        self._database = _Database(registry)
        # Looking a child up by its labels takes longer than counting. There are as many as routes and statuses.
        self._histograms: dict[_Labels, Histogram] = {}

    def begin(self) -> None:
        """Count a request that has arrived."""
        self._active.inc()

    def end(self, context: RequestContext, method: str, status: int, seconds: float) -> None:
        """Count its answer, by the template of its path and its problem in the context."""
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

    def sealing_failed(self, reason: SealingFailure) -> None:
        """Count a round of sealing, or a checkpoint, that failed."""
        self._work.sealing_failures.labels(reason).inc()

    def mailed(self, delivery: Delivery) -> None:
        """Count a message by its delivery."""
        if delivery != "off":
            self._work.mails.labels(delivery).inc()

    def webhook(self, outcome: WebhookOutcome) -> None:
        """Count an attempt to deliver an event, or a webhook that was disabled by it."""
        self._work.webhooks.labels(outcome).inc()

    def job(self, job_type: str, outcome: str) -> None:
        """Count an attempt at a job."""
        self._jobs.labels(job_type, outcome).inc()

    def forgotten(self, table: str, rows: int) -> None:
        """Count rows of a table that were forgotten."""
        self._work.forgotten.labels(table).inc(rows)

    def waits(self, name: WaitName) -> _Waits:
        """The counter of waits for ``name``."""
        return _Waits(self._database.waiting.labels(name), self._database.seconds.labels(name))

    def connections(self, *, used: int, idle: int, limit: int) -> None:
        """Record the connections of the pool: in use, idle, and the most that it opens."""
        self._database.used.set(used)
        self._database.idle.set(idle)
        self._database.limit.set(limit)

    def exposition(self, figures: Mapping[str, float] = NO_FIGURES) -> bytes:
        """All figures in Prometheus's text format. ``process_*`` are those of the process that answers.

        ``figures`` are those of the database as a whole, found for this answer; :data:`FIGURES` explains each.
        """
        answering = CollectorRegistry()
        answering.register(_Found(figures))
        ProcessCollector(registry=answering)
        PlatformCollector(registry=answering)
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry) + generate_latest(answering)
        MultiProcessCollector(answering)  # type: ignore[no-untyped-call]
        return generate_latest(answering)


class _Found(Collector):
    """The figures that were read for one answer, and are not counted by processes."""

    def __init__(self, figures: Mapping[str, float]) -> None:
        self._figures = figures

    @override
    def collect(self) -> Iterator[Metric]:
        for name, value in self._figures.items():
            yield GaugeMetricFamily(name, FIGURES[name], value=value)


class _Work:
    """The work of the service besides requests. Each counter exists from the start, at 0, as rates need it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sealing_failures = Counter(
            "normata_sealing_failures",
            "Rounds of sealing, and checkpoints, that failed.",
            ["reason"],
            registry=registry,
        )
        self.mails = Counter("normata_mails", "Messages, by what has become of them.", ["delivery"], registry=registry)
        self.webhooks = Counter(
            "normata_webhook_deliveries",
            "Attempts to deliver an event to a webhook, and webhooks that were disabled after failures.",
            ["outcome"],
            registry=registry,
        )
        self.forgotten = Counter(
            "normata_forgotten_rows",
            "Rows that were of no use any more, and were removed.",
            ["table"],
            registry=registry,
        )
        for reason in get_args(SealingFailure):
            self.sealing_failures.labels(reason)
        for outcome in get_args(WebhookOutcome):
            self.webhooks.labels(outcome)
        for delivery in ("sent", "failed"):
            self.mails.labels(delivery)


class _Database:
    """The metrics of the database: waits, and the connections of PostgreSQL's pool."""

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
    """Counts waits for one resource, and their durations."""

    def __init__(self, waiting: Gauge, seconds: Histogram) -> None:
        self._waiting = waiting
        self._seconds = seconds

    def begin(self) -> None:
        """Count a wait that begins."""
        self._waiting.inc()

    def end(self, seconds: float) -> None:
        """Count a wait that ends, with its duration."""
        self._waiting.dec()
        self._seconds.observe(seconds)
