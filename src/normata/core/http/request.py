"""The request that an operation gets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from normata.core.changes.unit_of_work import Actor
from normata.core.http.caller import Caller
from normata.core.http.negotiation import matches_any
from normata.core.http.problems import PreconditionFailed
from normata.core.schema.wire import encode

T = TypeVar("T")


class Means:
    """The means of operations besides the database, one of each in a process: a mailer, the key that signs events.

    Each is found by its class, or a base of it, so that the core does not depend on the features.
    """

    def __init__(self, *parts: object) -> None:
        self._parts = parts

    def __getitem__(self, kind: type[T]) -> T:
        """The part of this class. Raises LookupError if there is none."""
        for part in self._parts:
            if isinstance(part, kind):
                return part
        raise LookupError(f"there is no {kind.__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for an operation: over HTTP, or from the console.

    ``id`` is the one in the path, empty if it has none. ``query`` and ``body`` are of the declared models, null if
    there is none. ``organization_id`` is the id of the organization that is read, empty for changes and for the
    caller's own data. ``time`` is that of the request, in wire form; a change uses the moment of its transaction
    instead. ``prefix`` is that under which the caller sees the application, ``instance`` the path of the request with
    it. ``if_match`` is the header, null if it was not sent. ``new_organization`` is the id of an organization that an
    operator's change may create, empty for others. ``plan`` is the result of ``prepare``, null if the operation has
    none. ``format`` is the chosen format of a read that has several, else empty.
    """

    caller: Caller
    means: Means
    time: str
    request_id: str = ""
    address: str = ""
    prefix: str = ""
    instance: str = ""
    id: str = ""
    organization_id: str = ""
    query: Any = None
    body: Any = None
    if_match: bytes | None = None
    dry_run: bool = False
    new_organization: str = ""
    plan: Any = None
    format: str = ""

    @property
    def actor(self) -> Actor:
        """The caller as the actor of events."""
        caller = self.caller
        return Actor(caller.user_id, caller.user_name, caller.token_id or None, self.request_id, self.address)

    @property
    def is_conditional(self) -> bool:
        """Whether the request has ``If-Match``."""
        return self.if_match is not None

    def require_current(self, answer: Any) -> None:
        """Raise PreconditionFailed if ``If-Match`` names another state than ``answer`` (RFC 9110, section 13.1.1).

        ``answer`` is the wire form of the row before the change.
        """
        if self.if_match is not None and not matches_any(self.if_match, encode(answer)):
            raise PreconditionFailed


class PackedRequest(NamedTuple):
    """A request for another process, which has means of its own.

    The models of some queries are made by functions, so their values go alone.
    """

    request: Request
    values: dict[str, Any]
    names: set[str]

    @classmethod
    def of(cls, request: Request) -> PackedRequest:
        """Pack a request."""
        query = request.query
        values, names = ({}, set()) if query is None else (dict(query), query.model_fields_set)
        return cls(replace(request, query=None, means=Means()), values, names)

    def unpacked(self, model: Any, means: Means) -> Request:
        """The request, with a query of ``model``, if that is not null, and the ``means`` of this process."""
        query = None if model is None else model.model_construct(self.names, **self.values)
        return replace(self.request, query=query, means=means)
