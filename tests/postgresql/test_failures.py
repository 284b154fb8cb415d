"""The database fails in every way that it can: the client gets 503, nothing is half done, and service resumes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from httpx2 import Response

from normata.app import create_app
from normata.records.kinds import Task
from normata.settings import Settings
from tests.client import TestClient
from tests.core.db.sessions import Cluster, Session, own_cluster, session, wait_until
from tests.databases import build
from tests.postgresql.conftest import new_token
from tests.server import PLAIN, serving
from tests.world import ALPHA, record_id

pytestmark = pytest.mark.long

TASK = record_id(Task, "archived")
RESTORE = f"/tasks/{TASK}/restore/"
LISTS = [f"{path}?organizationId={ALPHA}" for path in ("/controls/", "/frameworks/", "/notifications/")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server that these tests may stop."""
    with own_cluster() as started:
        yield started


@pytest.fixture(scope="module")
def template(cluster: Cluster) -> str:
    """The name of a database of the cluster with the world in it."""
    build(cluster.server.create("world"), with_world=True)
    return "world"


@pytest.fixture
def url(cluster: Cluster, template: str) -> Iterator[str]:
    """The address of a fresh copy of the world; the archived task has an assignee, who is to be notified."""
    name = f"normata_{uuid4().hex}"
    address = cluster.server.create(name, template=template)
    with session(address) as admin:
        admin.run(f"UPDATE task SET assignee_member_id = 'member-owner' WHERE id = '{TASK}'")
    yield address
    cluster.server.drop(name)


@pytest.fixture
def admin(url: str) -> Iterator[Session]:
    """A session that watches."""
    with session(url) as watching:
        yield watching


@pytest.fixture
def blocker(url: str) -> Iterator[Session]:
    """A session that holds locks."""
    with session(url) as holding:
        yield holding


class Client:
    """A client of the application, as alpha's editor."""

    def __init__(self, client: TestClient | httpx2.Client, token: str) -> None:
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Response:
        return self._client.get(path, headers=self._headers)

    def restore(self) -> Response:
        return self._client.post(RESTORE, headers=self._headers)

    def is_lost(self) -> None:
        """Every answer says that the database cannot be reached, and that the process lives."""
        for path in (*LISTS, "/readyz"):
            is_unavailable(self.get(path))
        is_unavailable(self.restore())
        assert self.get("/livez").status_code == 200

    def is_served(self) -> None:
        """Every list is there, and the process is ready."""
        for path in (*LISTS, "/readyz"):
            assert self.get(path).status_code == 200


@contextmanager
def application(url: str, **settings: Any) -> Iterator[Client]:
    """The application over a database that can be reached at first."""
    with started(url, new_token(url), **settings) as client:
        yield client


@contextmanager
def started(url: str, token: str, **settings: Any) -> Iterator[Client]:
    """The application over a database, whether that can be reached or not."""
    app = create_app(Settings.model_validate({"database_url": url, "log_level": "error"} | settings))
    with TestClient(app) as client:
        yield Client(client, token)


def is_unavailable(answer: Response) -> None:
    """The answer is the problem of a database that cannot be reached."""
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) >= 1
    body = answer.json()
    assert (body["code"], body["status"], body["requestId"]) == ("unavailable", 503, answer.headers["x-request-id"])
    assert not any(word in answer.text.lower() for word in ("postgres", "normata_", "socket", "select", "connection"))


def at_once(calls: Sequence[Callable[[], Response]]) -> list[int]:
    """The statuses of calls made at the same time."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Response]) -> int:
        gate.wait(30)
        return call().status_code

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@contextmanager
def meanwhile(call: Callable[[], Response]) -> Iterator[Future[Response]]:
    """A call on its way while the block runs."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(call)


@contextmanager
def in_time(most: float, least: float = 0) -> Iterator[None]:
    """Fail where the block takes longer than so many seconds, or is done sooner."""
    begun = time.monotonic()
    yield
    assert least <= time.monotonic() - begun < most


