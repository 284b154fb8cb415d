"""What holds for every request: its id, its limits, its line in the log, and how answers are written."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

import orjson
import structlog
from fastapi import APIRouter, FastAPI, Request, Response
from pydantic_core import to_json
from sqlalchemy import Connection
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from normata.database import NOTHING, Database, Sight, Unavailable
from normata.errors import (
    ApiError,
    InternalError,
    MethodNotAllowed,
    NotFound,
    ServiceUnavailable,
    TooLarge,
)
from normata.metrics import Metrics
from normata.vocabulary import new_id

T = TypeVar("T")

READING = ("GET", "HEAD")  # RFC 9110, section 9.1: who has GET has HEAD
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def encode(content: Any) -> bytes:
    """``content`` as JSON."""
    try:
        return orjson.dumps(content)
    except TypeError:  # a document may have an integer of more than 64 bits, which orjson leaves to others
        return to_json(content)


class JsonResponse(Response):
    """A body that is JSON. It belongs to one caller, so shared caches keep out (RFC 9111)."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(encode(content), status_code, {"Cache-Control": "private, no-cache"} | (headers or {}))


# What OpenAPI is made of: one route an operation, with its models. The application serves the bare ones, of which there
# may be four, and need not build the models of answers that it never checks.
documented = APIRouter()


def add_operation(router: APIRouter, operation: Operation, path: str = "") -> None:
    """Have the router know an operation, at its path (as Starlette has it, where that differs) and without the slash.

    OpenAPI shows the first only.
    """
    for variant in (path or operation.path, (path or operation.path).rstrip("/")):
        router.routes.append(Route(variant, operation, methods=[*operation.methods]))


def add_page(router: APIRouter, path: str, endpoint: Callable[..., Any]) -> None:
    """Serve what is not part of the interface to GET: at ``path`` and, where that ends with a slash, without it."""
    for variant in dict.fromkeys((path, path.rstrip("/"))):
        router.add_api_route(variant, endpoint, methods=[*READING], include_in_schema=False)


async def read(request: Request, work: Callable[[Connection], T], sight: Sight = NOTHING) -> T:
    """What ``work`` returns, run in one read transaction of the application's database that has ``sight``."""
    database: Database = request.app.state.database
    return await database.read(work, sight)


class Operation(ABC):
    """A list or a restore, as an ASGI application."""

    methods: Sequence[str]
    path: str  # as OpenAPI has it

    @abstractmethod
    def serves(self, path: str) -> bool:
        """Whether the operation is at ``path``, which has its first segment."""

    @abstractmethod
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises the errors of :mod:`normata.errors`."""


class Gateway:
    """The outermost layer: gives each request an id, refuses large bodies, logs, counts, and lets no exception out.

    ``operations`` are found here, by their first segment: the way through the router would take longer than most
    answers. The router has them, too, to tell 404 from 405, and everything else.
    """

    def __init__(self, app: ASGIApp, *, operations: Sequence[Operation], max_body_bytes: int, metrics: Metrics) -> None:
        self._app = app
        self._operations: dict[str, Operation] = {}
        for operation in operations:  # each comes twice, with its slash and without
            if self._operations.setdefault(segment := operation.path.split("/", 2)[1], operation) is not operation:
                raise ValueError(f"two operations begin with /{segment}/, so one of them would never be found")
        self._max_body_bytes = max_body_bytes
        self._metrics = metrics
        self._log = structlog.get_logger("normata").bind()  # bound once: the configuration is found again each time

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

        operation = self._operation(scope["path"])
        application = self._app if operation is None or scope["method"] not in operation.methods else operation
        try:
            await application(scope, self._bounded(scope, receive), send_marked)
        except Exception as error:
            if status:
                self._note_fault(scope, error)
                raise  # half an answer has left: the server must cut the connection, so that nobody takes it for whole
            await self._refusal(scope, error)(scope, receive, send_marked)
        finally:
            route = getattr(scope.get("route"), "path_format", None) if operation is None else operation.path
            self._note(scope, route, status, time.perf_counter() - started)

    def _operation(self, path: str) -> Operation | None:
        operation = self._operations.get(path.split("/", 2)[1] if path.startswith("/") else "")
        return operation if operation is not None and operation.serves(path) else None

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

    def _refusal(self, scope: Scope, error: Exception) -> Response:
        """The answer to a request that ended with an exception."""
        match error:
            case ApiError():
                return _problem(scope, error)
            case Unavailable():
                with suppress(OSError, ValueError):
                    request_id = scope["state"]["request_id"]
                    self._log.warning("database_unavailable", request_id=request_id, reason=str(error))
                return _problem(scope, ServiceUnavailable())
        self._note_fault(scope, error)
        return _problem(scope, InternalError())

    def _note_fault(self, scope: Scope, error: Exception) -> None:
        with suppress(OSError, ValueError):  # a log that cannot be written keeps nobody from an answer
            request_id = scope["state"]["request_id"]
            self._log.error("internal_error", request_id=request_id, path=scope["path"], exc_info=error)

    def _note(self, scope: Scope, route: str | None, status: int, seconds: float) -> None:
        self._metrics.request(scope["method"], route, status, seconds)
        state = scope["state"]
        caller = state.get("caller")
        with suppress(OSError, ValueError):
            self._log.info(
                "request",
                request_id=state["request_id"],
                method=scope["method"],
                path=scope["path"],
                status=status,
                milliseconds=round(seconds * 1000, 1),
                user=caller and caller.user_id,
                token=caller and caller.token_id,
            )


def install_error_handlers(app: FastAPI) -> None:
    """Have the router's own refusals, of paths and methods, told as problems (RFC 9457), too."""

    async def http_error(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - narrows the type; Starlette dispatches by class
        raise (MethodNotAllowed if error.status_code == MethodNotAllowed.status else NotFound)(headers=error.headers)

    app.add_exception_handler(HTTPException, http_error)


def _problem(scope: Scope, error: ApiError) -> Response:
    # As it was sent: decoded and encoded again, an escaped slash would become one that separates.
    sent = scope.get("raw_path") or quote(scope["path"]).encode()
    body = error.problem(sent.decode("latin-1"), scope["state"]["request_id"])
    return JsonResponse(body, error.status, error.headers)


def _request_id(scope: Scope) -> str:
    """The client's own X-Request-Id, where it is harmless, so that a chain of services can share it; else a new one."""
    sent = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return sent if _REQUEST_ID.fullmatch(sent) else new_id()
