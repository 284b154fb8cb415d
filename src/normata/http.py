"""What holds for every request: its id, its limits, its line in the log, and how answers are written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

import structlog
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from normata.database import NOTHING, Database, Sight, Unavailable
from normata.errors import (
    ApiError,
    FieldFault,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    ServiceUnavailable,
    TooLarge,
    describe,
)
from normata.metrics import Metrics
from normata.vocabulary import new_id

T = TypeVar("T")

log = structlog.get_logger("normata")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class JsonResponse(Response):
    """A body that is JSON. It belongs to one caller, so shared caches keep out (RFC 9111)."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(to_json(content), status_code, {"Cache-Control": "private, no-cache"} | (headers or {}))


# What OpenAPI is made of: one route an operation, with its models. The application serves the bare ones, of which there
# may be four, and need not build the models of answers that it never checks.
documented = APIRouter()


def add_operation(
    router: APIRouter, method: str, path: str, endpoint: Callable[..., Any], **documentation: Any
) -> None:
    """Serve ``endpoint`` at ``path`` and, where that ends with a slash, without it, which OpenAPI does not show."""
    methods = ["GET", "HEAD"] if method == "GET" else [method]  # RFC 9110, section 9.1: who has GET has HEAD
    for variant in dict.fromkeys((path, path.rstrip("/"))):
        router.add_api_route(variant, endpoint, methods=methods, include_in_schema=False)
    if documentation:
        documented.add_api_route(path, endpoint, methods=[method], **documentation)


async def read(request: Request, work: Callable[[Connection], T], sight: Sight = NOTHING) -> T:
    """What ``work`` returns, run in one read transaction of the application's database that has ``sight``."""
    database: Database = request.app.state.database
    return await database.read(work, sight)


async def write(request: Request, work: Callable[[Connection], T], sight: Sight = NOTHING) -> T:
    """What ``work`` returns, once its transaction, which has ``sight``, is durable."""
    database: Database = request.app.state.database
    return await database.write(work, sight)


class Gateway:
    """The outermost layer: gives each request an id, refuses large bodies, logs, counts, and lets no exception out."""

    def __init__(self, app: ASGIApp, *, max_body_bytes: int, metrics: Metrics) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        started = time.perf_counter()
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            elif scope["method"] == "HEAD":
                message = {**message, "body": b""}
            await send(message)

        try:
            await self._app(scope, self._bounded(scope, receive), send_marked)
        except Exception:
            with suppress(OSError, ValueError):  # a log that cannot be written keeps nobody from an answer
                log.exception("internal_error", request_id=request_id, path=scope["path"])
            if status:
                raise  # half an answer has left: the server must cut the connection, so that nobody takes it for whole
            await _problem(Request(scope), InternalError())(scope, receive, send_marked)
        finally:
            self._note(scope, request_id, status, time.perf_counter() - started)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """``receive``, with TooLarge raised where the body, declared or counted, is larger than the limit."""
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        too_large = declared.isdigit() and int(declared[:20]) > self._max_body_bytes
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if too_large or received > self._max_body_bytes:
                raise TooLarge
            return message

        return receive_bounded

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path_format", None)
        self._metrics.request(scope["method"], route, status, seconds)
        caller = scope["state"].get("caller")
        with suppress(OSError, ValueError):
            log.info(
                "request",
                request_id=request_id,
                method=scope["method"],
                path=scope["path"],
                status=status,
                milliseconds=round(seconds * 1000, 1),
                user=caller and caller.user_id,
                token=caller and caller.token_id,
            )


def install_error_handlers(app: FastAPI) -> None:
    """Turn every exception that a request can end with into a problem (RFC 9457)."""

    async def api_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)  # noqa: S101 - narrows the type; Starlette dispatches by class
        return _problem(request, error)

    async def unavailable(request: Request, error: Exception) -> Response:
        log.warning("database_unavailable", request_id=request.state.request_id, reason=str(error))
        return _problem(request, ServiceUnavailable())

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
        return _problem(request, InvalidRequest.of([_field_fault(fault) for fault in error.errors()]))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - as above
        case = MethodNotAllowed if error.status_code == MethodNotAllowed.status else NotFound
        return _problem(request, case(headers=error.headers))

    app.add_exception_handler(ApiError, api_error)
    app.add_exception_handler(Unavailable, unavailable)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http_error)


def _problem(request: Request, error: ApiError) -> Response:
    # As it was sent: decoded and encoded again, an escaped slash would become one that separates.
    sent = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    body = error.problem(sent.decode("latin-1"), request.state.request_id)
    return JsonResponse(body, error.status, error.headers)


def _field_fault(fault: dict[str, Any]) -> FieldFault:
    part, *names = fault["loc"]
    code, message, allowed = describe(fault)
    return FieldFault(in_=part, name=str(names[0]) if names else "", code=code, message=message, allowed=allowed)


def _request_id(scope: Scope) -> str:
    """The client's own X-Request-Id, where it is harmless, so that a chain of services can share it; else a new one."""
    sent = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return sent if _REQUEST_ID.fullmatch(sent) else new_id()