def untouched(admin: Session) -> bool:
    """Whether no trace of a restore of the task is there."""
    return bool(
        admin.value("SELECT archived_at IS NOT NULL FROM task WHERE id = $1", TASK)
        and admin.value("SELECT count(*) FROM audit_event WHERE user_id IS NOT NULL") == 0
        and admin.value("SELECT count(*) FROM notification WHERE type = 'record.restored'") == 0
    )


def whole(admin: Session) -> bool:
    """Whether a restore of the task has been done once, and all of it."""
    return bool(
        admin.value("SELECT archived_at IS NULL FROM task WHERE id = $1", TASK)
        and admin.value("SELECT count(*) FROM audit_event WHERE entity_id = $1", TASK) == 1
        and admin.value("SELECT count(*) FROM notification WHERE type = 'record.restored'") == 1
    )


# --- The server is away


@pytest.mark.long
def test_the_server_stops_and_returns(cluster: Cluster, url: str) -> None:
    with application(url) as client:
        crowd = [partial(client.get, path) for path in LISTS * 4]
        assert set(at_once(crowd)) == {200}  # the pool is full of connections from here on
        cluster.stop()
        try:
            client.is_lost()
            assert set(at_once(crowd)) == {503}
        finally:
            cluster.start()
        assert set(at_once(crowd)) == {200}
        client.is_served()
        assert client.restore().status_code == 200
    with session(url) as admin:
        assert whole(admin)


def test_a_restart_between_requests_costs_nobody_an_answer(cluster: Cluster, url: str) -> None:
    with application(url) as client:
        crowd = [partial(client.get, path) for path in (*LISTS, *LISTS, "/readyz")]
        for _ in range(2):
            assert set(at_once(crowd)) == {200}
            cluster.stop()
            cluster.start()
        assert client.restore().status_code == 200
        assert set(at_once(crowd)) == {200}


def test_the_application_starts_without_a_database(cluster: Cluster, url: str) -> None:
    token = new_token(url)
    cluster.stop()
    try:
        with started(url, token) as client:
            client.is_lost()
            cluster.start()
            client.is_served()
            assert client.restore().status_code == 200
    finally:
        cluster.start()


def test_the_served_processes_outlive_the_database(cluster: Cluster, url: str, tmp_path: Path) -> None:
    """None of them ends or is replaced, and the log tells the reason, which no client is told."""
    token, log = new_token(url), tmp_path / "log"
    with serving(url, workers=2, log=log) as base, httpx2.Client(base_url=base, timeout=30, verify=PLAIN) as connected:
        client = Client(connected, token)
        client.is_served()
        cluster.stop()
        try:
            for _ in range(3):
                client.is_lost()
        finally:
            cluster.start()
        for _ in range(10):
            client.is_served()
        assert client.restore().status_code == 200
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines() if line.startswith("{")]
    events = {line["event"] for line in lines}
    assert events >= {"serving", "request", "database_unavailable"}
    assert not events & {"worker_died", "worker_replaced", "internal_error", "last_use_not_stored"}
    reasons = {line["request_id"]: line["reason"] for line in lines if line["event"] == "database_unavailable"}
    answered = {line["request_id"] for line in lines if line.get("problem") == "unavailable"}
    assert reasons.keys() == answered
    assert all(reasons.values())


def test_the_database_is_removed(cluster: Cluster, url: str) -> None:
    with application(url) as client:
        client.is_served()
        cluster.server.drop(url.partition("?")[0].rpartition("/")[2])
        client.is_lost()


# --- The server is there, and does not answer


def test_the_server_freezes_and_thaws(cluster: Cluster, url: str) -> None:
    with application(url, database_timeout=1, database_pool_size=2) as client:
        assert client.get(LISTS[0]).status_code == 200
        cluster.freeze()
        try:
            for ask in (partial(client.get, LISTS[0]), client.restore, partial(client.get, "/readyz")):
                with in_time(8):
                    is_unavailable(ask())
            assert client.get("/livez").status_code == 200
        finally:
            cluster.thaw()
        client.is_served()
        with session(url) as admin:
            assert untouched(admin)
        assert client.restore().status_code == 200


# --- Locks


