"""Tracing with OpenTelemetry: a span for each request, and one for each call of the database that it makes.

Names and attributes follow OpenTelemetry's semantic conventions for HTTP servers and databases. Nothing of a query
string, a body or a header gets into a span, and no address of a client: like the log, spans have paths and ids only.

The environment configures it, as in OpenTelemetry's specification: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_…, OTEL_BSP_…, OTEL_PROPAGATORS, OTEL_SDK_DISABLED. This module is imported only
if the settings request tracing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from normata import __version__
from normata.core.db.database import Database
from normata.core.http.context import context_of
from normata.core.http.metrics import METHODS
from normata.core.http.read_processes import ReadProcesses
from normata.core.http.telemetry import exporter
from normata.core.log import logger
from normata.errors import DomainError

P = ParamSpec("P")
T = TypeVar("T")

_EXPORTERS: dict[str, Callable[[], SpanExporter]] = {"otlp": OTLPSpanExporter, "console": ConsoleSpanExporter}
# Monitoring polls these paths, and nobody would look for their spans.
_PROBES = frozenset({"/livez", "/readyz", "/metrics"})


class Tracing:
    """Makes spans, and sends them as the environment configures."""

    def __init__(self) -> None:
        named = {SERVICE_NAME: "normata", SERVICE_VERSION: __version__}  # unless the environment sets other names
        resource = Resource.create(named | dict(OTELResourceDetector().detect().attributes))
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        if exporter() in _EXPORTERS:
            self.provider.add_span_processor(BatchSpanProcessor(_EXPORTERS[exporter()]()))
        self._tracer = self.provider.get_tracer("normata", __version__)
        _redirect_logs()

    def close(self) -> None:
        """Send remaining spans, and end; this may take as long as OTEL_EXPORTER_OTLP_TIMEOUT."""
        self.provider.shutdown()

    def around(self, application: ASGIApp) -> ASGIApp:
        """``application``, with a span for each request."""
        return _TracedRequests(application, self._tracer)

    def watch(self, database: Database, system: str) -> None:
        """Make a span of each call of ``database`` by a request, with its wait, work and commit.

        ``system`` is the database's name in the semantic conventions.
        """
        database_itself: Any = database  # an attribute of an object has precedence over that of its class
        for name in ("read", "write", "look_up"):
            setattr(database_itself, name, self._traced(getattr(database, name), name, system))

    def watch_processes(self, processes: ReadProcesses, system: str) -> None:
        """Make a span of each read of a database in another process."""
        processes_themselves: Any = processes
        processes_themselves.read = self._traced(processes.read, "read", system)

    def _traced(self, call: Callable[P, Awaitable[T]], name: str, system: str) -> Callable[P, Awaitable[T]]:
        attributes = {"db.system.name": system, "db.operation.name": name}

        @wraps(call)
        async def traced(*args: P.args, **kwargs: P.kwargs) -> T:
            if not trace.get_current_span().get_span_context().is_valid:
                return await call(*args, **kwargs)  # outside of a request: the last use of tokens, or a health check
            with self._tracer.start_as_current_span(
                f"{name} {system}",
                kind=SpanKind.CLIENT,
                attributes=attributes,
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                try:
                    return await call(*args, **kwargs)
                except DomainError:
                    raise  # an error that is an answer, no failure of the database
                except Exception as error:
                    _mark_failed(span, type(error).__qualname__)
                    raise

        return traced


class _TracedRequests:
    """Gives each request a span, as a child of the client's if it sends one (W3C Trace Context)."""

    def __init__(self, application: ASGIApp, tracer: trace.Tracer) -> None:
        self._application = application
        self._tracer = tracer
        self._inject = TraceContextTextMapPropagator().inject

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") in _PROBES:
            await self._application(scope, receive, send)
            return
        is_known = scope["method"] in METHODS
        attributes = {
            "http.request.method": scope["method"] if is_known else "_OTHER",
            "url.scheme": scope.get("scheme", "http"),
        }
        name = scope["method"] if is_known else "HTTP"
        status = 0

        async def send_with_status(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        with self._tracer.start_as_current_span(
            name,
            context=propagate.extract(_carrier(scope)),
            kind=SpanKind.SERVER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            inner = self._with_traceparent(scope)
            try:
                await self._application(inner, receive, send_with_status)
            except Exception as error:
                _mark_failed(span, type(error).__qualname__)
                raise
            finally:
                _describe(span, name, inner, status)

    def _with_traceparent(self, scope: Scope) -> Scope:
        """``scope`` with the request's own span as its `traceparent`, so that lines of the log name it."""
        carrier: dict[str, str] = {}
        self._inject(carrier)
        own = [(name.encode(), value.encode()) for name, value in carrier.items()]
        remaining = [header for header in scope["headers"] if header[0].decode("latin-1") not in carrier]
        return {**scope, "headers": [*remaining, *own]}


def _carrier(scope: Scope) -> dict[str, list[str]]:
    """The trace headers of a request."""
    fields = propagate.get_global_textmap().fields
    found: dict[str, list[str]] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1")
        if name in fields:
            found.setdefault(name, []).append(value.decode("latin-1"))
    return found


def _describe(span: trace.Span, name: str, scope: Scope, status: int) -> None:
    """Name a request's span by its method and route."""
    context = context_of(scope)
    if context.route is not None:
        route = context.route.rstrip("/") or "/"
        span.update_name(f"{name} {route}")
        span.set_attribute("http.route", route)
    span.set_attribute("url.path", context.instance)
    span.set_attribute("http.response.status_code", status)
    span.set_attribute("normata.request_id", context.request_id)
    if context.organization_id is not None:
        span.set_attribute("normata.organization_id", context.organization_id)
    if context.problem is not None:
        span.set_attribute("normata.problem", context.problem)
        if status >= 500:
            _mark_failed(span, context.problem)


def _mark_failed(span: trace.Span, error_type: str) -> None:
    """Mark a span as failed, by an error code; the message of an exception may contain what people wrote."""
    span.set_attribute("error.type", error_type)
    span.set_status(StatusCode.ERROR)


# --- The log of OpenTelemetry's packages


class _LogHandler(logging.Handler):
    """Writes log messages of the packages as JSON lines."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):  # an error in a log line must not reach whoever logs it
            logger.warning("tracing", logger=record.name, reason=record.getMessage())


def _redirect_logs() -> None:
    logger = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, _LogHandler) for handler in logger.handlers):
        logger.addHandler(_LogHandler(logging.WARNING))
        logger.propagate = False
