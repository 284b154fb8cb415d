"""When a token was last used is stored, but not on every request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from normata.app import Service
from normata.core.db.database import Database
from normata.core.db.types import format_timestamp
from normata.identity.last_use import LastUse
from tests import stored
from tests.client import TestClient
from tests.databases import path_of, tamper
from tests.traced import traced
from tests.world import ALPHA

Bearer = Callable[..., dict[str, str]]

ADDRESS = f"/notifications/?organizationId={ALPHA}"


class Writes:
    """Counts the write transactions that are begun from now on."""

    def __init__(self, sent: list[str]) -> None:
        self._sent = sent
        self._before = len(sent)

    @property
    def count(self) -> int:
        return self._sent[self._before :].count("BEGIN IMMEDIATE")


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that is sent to the file."""
    return traced(monkeypatch)


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """On SQLite, whose connections belong to no event loop: these tests bring along loops of their own."""
    return sqlite_url


@pytest.fixture
def quiet(application: Service) -> TestClient:
    """A client of the application without its background work, which the test does itself."""
    return TestClient(application)


def store(application: Service) -> None:
    """Do the background work once."""
    asyncio.run(application.services.means[LastUse].store())


def last_use(database: Database) -> Any:
    (row,) = stored.tokens(database)
    return row["last_used_at"]


def ago(**amount: float) -> str:
    return format_timestamp(datetime.now(UTC) - timedelta(**amount))


def test_a_use_is_stored_without_a_write_of_the_request(
    quiet: TestClient, application: Service, bearer: Bearer, database: Database, sent: list[str]
) -> None:
    """Many requests write nothing; one write afterwards stores the time of the last of them."""
    headers, writes = bearer("editor"), Writes(sent)
    for _ in range(10):
        assert quiet.get(ADDRESS, headers=headers).status_code == 200
    start = ago()
    assert quiet.get(ADDRESS, headers=headers).status_code == 200
    end = ago()
    assert writes.count == 0
    assert last_use(database) is None
    store(application)
    assert writes.count == 1
    assert start <= last_use(database) <= end


def test_the_counter_of_writes_sees_writes(quiet: TestClient, bearer: Bearer, sent: list[str]) -> None:
    """What the other tests rely on: a restore is one write transaction."""
    headers, writes = bearer("editor"), Writes(sent)
    address = f"/labels/labels-archived-{ALPHA}/restore/"
    assert quiet.post(address, headers=headers).status_code == 200
    assert writes.count == 1


def test_nothing_is_stored_twice_a_minute(
    quiet: TestClient, application: Service, bearer: Bearer, database: Database, sent: list[str]
) -> None:
    headers = bearer("editor")
    assert quiet.get(ADDRESS, headers=headers).status_code == 200
    store(application)
    first, writes = last_use(database), Writes(sent)
    for _ in range(5):
        assert quiet.get(ADDRESS, headers=headers).status_code == 200
        store(application)
    assert writes.count == 0
    assert last_use(database) == first


@pytest.mark.parametrize("seconds", [30, 90])
def test_a_use_is_stored_again_after_a_minute(
    quiet: TestClient,
    application: Service,
    bearer: Bearer,
    database: Database,
    seconds: int,
) -> None:
    headers, earlier = bearer("editor"), ago(seconds=seconds)
    tamper(database, f"UPDATE access_token SET last_used_at = '{earlier}'")
    assert quiet.get(ADDRESS, headers=headers).status_code == 200
    store(application)
    assert (last_use(database) > earlier) == (seconds > 60)


def test_uses_of_several_tokens_are_stored_together(
    quiet: TestClient, application: Service, bearer: Bearer, database: Database, sent: list[str]
) -> None:
    """One write for all; a token that was not used keeps its blank."""
    headers = [bearer(user) for user in ("owner", "editor", "viewer")]
    bearer("admin")
    writes = Writes(sent)
    for each in headers:
        assert quiet.get(ADDRESS, headers=each).status_code == 200
    store(application)
    assert writes.count == 1
    used = {row["user_id"]: row["last_used_at"] is not None for row in stored.tokens(database)}
    assert used == {"user-owner": True, "user-editor": True, "user-viewer": True, "user-admin": False}


@pytest.mark.parametrize("case", ["expired", "revoked"])
def test_a_refused_token_was_not_used(
    quiet: TestClient, application: Service, bearer: Bearer, database: Database, case: str
) -> None:
    headers, past = bearer("editor"), ago(seconds=1)
    column = {"expired": "expires_at", "revoked": "revoked_at"}[case]
    tamper(database, f"UPDATE access_token SET {column} = '{past}'")
    assert quiet.get(ADDRESS, headers=headers).status_code == 401
    store(application)
    assert last_use(database) is None


def test_a_refused_request_is_a_use(
    quiet: TestClient, application: Service, bearer: Bearer, database: Database
) -> None:
    """Whoever asks in vain has used the token, too."""
    assert quiet.get("/notifications/?organizationId=unknown", headers=bearer("editor")).status_code == 404
    store(application)
    assert last_use(database) is not None


def test_while_the_database_is_away_uses_are_dropped_quietly(
    quiet: TestClient, application: Service, bearer: Bearer, database: Database
) -> None:
    """Storing fails without a word, and goes on with the next use. (SQLite: the file is moved away and back.)"""
    headers = bearer("editor")
    assert quiet.get(ADDRESS, headers=headers).status_code == 200
    away = path_of(database).with_suffix(".away")
    path_of(database).rename(away)
    try:
        store(application)
    finally:
        away.rename(path_of(database))
    store(application)
    assert last_use(database) is None
    assert quiet.get(ADDRESS, headers=headers).status_code == 200
    store(application)
    assert last_use(database) is not None


def test_the_running_service_stores_uses_by_itself(client: TestClient, bearer: Bearer, database: Database) -> None:
    headers = bearer("editor")
    assert client.get(ADDRESS, headers=headers).status_code == 200
    for _ in range(200):
        if last_use(database) is not None:
            return
        threading.Event().wait(0.05)
    pytest.fail("ten seconds after the use of a token nothing is stored of it")


def test_uses_are_stored_when_the_service_stops(application: Service, bearer: Bearer, database: Database) -> None:
    """What has gathered up to then is not lost."""
    headers = bearer("editor")
    with TestClient(application) as client:
        assert client.get(ADDRESS, headers=headers).status_code == 200
    assert last_use(database) is not None
