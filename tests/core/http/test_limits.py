"""What a request may take: how large its body is, and how long it takes to come.

How many there may be is in test_rate_limit, what hostile clients try in test_hostile_requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from normata.records.kinds import IntegrationCheck
from normata.settings import Settings
from tests import stored
from tests.core.http.samples import JSON
from tests.served import Headers, Served, served
from tests.world import record_id

CHECK = f"/integration-checks/{record_id(IntegrationCheck, 'archived')}/restore/"
LIMIT = Settings.model_fields["max_body_bytes"].default

Receive = Callable[[], Awaitable[dict[str, Any]]]


def is_archived(service: Served) -> bool:
    """Whether the world's archived integration check still is."""
    row = stored.row(service.database, IntegrationCheck, record_id(IntegrationCheck, "archived"))
    return row["archived_at"] is not None


def call(service: Served, receive: Receive, headers: Headers) -> int:
    """The status of a request whose body comes as ``receive`` has it."""
    status = 0

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": CHECK,
        "raw_path": CHECK.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in ({"Host": "test"} | headers).items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    assert service.client.portal is not None
    service.client.portal.call(service.app, scope, receive, send)
    return status


def in_pieces(service: Served, pieces: list[bytes], headers: Headers) -> tuple[int, int]:
    """Send a body in pieces without a declared length: the status, and how many pieces were taken."""
    taken = 0

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": pieces[taken - 1], "more_body": taken < len(pieces)}

    return call(service, receive, headers), taken


# --- How large


def padded(size: int) -> bytes:
    """A good body of ``size`` bytes."""
    return b'{"organizationId": "org-alpha"' + b" " * (size - 31) + b"}"


@pytest.mark.parametrize("size", [31, LIMIT])
def test_bodies_up_to_the_limit(size: int, service: Served) -> None:
    content = padded(size)
    assert len(content) == size
    assert service.client.post(CHECK, content=content, headers=service.bearer("editor") | JSON).status_code == 200


def test_a_body_in_pieces(service: Served) -> None:
    content = padded(LIMIT)
    pieces = [content[start : start + 1_000] for start in range(0, LIMIT, 1_000)]
    assert in_pieces(service, pieces, service.bearer("editor") | JSON) == (200, len(pieces))


def test_of_an_endless_body_no_more_than_the_limit_is_taken(shared: Served) -> None:
    pieces = [b" " * 1_000] * 10_000
    assert in_pieces(shared, pieces, shared.bearer("editor") | JSON) == (413, LIMIT // 1_000 + 1)
    assert is_archived(shared)


def test_a_declared_length_is_enough_to_refuse(shared: Served) -> None:
    headers = shared.bearer("editor") | JSON | {"Content-Length": "9" * 30}
    status, taken = in_pieces(shared, [b"{}"] * 3, headers)
    assert status == 413
    assert taken <= 1
    assert is_archived(shared)


@pytest.mark.parametrize("limit", [1_024, 2_000])
def test_the_limit_is_a_setting(limit: int, database_url: str) -> None:
    with served(database_url, max_body_bytes=limit) as service:
        headers = service.bearer("editor") | JSON
        statuses = [
            service.client.post(CHECK, content=padded(limit + more), headers=headers).status_code for more in (1, 0)
        ]
    assert statuses == [413, 200]


# --- How long


def test_a_body_that_does_not_come_is_waited_for_in_bounds(database_url: str) -> None:
    """For the next piece of it, and not for the whole."""
    with served(database_url, body_timeout=0.2) as service:
        headers = service.bearer("editor") | JSON

        async def never() -> dict[str, Any]:
            await asyncio.sleep(60)
            raise AssertionError("it was waited for too long")

        assert call(service, never, headers) == 408
        assert is_archived(service)
        pieces = iter([b'{"organizationId":', b' "org-', b'alpha"', b"}"])

        async def slow() -> dict[str, Any]:
            await asyncio.sleep(0.1)
            piece = next(pieces)
            return {"type": "http.request", "body": piece, "more_body": piece != b"}"}

        assert call(service, slow, headers) == 200


@pytest.mark.parametrize(("rate", "expected"), [(1_000_000, 408), (10, 200)])
def test_a_body_has_a_deadline_as_a_whole(rate: int, expected: int, database_url: str) -> None:
    """However soon its next piece comes. What comes fast enough has longer: at ten bytes a second these may."""
    with served(database_url, body_deadline=0.2, body_rate=rate) as service:
        headers = service.bearer("editor") | JSON
        pieces = iter([b'{"organizationId": ', b' "org-', b'alpha"', *[b" "] * 6, b"}"])

        async def slow() -> dict[str, Any]:
            await asyncio.sleep(0.05)
            piece = next(pieces)
            return {"type": "http.request", "body": piece, "more_body": piece != b"}"}

        assert call(service, slow, headers) == expected
        assert is_archived(service) == (expected == 408)
