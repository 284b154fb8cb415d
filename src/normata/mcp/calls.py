"""Calls of operations on behalf of one HTTP request, as if its sender had called them over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import orjson
from starlette.types import ASGIApp, Message, Scope

from normata.core.http.context import RequestContext, context_of, put_context
from normata.core.http.negotiation import combined
from normata.core.http.problems import NotAcceptable, TooLarge, as_public, headers_of, problem
from normata.core.http.reads import ClientGone
from normata.core.log import logger
from normata.core.schema.wire import encode
from normata.errors import Unavailable

Pairs = Sequence[tuple[str, str]]  # the names and values of a query

_NO_JSON = "The answer is a document that is not JSON. Tools read JSON alone; it is there over HTTP."
_NO_HEADERS: Mapping[str, str] = {}


class Refused(Exception):
    """An operation has refused a request; ``problem`` is what it would have answered over HTTP."""

    def __init__(self, body: Mapping[str, Any], retry_after: str = "") -> None:
        super().__init__(str(body["detail"]))
        self.problem = body
        self.retry_after = retry_after


class Wanted(NamedTuple):
    """A request for an operation: its method, its path with `{id}`, that id, its query, and its body; null for none."""

    method: str
    path: str
    id: str = ""
    query: Pairs = ()
    body: Any = None


class Answered(NamedTuple):
    """The answer of an operation: its content, and its entity tag; empty if it has none."""

    content: Any
    tag: str


class Calls:
    """Calls operations for the sender of a request.

    ``endpoints`` are those of all operations, by method and path. They get the headers of the request that say who
    sends it, and the request's id and address, and no other header of it. So its sender gets what HTTP would give: each
    call is authenticated, counted against the token's limit, and checked. ``gone`` is done once the sender has closed
    the connection, and ``max_body_bytes`` the largest body of an operation that has no limit of its own.
    """

    def __init__(
        self,
        endpoints: Mapping[tuple[str, str], ASGIApp],
        scope: Scope,
        gone: asyncio.Future[None],
        max_body_bytes: int,
    ) -> None:
        self._endpoints = endpoints
        self._scope = scope
        self._gone = gone
        self._max_body_bytes = max_body_bytes

    async def send(self, wanted: Wanted, headers: Mapping[str, str] = _NO_HEADERS) -> Answered:
        """The answer to a request. Raises Refused."""
        outer = context_of(self._scope)
        body = b"" if wanted.body is None else encode(wanted.body)
        sent = [
            (b"host", outer.headers.get(b"host", b"")),
            (b"authorization", outer.headers.get(b"authorization", b"")),
            (b"accept", b"application/json"),
            (b"prefer", b"handling=strict"),
            *((name.lower().encode(), value.encode()) for name, value in headers.items()),
            *([(b"content-type", b"application/json")] if wanted.body is not None else []),
        ]
        path = wanted.path.replace("{id}", quote(wanted.id, safe=""))
        context = RequestContext(outer.request_id, path, combined(sent), [], outer.prefix)
        scope = {
            **self._scope,
            "method": wanted.method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(wanted.query).encode(),
            "headers": sent,
            "path_params": {"id": wanted.id} if "{id}" in wanted.path else {},
        }
        put_context(scope, context)
        try:
            return await self._answer(wanted, scope, context, body)
        except Exception as error:
            raise refused(error, context) from None
        finally:
            if context.organization_id is not None:  # for the log
                outer.organization_id = context.organization_id

    async def _answer(self, wanted: Wanted, scope: Scope, context: RequestContext, body: bytes) -> Answered:
        messages: list[Message] = []
        arriving = [body]

        async def receive() -> Message:
            if arriving:
                if len(body) > (context.body_limit or self._max_body_bytes):
                    raise TooLarge
                return {"type": "http.request", "body": arriving.pop()}
            await asyncio.wait((self._gone,))
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            messages.append(message)

        await self._endpoints[wanted.method, wanted.path](scope, receive, send)
        start, *parts = messages
        sent = dict(start["headers"])
        if sent.get(b"content-type") != b"application/json":
            raise NotAcceptable(_NO_JSON)
        content = orjson.loads(b"".join(part.get("body", b"") for part in parts))
        return Answered(content, sent.get(b"etag", b"").decode("latin-1"))


def refused(error: Exception, context: RequestContext) -> Refused:
    """The refusal that an error is to a client. One that is a fault of the service is logged."""
    public = as_public(error)
    if public is not error and not isinstance(error, ClientGone):
        log = logger.warning if isinstance(error, Unavailable) else logger.error
        cause = None if isinstance(error, Unavailable) else error
        log(
            "tool_failed",
            request_id=context.request_id,
            path=context.raw_path,
            reason=str(error),
            exc_info=cause,
        )
    body = problem(public, context.instance, context.request_id)
    return Refused(body, headers_of(public).get("Retry-After", ""))
