"""What the service counts, in the form that Prometheus reads."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
# Anyone may send any method; as a label each would be kept for ever.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """Requests by method, route and status, and how long they took.

    With several workers, each keeps its figures in a file of the folder that ``PROMETHEUS_MULTIPROC_DIR`` names
    (``normata serve`` sees to it), and whichever is asked adds them up.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "normata_requests", "Requests answered.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "normata_request_seconds",
            "Seconds from the request's arrival to the end of the answer.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self._registry,
        )

        # Finding a child by its labels costs more than counting. There are as many as there are routes and statuses.
        self._counters: dict[tuple[str, str, int], Counter] = {}
        self._histograms: dict[tuple[str, str], Histogram] = {}

    def request(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count one request; ``route`` is its template, null where no route matched."""
        method = method if method in _METHODS else "other"
        route = "other" if route is None else route.rstrip("/")
        counter = self._counters.get((method, route, status))
        histogram = self._histograms.get((method, route))
        if counter is None or histogram is None:
            counter = self._counters[method, route, status] = self._requests.labels(method, route, str(status))
            histogram = self._histograms[method, route] = self._seconds.labels(method, route)
        counter.inc()
        histogram.observe(seconds)

    def exposition(self) -> bytes:
        """All figures in Prometheus's text format."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
