"""Bodies that are read while they arrive, because they may be too large for the memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.types import Receive, Scope

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.context import context_of
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Means, Request


@dataclass(frozen=True, slots=True)
class Arriving:
    """A body that arrives in ``parts``. ``media_type`` is its ``Content-Type``, empty if it has none.

    ``size`` is the number of its bytes, null if the client does not say it. Reading the parts raises InvalidRequest if
    the client leaves, and TooLarge and RequestTimeout.
    """

    media_type: str
    size: int | None
    parts: AsyncIterator[bytes]


class Received(Protocol):
    """A body that has arrived."""

    @property
    def sha256(self) -> str:
        """The SHA-256 of its bytes, in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class BodyStream:
    """How an operation reads its body while that arrives.

    ``limit`` is the most bytes that it may have. ``admit`` runs before the first byte is read, in a unit of work that
    writes nothing, and raises if the caller may not make the change. ``receive`` gets its result, reads the body, and
    yields it as :attr:`Request.body` for ``work``; it is left once the change is made, or with the error.
    """

    limit: Callable[[Means], int]
    admit: Callable[[UnitOfWork, Request, Arriving], Any]
    receive: Callable[[Request, Arriving, Any], AbstractAsyncContextManager[Received]]


def arriving(scope: Scope, receive: Receive) -> Arriving:
    """The body of a request, of which nothing has been read."""
    headers = context_of(scope).headers
    declared = headers.get(b"content-length", b"")
    return Arriving(
        headers.get(b"content-type", b"").decode("latin-1"),
        int(declared) if declared.isdigit() else None,
        _parts(HttpRequest(scope, receive)),
    )


async def _parts(request: HttpRequest) -> AsyncIterator[bytes]:
    try:
        async for part in request.stream():
            if part:
                yield part
    except ClientDisconnect:  # the client is gone, or has sent something that is not HTTP
        fault = FieldFault(in_="body", name="", code="incomplete", message="ended before it was complete", allowed=None)
        raise InvalidRequest.of([fault]) from None
