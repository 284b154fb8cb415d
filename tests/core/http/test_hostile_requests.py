"""Requests that are made to hurt: slow bodies, repeated headers, floods of bad tokens, large keys of caches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.types import Message

from normata.core.http import authentication, negotiation
from tests.served import Served, refused, served

Headers = Sequence[tuple[bytes, bytes]]
RESTORE = "/integration-checks/integration-checks-archived-org-alpha/restore/"


def ask(
    service: Served, headers: Headers, messages: Sequence[Message], *, path: str = RESTORE, version: str = "1.1"
) -> tuple[int, bytes]:
    """The answer to a POST whose body is these messages; after them the client sends nothing more."""

    async def run() -> tuple[int, bytes]:
        waiting = list(messages)
        sent: list[Message] = []

        async def receive() -> Message:
            if waiting:
                return waiting.pop(0)
            await asyncio.sleep(60)
            raise AssertionError("the body was waited for without end")

        async def send(message: Message) -> None:
            sent.append(message)

        scope: dict[str, Any] = {
            "type": "http",
            "http_version": version,
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": list(headers),
            "client": ("127.0.0.1", 1),
            "app": service.app,
        }
        await service.app.build_middleware_stack()(scope, receive, send)
        return sent[0]["status"], sent[1]["body"]

    portal = service.client.portal
    assert portal is not None  # the client is open, so it has one
    return portal.call(run)


def credentials(service: Served) -> list[tuple[bytes, bytes]]:
    """The headers of a caller who may restore."""
    token = service.token("editor")
    return [(b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/json")]


def test_a_body_that_stalls_is_not_waited_for(database_url: str) -> None:
    with served(database_url, body_timeout=0.1) as service:
        first: Message = {"type": "http.request", "body": b'{"organ', "more_body": True}
        status, body = ask(service, [(b"host", b"a"), *credentials(service)], [first])
    assert status == 408
    assert b'"code":"request_timeout"' in body


def test_a_client_that_hangs_up_within_the_body_is_no_fault(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b'{"organ', "more_body": True},
        {"type": "http.disconnect"},
    ]
    status, body = ask(service, [(b"host", b"a"), *credentials(service)], messages)
    assert status == 400
    assert b'"code":"incomplete"' in body
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hosts", "version", "status"),
    [
        ([], "1.1", 400),
        ([b""], "1.1", 400),
        ([b"a", b"b"], "1.1", 400),
        ([b"a", b"a"], "1.1", 400),
        ([b"a", b"a"], "1.0", 400),
        ([], "1.0", 401),
        ([b"a"], "1.1", 401),
    ],
)
def test_exactly_one_host(hosts: list[bytes], version: str, status: int, shared: Served) -> None:
    found, _ = ask(shared, [(b"host", host) for host in hosts], [], version=version)
    assert found == status


def test_repeated_headers_are_joined_in_linear_time(shared: Served) -> None:
    few, many = ([(b"host", b"a"), *[(b"x-many", b"v" * 10)] * count] for count in (10_000, 100_000))
    times = []
    for headers in (few, many):
        started = time.process_time()
        negotiation.combined(headers)
        times.append(time.process_time() - started)
    # Ten times as many take some ten times as long; joined one by one they would take a hundred times.
    assert times[1] < 60 * max(times[0], 0.001)
    assert ask(shared, many, [])[0] == 401


@pytest.mark.parametrize("cached", ["_best_coding_cached", "_best_media_type_cached"])
def test_no_cache_has_keys_as_large_as_a_client_likes(cached: str) -> None:
    before = getattr(negotiation, cached).cache_info().currsize
    for number in range(10):
        value = b"gzip, " + b"x" * 10_000 + str(number).encode()
        negotiation.best_coding(value, ("gzip",))
        negotiation.best_media_type(value, ("application/json",))
    assert getattr(negotiation, cached).cache_info().currsize == before


def test_floods_of_bad_tokens_are_slowed_down(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        delays.append(seconds)
        await sleep(0)

    monkeypatch.setattr("normata.core.http.authentication.asyncio.sleep", noted)
    with served(database_url, bad_token_limit=3) as service:
        for _ in range(3):
            refused(service.client.post(RESTORE), 401, "unauthenticated")
        answer = service.client.post(RESTORE, headers={"Authorization": "Bearer nrm_nonsense"})
        refused(answer, 429, "too_many_requests")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert authentication._DELAY in delays
        # A good token from the same address is served as ever.
        assert service.client.post(RESTORE, headers=service.bearer("editor")).status_code == 200


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_is_set_changes_no_limit(hours: int, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = time.time
    with served(database_url, rate_limit=2) as service:
        headers = service.bearer("editor")
        page = "/frameworks/?organizationId=org-alpha"
        statuses = [service.client.get(page, headers=headers).status_code for _ in range(3)]
        monkeypatch.setattr(time, "time", lambda: clock() + hours * 3600)
        answer = service.client.get(page, headers=headers)
    assert [*statuses, answer.status_code] == [200, 200, 429, 429]
    assert 1 <= int(answer.headers["retry-after"]) <= 60
