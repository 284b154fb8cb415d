"""The figures of the service: requests, refusals with their reasons, kept pages, and waits for the database."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import get_args

import pytest

from normata.core.db.monitoring import WaitName
from normata.core.http.problems import LimitReason
from normata.errors import UnavailableReason
from normata.records.kinds import Label
from tests.client import TestClient
from tests.core.db.sessions import session
from tests.databases import on_both, path_of
from tests.served import Headers, Served, refused, served
from tests.world import ALPHA, record_id

on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def postgres_url(own_postgres_url: str) -> str:
    """A database to which the application opens connections itself: its metrics count them."""
    return own_postgres_url


QUERY = {"organizationId": ALPHA}
LABEL = f"/labels/{record_id(Label, 'archived')}/restore/"


def figures(client: TestClient) -> dict[str, float]:
    """Every figure by its name with its labels, as Prometheus reads it."""
    lines = client.get("/metrics").text.splitlines()
    found = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in found}


def reasons(client: TestClient) -> dict[str, float]:
    """How many answers there were for each reason."""
    pattern = re.compile(r'normata_problems_total\{code=".*",reason="(.+)"\}')
    return {match[1]: value for name, value in figures(client).items() if (match := pattern.fullmatch(name))}


@contextmanager
def locked(service: Served) -> Iterator[None]:
    """While the block runs, another process writes, and does not come to an end."""
    if service.url.startswith("sqlite"):
        with closing(sqlite3.connect(path_of(service.database), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
        return
    with session(service.url) as other_session:
        other_session.run("BEGIN", "LOCK TABLE label IN ACCESS EXCLUSIVE MODE")
        yield
        other_session.run("ROLLBACK")


def restore(service: Served, headers: Headers) -> None:
    refused(service.client.post(LABEL, headers=headers), 503, "unavailable")


# --- Requests


def counted(client: TestClient) -> dict[tuple[str, ...], float]:
    """How many requests there were by method, route and status."""
    pattern = (
        r"^http_server_request_duration_seconds_count\{"
        r'http_request_method="(.*)",http_response_status_code="(.*)",http_route="(.*)"\} (\S+)$'
    )
    lines = re.findall(pattern, client.get("/metrics").text, re.MULTILINE)
    return {(method, route, status): float(value) for method, status, route, value in lines}


def test_metrics(service: Served) -> None:
    """Requests by method, route and status; an address with the slash and without it is one route."""
    client, headers = service.client, service.bearer("editor")
    for address in ("/controls/", "/controls", "/controls/?limit=1"):
        client.get(address, params=None if "?" in address else QUERY, headers=headers)
    client.get("/controls/")
    client.post(LABEL, headers=headers)
    client.post("/labels/secret/restore", headers=headers)
    for number in range(3):
        client.get(f"/nothing/{number}")
    client.request("BREW", "/controls/")
    client.request("BREW2", "/nothing/")
    assert counted(client) == {
        ("GET", "/controls", "200"): 2,
        ("GET", "/controls", "400"): 1,
        ("GET", "/controls", "401"): 1,
        ("POST", "/labels/{id}/restore", "200"): 1,
        ("POST", "/labels/{id}/restore", "404"): 1,
        ("GET", "other", "404"): 3,
        ("_OTHER", "/controls", "405"): 1,
        ("_OTHER", "other", "404"): 1,
    }


def test_metrics_are_in_prometheus_text_format(service: Served) -> None:
    client, headers = service.client, service.bearer("viewer")
    for _ in range(3):
        client.get("/controls/", params=QUERY, headers=headers)
    client.get("/nothing/")
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    lines = response.text.splitlines()
    assert "# TYPE http_server_request_duration_seconds histogram" in lines
    assert "http_server_active_requests 1.0" in lines, "this one"
    assert 'normata_cached_pages_total{cached="yes"} 2.0' in lines
    assert 'normata_cached_pages_total{cached="no"} 1.0' in lines
    assert 'normata_problems_total{code="not_found",reason=""} 1.0' in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    assert any(line.startswith("normata_build_info{") for line in lines)


# --- Why requests are refused


@on_both
def test_the_reasons_of_503_and_429(database_url: str) -> None:
    with served(database_url, database_timeout=0.2, rate_limit=2, bad_token_limit=1) as service:
        client, headers = service.client, service.bearer("editor")
        with locked(service):
            restore(service, headers)
        (lock,) = reasons(client)
        assert lock in {"locked", "slow"}, "on PostgreSQL both limits are reached at the same time"
        refused(client.get("/nothing/"), 404, "not_found")
        refused(client.get("/controls/"), 401, "unauthenticated")
        refused(client.get("/controls/"), 429, "too_many_requests")
        client.get("/controls/", params=QUERY, headers=headers)
        refused(client.get("/controls/", params=QUERY, headers=headers), 429, "too_many_requests")
        service.sql("DELETE FROM alembic_version")
        refused(client.get("/readyz"), 503, "unavailable")
        assert reasons(client) == {lock: 1, "bad_tokens": 1, "token_rate": 1, "schema": 1}
        assert reasons(client).keys() <= {*get_args(UnavailableReason), *get_args(LimitReason)}


def test_a_database_that_is_gone_is_a_reason(service: Served) -> None:
    path_of(service.database).rename(Path(f"{path_of(service.database)}.away"))
    refused(service.client.get("/readyz"), 503, "unavailable")
    assert reasons(service.client) == {"unreachable": 1}


@on_postgresql
def test_waiting_for_a_connection_in_vain_is_a_reason(database_url: str) -> None:
    """One has the only connection, and waits for a lock; the others wait for the connection, and give up."""
    with served(database_url, database_timeout=0.3, database_pool_size=1) as service:
        headers = service.bearer("editor")

        async def at_once() -> None:
            await asyncio.gather(*(asyncio.to_thread(restore, service, headers) for _ in range(3)))

        with locked(service):
            asyncio.run(at_once())
        assert reasons(service.client)["crowded"] > 0


@pytest.mark.parametrize("kind", ["reader", "writer"])
def test_waiting_for_a_turn_in_vain_is_a_reason(kind: str, database_url: str) -> None:
    """Something else keeps the one thread that reads, or writes; whoever comes then gives up."""
    with served(database_url, database_timeout=0.1) as service:
        headers, go_on = service.bearer("editor"), threading.Event()
        database, portal = service.app.services.database, service.client.portal
        assert portal is not None  # the client is open, so it has one
        run = database.read if kind == "reader" else database.write
        keeping = portal.start_task_soon(run, lambda _: go_on.wait(30))
        try:
            if kind == "writer":
                restore(service, headers)
            else:
                answer = service.client.get("/frameworks/", params=QUERY, headers=headers)
                refused(answer, 503, "unavailable")
            assert waits(service.client, "waiting")[kind] == 0
        finally:
            go_on.set()
            keeping.result(30)
        assert reasons(service.client) == {"crowded": 1}
        assert waits(service.client, "wait_seconds_sum")[kind] > 0.09


# --- WaitMonitor for the database


def waits(client: TestClient, kind: str) -> dict[str, float]:
    """A figure of each thing that is waited for."""
    pattern = re.compile(rf'normata_database_{kind}\{{wait="(.+)"\}}')
    return {match[1]: value for name, value in figures(client).items() if (match := pattern.fullmatch(name))}


def csv(service: Served) -> Headers:
    return service.bearer("admin") | {"Content-Type": "text/csv"}


@on_both
def test_waits_are_counted(service: Served) -> None:
    client, headers = service.client, service.bearer("editor")
    before = waits(client, "wait_seconds_count")
    on_sqlite = {"reader", "long_reader", "planner", "writer", "dry_run", "lock"}
    assert before.keys() == (on_sqlite if "sqlite" in service.url else {"connection"}) | {"read_process"}
    assert before.keys() <= set(get_args(WaitName))
    client.get("/controls/", params=QUERY, headers=headers)
    assert client.post(LABEL, headers=headers).status_code == 200
    assert client.post(LABEL, params={"dryRun": "true"}, headers=headers).status_code == 409
    assert client.get("/frameworks/fw-moon/gaps/", params=QUERY, headers=headers).status_code == 200
    table = client.post("/imports/", params={**QUERY, "name": "Docks"}, content="identifier\n1\n", headers=csv(service))
    assert table.status_code == 200
    after = waits(client, "wait_seconds_count")
    assert all(after[name] > before[name] for name in before if name != "read_process")
    assert set(waits(client, "waiting").values()) == {0}


@on_both
def test_who_waits_now_and_how_long_it_took(database_url: str) -> None:
    """A wait for another process, or for the one connection that has to wait, and one that is given up."""
    with served(database_url, database_timeout=0.5, database_pool_size=1) as service:
        client, headers = service.client, service.bearer("editor")
        name = "lock" if "sqlite" in service.url else "connection"

        async def watched() -> list[float]:
            others = [asyncio.create_task(asyncio.to_thread(restore, service, headers)) for _ in range(2)]
            seen = []
            while not all(other.done() for other in others):
                seen.append((await asyncio.to_thread(waits, client, "waiting"))[name])
                await asyncio.sleep(0.02)
            await asyncio.gather(*others)
            return seen

        with locked(service):
            assert max(asyncio.run(watched())) > 0
        # Who gave up was answered while the one thread that writes still waited for the lock, which it has now.
        deadline = time.monotonic() + 10
        while waits(client, "waiting")[name] and time.monotonic() < deadline:
            time.sleep(0.02)
        assert waits(client, "waiting")[name] == 0
        assert waits(client, "wait_seconds_sum")[name] > 0.3


@on_postgresql
def test_the_connections_of_the_pool(service: Served) -> None:
    headers = service.bearer("viewer")
    service.client.get("/frameworks/", params=QUERY, headers=headers)
    for _ in range(100):  # the service itself may just use one: to seal events, or to note a token's last use
        found = figures(service.client)
        if found['normata_database_connections{state="used"}'] == 0:
            break
        time.sleep(0.05)
    assert found['normata_database_connections{state="used"}'] == 0
    assert found['normata_database_connections{state="idle"}'] >= 1
    assert found["normata_database_connection_limit"] == 16


def test_a_kept_page_waits_for_nothing(service: Served) -> None:
    """So none of this costs it anything."""
    headers = service.bearer("viewer")
    service.client.get("/controls/", params=QUERY, headers=headers)
    for _ in range(5):  # now and then the service reads something by itself
        first = waits(service.client, "wait_seconds_count")
        before = waits(service.client, "wait_seconds_count")
        service.client.get("/controls/", params=QUERY, headers=headers)
        after = waits(service.client, "wait_seconds_count")
        if after["reader"] - before["reader"] == before["reader"] - first["reader"]:  # what /metrics itself reads
            return
    pytest.fail("a page that is kept has been read")
