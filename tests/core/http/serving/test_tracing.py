"""Spans leave the shipped server as OTLP, where the variables OTEL_* say; what cannot be done is told at the start."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.core.http.serving.processes import PATIENCE, Serve, run_here
from tests.server import PLAIN, free_port

# It is answered without a token, and at once. In a checkout the first page of the reference takes a process of its own.
CHEAP = "/notifications/texts/"


class Collector(ThreadingHTTPServer):
    """Takes spans, as a collector of OpenTelemetry does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, str, ExportTraceServiceRequest]] = []

    def names(self) -> set[str]:
        return {
            span.name
            for _, _, request in self.received
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }

    def resources(self) -> list[dict[str, str]]:
        return [
            {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
            for _, _, request in self.received
            for resource in request.resource_spans
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = ExportTraceServiceRequest.FromString(body)
        self.server.received.append((self.path, self.headers["X-Key"], request))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def collector() -> Iterator[Collector]:
    with Collector() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()


@pytest.mark.long
def test_spans_arrive_where_the_environment_says(serve: Serve) -> None:
    with collector() as receiving:
        server = serve(
            2,
            NORMATA_TRACING="true",
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{receiving.server_port}",
            OTEL_EXPORTER_OTLP_HEADERS="x-key=1234",
            OTEL_SERVICE_NAME="normata-test",
        )
        httpx2.get(f"{server.address}{CHEAP}", verify=PLAIN)
        httpx2.get(f"{server.address}/controls/", verify=PLAIN)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
        assert receiving.names() == {"GET /notifications/texts", "GET /controls"}, "what was left was sent at the end"
        assert {(path, key) for path, key, _ in receiving.received} == {("/v1/traces", "1234")}
        assert {resource["service.name"] for resource in receiving.resources()} == {"normata-test"}


@pytest.mark.long
def test_a_collector_that_is_not_there_is_a_line_of_the_log(serve: Serve) -> None:
    server = serve(
        1,
        NORMATA_TRACING="true",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{free_port()}",
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
    )
    assert httpx2.get(f"{server.address}{CHEAP}", verify=PLAIN).status_code == 200
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0
    events = [json.loads(line) for line in server.log.splitlines()]  # each line is an event
    assert "tracing" in {event["event"] for event in events}


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("NORMATA_TRACING", "true", "NORMATA_TRACING needs the extra otel: install normata[otel]"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "OTEL_TRACES_EXPORTER is one of otlp, console, none, and not zipkin"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "Normata speaks OTLP as http/protobuf, and not grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc", "Normata speaks OTLP as http/protobuf, and not grpc"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(variable: str, value: str, reason: str, sqlite_url: str) -> None:
    settings = {"NORMATA_TRACING": "true", "NORMATA_PORT": str(free_port()), variable: value}
    absent: dict[str, Any] = {"opentelemetry.sdk": None} if variable == "NORMATA_TRACING" else {}
    with mock.patch.dict(sys.modules, absent):
        done = run_here(sqlite_url, "serve", **settings)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"normata: {reason}\n")
