"""The outermost layer of every request: its id, its limits, its log line, and the handling of all exceptions."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from normata.core.http.connections import PERSISTENCE, InFlight
from normata.core.http.context import RequestContext, context_of, put_context
from normata.core.http.metrics import Metrics
from normata.core.http.negotiation import Headers, combined, without_port
from normata.core.http.problems import (
    FieldFault,
    InvalidRequest,
    MethodNotAllowed,
    RequestTimeout,
    ServiceUnavailable,
    TooLarge,
    TooManyRequests,
    as_public,
    error_type_of,
    headers_of,
    problem,
)
from normata.core.http.rate_limit import Limit, network_of
from normata.core.http.reads import ClientGone
from normata.core.http.responses import JsonResponse
from normata.core.http.routing import Directory, loggable, routed_path
from normata.core.log import logger
from normata.core.schema.table import new_id
from normata.errors import NotFound, Unavailable
from normata.settings import Settings

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
# Monitoring must work, even from an address that exceeds the limits, such as a proxy's.
_WATCHED = frozenset({"/livez", "/livez/", "/readyz", "/readyz/", "/metrics", "/metrics/"})
_CLIENT_GONE = 499  # for the log and the metrics; it is no status of HTTP, and nobody gets it
_TOO_MANY = "This address has sent too many requests for now; wait as Retry-After says."
_TOO_MANY_AT_A_TIME = "This address has too many requests at a time; wait as Retry-After says."
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+){1,8}", re.ASCII)


class Gateway:
    """Gives each request an id, refuses large and slow bodies, logs, counts, and answers every exception.

    ``operations`` finds the resource at a path. Other requests go through the framework's router; requests of
    operations bypass it, because it takes as long as answering from a cached page (measured in docs/decisions/).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        operations: Directory,
        settings: Settings,
        metrics: Metrics,
        requests_by_address: Limit,
    ) -> None:
        self._app = app
        self._operations = operations
        # Attributes of Pydantic models are slow.
        self._root_path = settings.root_path
        self._trusts_forwarded_prefix = settings.trust_forwarded_prefix
        self._max_body_bytes = settings.max_body_bytes
        self._body_timeout = settings.body_timeout
        self._body_deadline = settings.body_deadline
        self._body_rate = settings.body_rate
        self._allowed_hosts = frozenset(settings.allowed_hosts.split(",") if settings.allowed_hosts else ())
        self._in_flight = InFlight(settings.address_connections)
        self._metrics = metrics
        self._requests_by_address = requests_by_address if requests_by_address.quota else None
        self._log = logger.bind()  # bound once, since that takes time

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = self._context(scope)
        put_context(scope, context)
        started = time.perf_counter()
        is_head = scope["method"] == "HEAD"
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *context.response_headers]
                if PERSISTENCE.ends:
                    message["headers"].append((b"connection", b"close"))
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        scope["path"] = routed_path(context.raw_path)
        context.raw_path = loggable(scope["path"], context.raw_path)
        application = self._app
        found = self._operations.find(scope["path"])
        if found is not None:
            application, scope["path_params"] = found
        self._metrics.begin()
        address = self._in_flight.begin((scope.get("client") or ("",))[0])
        try:
            _require_counted(address)
            if self._requests_by_address is not None:
                self._require_within(self._requests_by_address, scope, context)
            self._require_host(scope, context)
            await application(scope, self._bounded(context, receive), send_with_headers)
        except Exception as error:
            if status:
                self._log_fault(scope, error)
                raise  # the answer has begun: the server must cut the connection, or it would look complete
            await self._refusal(scope, error)(scope, receive, send_with_headers)
        finally:
            self._in_flight.end(address)
            self._log_request(scope, status, time.perf_counter() - started)

    def _context(self, scope: Scope) -> RequestContext:
        """The context from a request's first line and its headers."""
        headers = combined(scope["headers"])
        # Accept the client's id if it is harmless, so that a chain of services can share it.
        sent = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = sent if _REQUEST_ID.fullmatch(sent) else new_id()
        raw_path = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
        response_headers = [(b"x-request-id", request_id.encode()), (b"x-content-type-options", b"nosniff")]
        context = RequestContext(request_id, raw_path, headers, response_headers, self._root_path)
        if b"traceparent" in headers:
            context.trace(headers[b"traceparent"])
        if self._trusts_forwarded_prefix and b"x-forwarded-prefix" in headers:
            sent = headers[b"x-forwarded-prefix"].decode("latin-1").rstrip("/")
            context.prefix = sent if _PREFIX.fullmatch(sent) else context.prefix
        prefix = context.prefix
        if prefix and f"{context.raw_path}/".startswith(f"{prefix}/"):  # proxies may remove the prefix or keep it
            context.raw_path = context.raw_path.removeprefix(prefix) or "/"
        return context

    def _require_within(self, limit: Limit, scope: Scope, context: RequestContext) -> None:
        """Count a request of an address. Raises TooManyRequests."""
        if context.raw_path in _WATCHED:
            return
        address = network_of((scope.get("client") or ("",))[0])
        wait = limit.seconds_to_wait(address, context.response_headers)
        if wait:
            raise TooManyRequests(_TOO_MANY, wait=wait, reason="address_rate")

    def _require_host(self, scope: Scope, context: RequestContext) -> None:
        """Raise InvalidRequest unless a request names exactly one host, which is allowed."""
        _require_one_host(scope, context.headers)
        if not self._allowed_hosts or context.raw_path in _WATCHED:
            return
        if without_port(context.headers.get(b"host", b"").decode("latin-1").lower()) not in self._allowed_hosts:
            message = "is none that this service has"
            raise InvalidRequest.of(
                [FieldFault(in_="header", name="Host", code="not_allowed", message=message, allowed=None)]
            )

    def _bounded(self, context: RequestContext, receive: Receive) -> Receive:
        """``receive``, bounded in size and time.

        It raises TooLarge if the body, declared or counted, is larger than the limit, and RequestTimeout if its next
        part does not arrive in time, or the whole is too slow.
        """
        received = 0
        begun = 0.0
        is_complete = False

        async def receive_bounded() -> Message:
            nonlocal received, begun, is_complete
            if is_complete:  # what comes then is the end of the connection, whenever it is
                return await receive()
            limit = context.body_limit or self._max_body_bytes
            declared = context.headers.get(b"content-length", b"")
            if declared.isdigit() and int(declared[:20]) > limit:
                raise TooLarge
            now = time.monotonic()
            begun = begun or now
            remaining = begun + self._body_deadline + received / self._body_rate - now
            if remaining <= 0:
                raise RequestTimeout
            try:
                async with asyncio.timeout(min(self._body_timeout, remaining)):
                    message = await receive()
            except TimeoutError:
                raise RequestTimeout from None
            received += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if received > limit:
                raise TooLarge
            return message

        return receive_bounded

    def _refusal(self, scope: Scope, error: Exception) -> Response:
        """The answer to a request that ended with an exception."""
        if isinstance(error, ClientGone):
            return Response(status_code=_CLIENT_GONE)
        if isinstance(error, Unavailable):
            if error.reason not in ("storage", "scanner"):  # which are logged where it is found
                with suppress(OSError, ValueError):
                    request_id = context_of(scope).request_id
                    self._log.warning("database_unavailable", request_id=request_id, reason=str(error))
        elif error_type_of(error) is None:
            self._log_fault(scope, error)
        return _problem(scope, as_public(error))

    def _log_fault(self, scope: Scope, error: Exception) -> None:
        context = context_of(scope)
        with suppress(OSError, ValueError):  # a log that cannot be written must not prevent answers
            self._log.error("internal_error", request_id=context.request_id, path=context.raw_path, exc_info=error)

    def _log_request(self, scope: Scope, status: int, seconds: float) -> None:
        context = context_of(scope)
        self._metrics.end(context, scope["method"], status, seconds)
        caller = context.caller
        more: dict[str, Any] = {"user": caller and caller.user_id, "token": caller and caller.token_id}
        if context.trace_id is not None:
            more |= {"trace_id": context.trace_id, "parent_id": context.parent_id}
        if context.session is not None:
            more |= {"user": context.session.user_id, "session": context.session.session_id}
        with suppress(OSError, ValueError):
            self._log.info(
                "request",
                request_id=context.request_id,
                method=scope["method"],
                path=context.raw_path,
                status=status,
                problem=context.problem,
                milliseconds=round(seconds * 1000, 1),
                organization=context.organization_id,
                **more,
            )


