"""The context of a request while it is answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import Scope

from normata.core.http.caller import Caller
from normata.core.http.negotiation import Headers
from normata.errors import NotFound

_KEY = "normata"
# W3C Trace Context: version, trace id, parent id, flags; neither id is all zeros.
_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")


class SignedIn(Protocol):
    """The user who has signed in to the console, for the log."""

    @property
    def user_id(self) -> str:
        """The id of the user."""

    @property
    def session_id(self) -> str:
        """The id of their session."""


@dataclass(slots=True)
class RequestContext:
    """One request.

    ``headers`` are combined, see :func:`normata.core.http.negotiation.combined`. ``raw_path`` is the path as it was
    sent, without ``prefix``, under which a proxy serves the application. ``response_headers`` are headers of the
    answer, also of an error. ``trace_id`` and ``parent_id`` are those of the client's `traceparent`, null if it sent
    none. The rest is set during the request: the template of the path, the caller, the organization of the request, the
    code of its problem, with the reason if that code has several, and the limit of its body in bytes, null for that of
    the setting. For a page of the console, ``session`` is the user who has signed in, and ``problem_page`` makes a page
    from a problem.
    """

    request_id: str
    raw_path: str
    headers: Headers
    response_headers: list[tuple[bytes, bytes]]
    prefix: str = ""
    trace_id: str | None = None
    parent_id: str | None = None
    route: str | None = None
    caller: Caller | None = None
    session: SignedIn | None = None
    organization_id: str | None = None
    problem: str | None = None
    body_limit: int | None = None
    reason: str = ""
    problem_page: Callable[[Mapping[str, Any], Mapping[str, str]], Response] | None = None

    @property
    def instance(self) -> str:
        """The path of the request, as a problem names it."""
        return self.prefix + self.raw_path

    def trace(self, traceparent: bytes) -> None:
        """Take over the ids of a `traceparent`, if it is one."""
        match = _TRACEPARENT.fullmatch(traceparent)
        if match is not None:
            self.trace_id, self.parent_id = match[1].decode(), match[2].decode()


def put_context(scope: Scope, context: RequestContext) -> None:
    """Attach a context to a request."""
    scope[_KEY] = context


def context_of(scope: Scope) -> RequestContext:
    """The context of a request that came through the gateway."""
    context: RequestContext = scope[_KEY]
    return context


def path_id(scope: Scope) -> str:
    """The id in the path, decoded; empty if it has none. Raises NotFound for an id that no row can have."""
    found: str = scope["path_params"].get("id", "")
    if "\0" in found:
        raise NotFound  # PostgreSQL cannot store a null character
    return found


def address_of(scope: Scope) -> str:
    """The address that a request comes from; empty if that is not known."""
    return (scope.get("client") or ("",))[0]
