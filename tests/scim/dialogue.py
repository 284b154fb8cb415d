"""Replaying what a provider sends: each exchange is a request, and what the answer must have.

``{name}`` in a path or a body is what an earlier answer had at the place that ``notes`` names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from httpx2 import Response

from tests.served import Headers, Served

BASE = "/scim/v2"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Exchange:
    """A request and its answer: its status, members by dotted paths, and what of it is noted under which name."""

    method: str
    path: str
    body: Any = None
    status: int = 200
    has: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def patch(path: str, *operations: Mapping[str, Any], status: int = 204) -> Exchange:
    """A PATCH with these operations."""
    return Exchange("PATCH", path, {"schemas": [PATCH_OP], "Operations": list(operations)}, status)


def replay(
    service: Served, headers: Headers, exchanges: Sequence[Exchange], before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Send the requests in their order, check each answer, and return what was noted."""
    noted = dict(before or {})
    for exchange in exchanges:
        response = send(service, headers, exchange.method, filled(exchange.path, noted), filled(exchange.body, noted))
        called = f"{exchange.method} {exchange.path}: {response.text[:500]}"
        assert response.status_code == exchange.status, called
        answer = response.json() if response.content else {}
        if response.content:
            assert response.headers["content-type"] == "application/scim+json", called
        for place, value in exchange.has.items():
            assert at(answer, place) == filled(value, noted), f"{place} of {called}"
        noted |= {name: at(answer, place) for name, place in exchange.notes.items()}
    return noted


def send(service: Served, headers: Headers, method: str, path: str, body: Any = None) -> Response:
    """Send one request."""
    content = None if body is None else json.dumps(body).encode()
    more = {} if body is None else {"Content-Type": "application/scim+json"}
    return service.client.request(method, BASE + path, content=content, headers=headers | more)


def filled(value: Any, noted: Mapping[str, Any]) -> Any:
    """A value with what was noted in its places."""
    if isinstance(value, str):
        return _PLACE.sub(lambda found: str(noted[found[1]]), value)
    if isinstance(value, list):
        return [filled(one, noted) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, noted) for name, one in value.items()}
    return value


def at(answer: Any, place: str) -> Any:
    """The value at a dotted path, where numbers are places of a list; null if there is none."""
    for step in place.split("."):
        if isinstance(answer, list):
            answer = answer[int(step)] if int(step) < len(answer) else None
        elif isinstance(answer, dict):
            answer = answer.get(step)
    return answer