async def refuse_route(_request: Request, error: Exception) -> Response:
    """Answer the router's own refusals, of paths and methods, as problems (RFC 9457) as well. Raises them."""
    assert isinstance(error, HTTPException)  # noqa: S101 - narrows the type; Starlette selects the handler by class
    if error.status_code == 405:
        raise MethodNotAllowed(headers=error.headers)
    raise NotFound


def _problem(scope: Scope, error: Exception) -> Response:
    context = context_of(scope)
    body = problem(error, context.instance, context.request_id)
    context.problem = body["code"]
    context.reason = error.reason if isinstance(error, TooManyRequests | ServiceUnavailable) else ""
    headers = dict(headers_of(error))
    if context.problem_page is not None:
        return context.problem_page(body, headers)
    return JsonResponse(body, body["status"], headers)


def _require_counted(address: str | None) -> None:
    """Raise TooManyRequests for a request if its address has too many in flight."""
    if address is None:
        raise TooManyRequests(_TOO_MANY_AT_A_TIME, wait=1, reason="address_connections")


def _require_one_host(scope: Scope, headers: Headers) -> None:
    """Raise InvalidRequest unless an HTTP/1.1 request has exactly one Host (RFC 9112, section 3.2)."""
    host = headers.get(b"host")
    if host and b"," not in host:
        return  # repeated headers are combined with commas
    sent = sum(name == b"host" for name, _ in scope["headers"])
    if sent > 1:
        code, message = "repeated", "must be sent once"
    elif scope.get("http_version") == "1.1" and not host:  # the server turns a missing header into an empty one
        code, message = "required", "is required"
    else:
        return
    raise InvalidRequest.of([FieldFault(in_="header", name="Host", code=code, message=message, allowed=None)])
