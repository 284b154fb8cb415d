"""A request, as an operation is given it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from normata.core.changes.unit_of_work import Actor
from normata.core.http.caller import Caller
from normata.core.http.negotiation import matches_any
from normata.core.http.problems import PreconditionFailed
from normata.core.schema.wire import encode

T = TypeVar("T")


class Means:
    """What operations use besides the database, one of each in a process: a mailer, the key that signs events.

    Each is found by its class, or a base of it, so that the core need not know what the features bring along.
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
    """What somebody asks of an operation: by HTTP, or in the console.

    ``id`` is the one in the path, empty if it has none. ``query`` and ``body`` are of the declared models, null
    if there is none. ``organization_id`` is the id of the organization that is read, empty for changes and for what
    is the caller's own. ``time`` is that of the request, as the wire has it; a change has the moment of its transaction
    instead. ``prefix`` is that under which the caller sees the application, ``instance`` the path of the request with
    it. ``if_match`` is the header, null if it was not sent. ``new_organization`` is the id of an organization that
    an operator's change may make, empty for others. ``plan`` is what the operation has prepared for its change, null
    if it prepares nothing.
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

    @property
    def actor(self) -> Actor:
        """The caller, as events name them."""
        caller = self.caller
        return Actor(caller.user_id, caller.user_name, caller.token_id or None, self.request_id, self.address)

    @property
    def is_conditional(self) -> bool:
        """Whether the request names the state that it is meant for."""
        return self.if_match is not None

    def require_current(self, answer: Any) -> None:
        """Raise PreconditionFailed where ``If-Match`` names another state than ``answer`` (RFC 9110, section 13.1.1).

        ``answer`` is what is to be changed, as it would travel before the change.
        """
        if self.if_match is not None and not matches_any(self.if_match, encode(answer)):
            raise PreconditionFailed
