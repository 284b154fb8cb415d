"""A client of the application in this process. Each request goes to the application's event loop and back once.

Starlette's own client goes there for each event of a request, which takes longer than most answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import unquote

import httpx2
import starlette.testclient
from anyio.from_thread import BlockingPortal
from starlette.types import ASGIApp, Message

ADDRESS = "127.0.0.1"  # of whoever asks
_PORTS = {"http": 80, "https": 443}


class TestClient(starlette.testclient.TestClient):
    """Asks an application; within a ``with``, from its start to its end. What it raises is raised here."""

    __test__ = False

    def __init__(self, app: ASGIApp, **options: Any) -> None:
        super().__init__(app, **options)
        self._transport = _Transport(app, self._portal_factory, self.app_state)


class _Transport(httpx2.BaseTransport):
    def __init__(
        self,
        app: ASGIApp,
        portal: Callable[[], AbstractContextManager[BlockingPortal]],
        state: dict[str, Any],
    ) -> None:
        self._app = app
        self._portal = portal
        self._state = state

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        path, _, query = request.url.raw_path.partition(b"?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": request.method,
            "path": unquote(request.url.path),
            "raw_path": path,
            "root_path": "",
            "scheme": request.url.scheme,
            "query_string": query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "client": (ADDRESS, 50_000),
            "server": (request.url.host, request.url.port or _PORTS[request.url.scheme]),
            "state": self._state.copy(),
        }
        with self._portal() as portal:
            start, content = portal.call(_answer, self._app, scope, request.read())
        return httpx2.Response(
            start["status"],
            headers=start["headers"],
            stream=httpx2.ByteStream(b"" if request.method == "HEAD" else content),
            request=request,
        )


async def _answer(app: ASGIApp, scope: dict[str, Any], body: bytes) -> tuple[Message, bytes]:
    """How the answer to a request begins, and its body."""
    messages: list[Message] = []
    received, complete = [{"type": "http.request", "body": body}], asyncio.Event()

    async def receive() -> Message:
        if received:
            return received.pop()
        await complete.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        assert not complete.is_set(), "nothing follows the end of an answer"
        messages.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            complete.set()

    await app(scope, receive, send)
    start, *rest = messages
    assert start["type"] == "http.response.start"
    assert {message["type"] for message in rest} == {"http.response.body"}
    assert complete.is_set()
    return start, b"".join(message.get("body", b"") for message in rest)