@contextmanager
def held(blocker: Session, what: str) -> Iterator[None]:
    """A lock on the task (the restore's first statement waits), or on what a later one of its statements needs."""
    statements = {
        "record": f"SELECT FROM task WHERE id = '{TASK}' FOR UPDATE",
        "organization": f"SELECT FROM organization WHERE id = '{ALPHA}' FOR UPDATE",  # the audit event refers to it
        "user": "SELECT FROM user_account WHERE id = 'user-owner' FOR UPDATE",  # the notification refers to it
    }
    blocker.run("BEGIN", statements[what])
    try:
        yield
    finally:
        blocker.run("ROLLBACK")


@pytest.mark.parametrize("what", ["record", "organization", "user"])
def test_a_connection_dies_in_the_middle_of_a_restore(url: str, admin: Session, blocker: Session, what: str) -> None:
    """Record, audit event and notification are there together or not at all."""
    with application(url, database_timeout=30) as client:
        with held(blocker, what), meanwhile(client.restore) as answer:
            wait_until(admin.waiting)
            (pid,) = admin.waiting()
            assert admin.value("SELECT pg_terminate_backend($1, 10000)", pid) is True
            is_unavailable(answer.result(20))
            assert untouched(admin)
        assert untouched(admin)
        assert client.restore().status_code == 200
        assert whole(admin)


@pytest.mark.parametrize("what", ["record", "user"])
def test_a_restore_that_hangs_is_given_up(url: str, admin: Session, blocker: Session, what: str) -> None:
    with application(url, database_timeout=1) as client:
        assert client.get("/readyz").status_code == 200
        with held(blocker, what):
            with in_time(4, least=0.9):
                is_unavailable(client.restore())
            assert not admin.waiting()
            client.is_served()
        assert untouched(admin)
        assert client.restore().status_code == 200
        assert whole(admin)


def test_a_list_that_hangs_is_given_up(url: str, blocker: Session) -> None:
    with application(url, database_timeout=1) as client:
        blocker.run("BEGIN", "LOCK TABLE control IN ACCESS EXCLUSIVE MODE")
        with in_time(4, least=0.9):
            is_unavailable(client.get(LISTS[0]))
        assert client.get(LISTS[2]).status_code == 200
        blocker.run("ROLLBACK")
        assert client.get(LISTS[0]).status_code == 200


def test_a_token_lookup_that_hangs_is_given_up(url: str, blocker: Session) -> None:
    """It goes past the pool, on a connection of its own, and all who wait for it are told at once."""
    with application(url, database_timeout=1) as client:
        client.is_served()
        blocker.run("BEGIN", "LOCK TABLE access_token IN ACCESS EXCLUSIVE MODE")
        with in_time(6, least=0.9):
            assert set(at_once([partial(client.get, LISTS[0])] * 8)) == {503}
        assert client.get("/readyz").status_code == 200
        blocker.run("ROLLBACK")
        client.is_served()


def test_a_crowd_behind_a_lock_is_answered_in_bounded_time(url: str, admin: Session, blocker: Session) -> None:
    with application(url, database_timeout=1, database_pool_size=1) as client:
        with held(blocker, "record"), in_time(6):  # two waits for the pool and one for the lock, with room
            assert set(at_once([client.restore] * 8)) == {503}
        assert untouched(admin)
        assert sorted(at_once([client.restore] * 4)) == [200, 409, 409, 409]
        assert whole(admin)


# --- The server takes no writes


def test_a_read_only_database_still_lists(url: str, admin: Session) -> None:
    token, name = new_token(url), admin.value("SELECT current_database()")
    admin.run(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with started(url, token) as client:
        assert [client.get(path).status_code for path in LISTS] == [200] * len(LISTS)
        is_unavailable(client.restore())
        is_unavailable(client.get("/readyz"))
        assert [client.get(path).status_code for path in LISTS] == [200] * len(LISTS)
    assert untouched(admin)


def test_a_failover_that_is_under_way(cluster: Cluster, url: str) -> None:
    """All that the URL names are standbys, until one of them is promoted."""
    with started(url, new_token(url)) as client:
        client.is_served()
        with cluster.demoted():
            client.is_lost()
        client.is_served()
        assert client.restore().status_code == 200
    with session(url) as admin:
        assert whole(admin)
