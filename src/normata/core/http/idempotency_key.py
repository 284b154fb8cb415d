"""Parsing of the header ``Idempotency-Key`` (draft-ietf-httpapi-idempotency-key-header)."""

from __future__ import annotations

import re
from hashlib import sha256

from starlette.types import Scope

from normata.core.changes.idempotency import KeyedRequest
from normata.core.http.context import context_of, path_id
from normata.core.http.operation import Operation
from normata.core.http.problems import FieldFault

HEADER = b"idempotency-key"
_LONGEST = 255
# A String of RFC 9651, section 3.3.3, as the draft requires. Many clients omit the quotes.
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class InvalidKey(ValueError):
    """The header is not valid; ``fault`` is the reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.fault = FieldFault(in_="header", name="Idempotency-Key", code=code, message=message, allowed=None)


def key_of(scope: Scope) -> str | None:
    """The key of a request; null if it has none. Raises InvalidKey."""
    sent = context_of(scope).headers.get(HEADER)
    if sent is None:
        return None
    if sum(name == HEADER for name, _ in scope["headers"]) > 1:
        raise InvalidKey("repeated", "must be sent once")
    key = sent.decode("latin-1").strip(" \t")
    if key.startswith('"'):
        quoted = _QUOTED.fullmatch(key)
        if quoted is None:
            raise InvalidKey("invalid", "must be a text in quotes, as RFC 9651 has it, or one without any")
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    if not key:
        raise InvalidKey("too_short", "must not be empty")
    if len(key) > _LONGEST:
        raise InvalidKey("too_long", f"must have at most {_LONGEST} characters")
    if _CONTROL.search(key):
        raise InvalidKey("invalid", "must have no control characters")
    return key


def keyed(
    operation: Operation, scope: Scope, content_type: bytes, body: bytes, *, user_id: str, key: str
) -> KeyedRequest:
    """The request in the form in which repetitions with the same key are recognized."""
    fingerprint = sha256()
    for part in (scope["query_string"], content_type, body):
        fingerprint.update(b"%d:%b" % (len(part), part))  # with its length, so that no byte can move to the next part
    path = operation.path.replace("{id}", path_id(scope))
    return KeyedRequest(user_id, key, operation.method, path, fingerprint.hexdigest())
