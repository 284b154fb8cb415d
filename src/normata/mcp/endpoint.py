"""The address of MCP: checks each request as HTTP does, and leaves its body to the package `mcp`.

That package is imported with the first request, since most servers never get one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from normata.console.site import Site
from normata.core.http.authentication import authenticate
from normata.core.http.context import context_of
from normata.core.http.operation import Operation
from normata.core.http.problems import MethodNotAllowed, UnsupportedMediaType
from normata.core.http.reads import ClientGone, until_gone
from normata.core.http.routing import Resource
from normata.core.http.services import Services
from normata.errors import Forbidden, NotFound
from normata.events.keys import Signer
from normata.mcp.calls import Calls
from normata.mcp.confirmations import Confirmations
from normata.mcp.tool import MAKE_CALL, Call
from normata.settings import Settings

if TYPE_CHECKING:
    from types import ModuleType

PATH = "/mcp/"
BODY_LIMIT = 2**20  # bytes
_MISSING = "This installation is without the extra mcp: install normata[mcp]."
_FOREIGN = "A page of another site sent this request: its Origin is not that of NORMATA_PUBLIC_URL."


class McpEndpoint:
    """The ASGI application at :data:`PATH`.

    ``operations`` are by method and path, and ``resources``, which answer them, by path.
    """

    def __init__(
        self,
        services: Services,
        settings: Settings,
        operations: Mapping[tuple[str, str], Operation],
        resources: Mapping[str, Resource],
    ) -> None:
        self._services = services
        self._operations = operations
        self._endpoints: Mapping[tuple[str, str], ASGIApp] = {
            (method, path): endpoint
            for path, resource in resources.items()
            for method, endpoint in resource.endpoints.items()
        }
        self._origin = Site(settings.public_url).origin.encode()
        self._max_body_bytes = settings.max_body_bytes
        self._confirmations = Confirmations(services.means[Signer])
        self._server: ModuleType | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Raises errors of HTTP, and NotFound if the package `mcp` is not installed."""
        context = context_of(scope)
        context.route = PATH
        if scope["method"] != "POST":
            raise MethodNotAllowed(headers={"Allow": "POST"})
        if context.headers.get(b"origin", self._origin) != self._origin:
            raise Forbidden(_FOREIGN)
        caller = await authenticate(self._services, scope, scope="read")
        server = await self._imported()
        media_type = context.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if media_type != b"application/json":
            raise UnsupportedMediaType
        context.body_limit = BODY_LIMIT
        try:
            body = await HttpRequest(scope, receive).body()
        except ClientDisconnect:
            raise ClientGone from None
        async with until_gone(receive) as gone:
            make_call = partial(
                Call,
                caller=caller,
                calls=Calls(self._endpoints, scope, gone, self._max_body_bytes),
                operations=self._operations,
                confirmations=self._confirmations,
            )
            await server.answer({**scope, MAKE_CALL: make_call}, _again(body, gone), _unstored(send))

    async def _imported(self) -> ModuleType:
        """The module that needs the package `mcp`. Raises NotFound."""
        if self._server is None:
            if find_spec("mcp") is None:
                raise NotFound(_MISSING)
            self._server = await asyncio.to_thread(_import)  # it takes as long as many requests
        return self._server


def mcp_routes(
    services: Services, settings: Settings, operations: Iterable[Operation], resources: Mapping[str, Resource]
) -> tuple[Route, ...]:
    """The route of MCP. Its tools call ``operations``, whose ``resources`` answer at their paths."""
    by_place = {(operation.method, operation.path): operation for operation in operations}
    return (Route(PATH, McpEndpoint(services, settings, by_place, resources)),)


def _import() -> ModuleType:
    from normata.mcp import server  # noqa: PLC0415 - as above

    return server


def _again(body: bytes, gone: asyncio.Future[None]) -> Receive:
    """``receive`` of a request whose body was read; afterwards, that the client has gone."""
    arriving = [body]

    async def receive() -> Message:
        if arriving:
            return {"type": "http.request", "body": arriving.pop()}
        await asyncio.wait((gone,))
        return {"type": "http.disconnect"}

    return receive


def _unstored(send: Send) -> Send:
    """``send`` of an answer that belongs to its caller and is stored nowhere."""

    async def send_unstored(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"cache-control", b"private, no-store")]
        await send(message)

    return send_unstored
