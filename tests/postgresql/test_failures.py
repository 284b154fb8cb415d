"""The database fails in every way that it can: the client gets 503, nothing is half done, and service resumes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from httpx2 import Response
from sqlalchemy import Connection, select
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.testclient import TestClient

from normata.app import create_app
from normata.database import Database, Script, Unavailable
from normata.errors import NotFound
from normata.identity.model import Organization
from normata.identity.tokens import generate
from normata.records.kinds import Task
from normata.settings import Settings
from tests.databases import build
from tests.postgresql.conftest import Cluster, Service, Session, new_token, own_cluster, session, wait_until
from tests.server import serving
from tests.world import ALPHA, record_id

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
    """A client of the shipped application, as alpha's editor."""

    def __init__(self, client: TestClient, token: str) -> None:
        self.client = client
        self._headers = {"Authorization": f"Bearer {token}"}

    @property
    def database(self) -> Database:
        """The application's own database."""
        database: Database = self.client.app.state.database  # type: ignore[attr-defined]
        return database

    def get(self, path: str) -> Response:
        return self.client.get(path, headers=self._headers)

    def restore(self, path: str = RESTORE) -> Response:
        return self.client.post(path, headers=self._headers)

    def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run a coroutine function in the application's event loop."""
        assert self.client.portal is not None
        return self.client.portal.call(work, *arguments)


@contextmanager
def application(url: str, token: str, **settings: Any) -> Iterator[Client]:
    """The shipped application over a database."""
    app = create_app(Settings.model_validate({"database_url": url, "log_level": "error"} | settings))
    with TestClient(app) as client:
        yield Client(client, token)


def is_unavailable(answer: Response) -> bool:
    """Whether an answer is the problem of a database that cannot be reached."""
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) >= 1
    body = answer.json()
    assert (body["code"], body["status"], body["requestId"]) == ("unavailable", 503, answer.headers["x-request-id"])
    return True


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


def untouched(admin: Session) -> bool:
    """Whether no trace of a restore of the task is there."""
    return bool(
        admin.value("SELECT archived_at IS NOT NULL FROM task WHERE id = $1", TASK)
        and admin.value("SELECT count(*) FROM audit_event") == 0
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


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_the_server_stops_and_returns(cluster: Cluster, url: str, mode: str) -> None:
    with application(url, new_token(url), database_timeout=5) as client:
        everything = [partial(client.get, path) for path in LISTS * 4]
        assert set(at_once(everything)) == {200}  # the pool is full of connections from here on
        cluster.stop(mode)
        try:
            for path in LISTS:
                assert is_unavailable(client.get(path))
            assert is_unavailable(client.restore())
            assert is_unavailable(client.get("/readyz"))
            assert client.get("/livez").status_code == 200
            assert set(at_once(everything)) == {503}
        finally:
            cluster.start()
        assert set(at_once(everything)) == {200}
        assert client.get("/readyz").status_code == 200
        assert client.restore().status_code == 200
    with session(url) as admin:
        assert whole(admin)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_between_requests_costs_nobody_an_answer(cluster: Cluster, url: str, mode: str) -> None:
    with application(url, new_token(url), database_timeout=5) as client:
        everything = [partial(client.get, path) for path in LISTS * 4]
        for _ in range(2):
            assert set(at_once(everything)) == {200}
            cluster.stop(mode)
            cluster.start()
            assert set(at_once([*everything[:5], partial(client.get, "/readyz")])) == {200}
        cluster.stop(mode)
        cluster.start()
        assert client.restore().status_code == 200


def test_a_read_after_a_restart_is_still_one_snapshot_that_cannot_write(cluster: Cluster, url: str) -> None:
    def characteristics(connection: Connection) -> tuple[str, str, str]:
        row = connection.exec_driver_sql(
            "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only'), current_user"
        ).one()
        return str(row[0]), str(row[1]), str(row[2])

    with application(url, new_token(url), database_pool_size=1) as client:
        for _ in range(2):
            for _ in range(2):
                found = client.call(client.database.read, characteristics)
                assert found == ("repeatable read", "on", "normata_service")
                found = client.call(client.database.write, characteristics)
                assert found == ("read committed", "off", "normata_service")
            cluster.stop()
            cluster.start()


def test_the_served_process_outlives_the_database(cluster: Cluster, url: str, tmp_path: Path) -> None:
    import httpx2

    headers = {"Authorization": f"Bearer {new_token(url)}"}
    with (
        serving(url, workers=2, log=tmp_path / "log") as base,
        httpx2.Client(base_url=base, headers=headers, timeout=30) as client,
    ):
        assert client.get(LISTS[0]).status_code == 200
        cluster.stop()
        try:
            assert is_unavailable(client.get(LISTS[0]))
            assert is_unavailable(client.post(RESTORE))
            assert is_unavailable(client.get("/readyz"))
            assert client.get("/livez").status_code == 200
        finally:
            cluster.start()
        for _ in range(20):
            for path in (*LISTS, "/readyz"):
                assert client.get(path).status_code == 200
        assert client.post(RESTORE).status_code == 200


def test_the_application_starts_without_a_database(cluster: Cluster, url: str) -> None:
    token = new_token(url)
    cluster.stop()
    try:
        with application(url, token) as client:
            assert is_unavailable(client.get("/readyz"))
            assert is_unavailable(client.get(LISTS[0]))
            assert client.get("/livez").status_code == 200
            cluster.start()
            assert client.get("/readyz").status_code == 200
            assert client.restore().status_code == 200
    finally:
        cluster.start()


# --- The server is there, and does not answer


def test_the_server_freezes_and_thaws(cluster: Cluster, url: str) -> None:
    with application(url, new_token(url), database_timeout=1, database_pool_size=2) as client:
        assert client.get(LISTS[0]).status_code == 200
        cluster.freeze()
        try:
            for ask in (partial(client.get, LISTS[0]), client.restore, partial(client.get, "/readyz")):
                started = time.monotonic()
                assert is_unavailable(ask())
                assert time.monotonic() - started < 8
            assert client.get("/livez").status_code == 200
        finally:
            cluster.thaw()
        for path in LISTS * 4:
            assert client.get(path).status_code == 200
        with session(url) as admin:
            assert untouched(admin)
        assert client.restore().status_code == 200


@pytest.mark.parametrize("how", ["restore", "list"])
def test_after_one_has_waited_in_vain_no_other_does(url: str, admin: Session, how: str) -> None:
    """As after the loss of a machine: the pool's connections lead nowhere, and new ones to who has taken over."""
    with application(url, new_token(url), database_timeout=0.5, database_pool_size=4) as client:
        with ThreadPoolExecutor(8) as threads:
            assert {answer.status_code for answer in threads.map(client.get, LISTS * 8)} == {200}
        ask = client.restore if how == "restore" else partial(client.get, "/readyz")
        found = admin.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'normata' AND datname ="
                           " current_database()")  # fmt: skip
        assert len(found) > 2
        for (pid,) in found:
            os.kill(pid, signal.SIGSTOP)
        try:
            statuses = [ask().status_code for _ in range(4)]
            assert statuses.count(503) <= 2, "one to the desk that tells who asks, and one to the pool"
            assert statuses[-1] in (200, 409)
        finally:
            for (pid,) in found:
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("how", ["perform", "read", "write"])
def test_a_server_that_freezes_before_a_rollback_keeps_nobody_waiting(cluster: Cluster, url: str, how: str) -> None:
    """A refusal is the end of a transaction, too, and its ROLLBACK may be what is never answered."""
    service = Service(url, timeout=0.5)

    def freeze() -> None:
        with ThreadPoolExecutor(1) as thread:  # it has an event loop of its own
            thread.submit(cluster.freeze).result()

    def script() -> Script[None]:
        yield select(Organization.id), {}
        freeze()
        raise NotFound

    def work(connection: Connection) -> None:
        connection.execute(select(Organization.id))
        freeze()
        raise NotFound

    try:
        asked = service.database.perform(script) if how == "perform" else getattr(service.database, how)(work)
        started = time.monotonic()
        with pytest.raises((NotFound, Unavailable)):
            service.run(asyncio.wait_for(asked, 20))
        assert time.monotonic() - started < 10
    finally:
        cluster.thaw()
    assert service.run(service.database.read(lambda connection: connection.scalar(select(1)))) == 1
    service.close()


class Listener:
    """Something that listens where a server should: ``silent``, ``closing`` every connection, or no PostgreSQL."""

    def __init__(self, manner: str) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        self._manner = manner
        self._thread = threading.Thread(target=self._answer)
        if manner != "silent":  # the system itself accepts connections that nobody takes
            self._thread.start()

    def _answer(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                if self._manner == "talking":
                    connection.recv(1024)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    def close(self) -> None:
        """Listen no longer."""
        if self._manner != "silent":
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
            self._thread.join(10)
        self._socket.close()


@pytest.mark.parametrize("manner", ["silent", "closing", "talking"])
@pytest.mark.parametrize("options", ["", "?sslmode=disable"])
def test_something_that_is_no_server(manner: str, options: str) -> None:
    listener = Listener(manner)
    url = f"postgresql://nobody:nothing@127.0.0.1:{listener.port}/normata{options}"
    try:
        with application(url, generate(), database_timeout=1, database_pool_size=2) as client:
            started = time.monotonic()
            assert is_unavailable(client.get("/readyz"))
            assert is_unavailable(client.get(LISTS[0]))
            assert is_unavailable(client.restore())
            assert set(at_once([partial(client.get, LISTS[0])] * 6)) == {503}
            assert time.monotonic() - started < 15
            assert client.get("/livez").status_code == 200
    finally:
        listener.close()


def test_a_name_that_is_nobodys() -> None:
    with application("postgresql://u:p@database.invalid/normata", generate(), database_timeout=2) as client:
        assert is_unavailable(client.get("/readyz"))
        assert is_unavailable(client.get(LISTS[0]))


# --- Locks


@contextmanager
def held(blocker: Session, what: str) -> Iterator[None]:
    """A lock on the task (the restore's first statement waits), or on what a later one of its statements needs."""
    statements = {
        "record": f"SELECT FROM task WHERE id = '{TASK}' FOR UPDATE",
        "organization": f"SELECT FROM organization WHERE id = '{ALPHA}' FOR UPDATE",  # the audit event refers to it
        "user": "SELECT FROM user_account WHERE id = 'user-owner' FOR UPDATE",  # the notification refers to it
        "table": "LOCK TABLE task IN ACCESS EXCLUSIVE MODE",
    }
    blocker.run("BEGIN", statements[what])
    try:
        yield
    finally:
        blocker.run("ROLLBACK")


@pytest.mark.parametrize("what", ["record", "organization", "user"])
def test_a_connection_dies_in_the_middle_of_a_restore(url: str, admin: Session, blocker: Session, what: str) -> None:
    with application(url, new_token(url), database_timeout=30) as client:
        with held(blocker, what), meanwhile(client.restore) as answer:
            wait_until(admin.waiting)
            (pid,) = admin.waiting()
            assert admin.value("SELECT pg_terminate_backend($1, 10000)", pid) is True
            assert is_unavailable(answer.result(20))
            assert untouched(admin)
        assert untouched(admin)
        assert client.restore().status_code == 200
        assert whole(admin)


@pytest.mark.parametrize("what", ["record", "organization", "user", "table"])
def test_a_statement_that_hangs_is_given_up(url: str, admin: Session, blocker: Session, what: str) -> None:
    with application(url, new_token(url), database_timeout=1) as client:
        assert client.get("/readyz").status_code == 200
        with held(blocker, what):
            started = time.monotonic()
            assert is_unavailable(client.restore())
            assert 0.9 < time.monotonic() - started < 4
            assert not admin.waiting()
            assert client.get(LISTS[0]).status_code == 200
        assert untouched(admin)
        assert client.restore().status_code == 200
        assert whole(admin)


def test_a_list_that_hangs_is_given_up(url: str, blocker: Session) -> None:
    with application(url, new_token(url), database_timeout=1) as client:
        blocker.run("BEGIN", "LOCK TABLE control IN ACCESS EXCLUSIVE MODE")
        started = time.monotonic()
        assert is_unavailable(client.get(LISTS[0]))
        assert 0.9 < time.monotonic() - started < 4
        assert client.get(LISTS[2]).status_code == 200
        blocker.run("ROLLBACK")
        assert client.get(LISTS[0]).status_code == 200


_IN_TRANSACTION = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
)


def test_the_pool_is_exhausted(url: str, admin: Session) -> None:
    with application(url, new_token(url), database_timeout=1, database_pool_size=2) as client:
        assert client.get("/readyz").status_code == 200
        engine = AsyncEngine(client.database.engine)
        free = asyncio.Event()

        async def occupy() -> None:
            async with engine.connect() as first, engine.connect() as second:
                for connection in (first, second):  # connections with a transaction open, as work has them
                    await connection.exec_driver_sql("SELECT 1")
                await free.wait()

        async def release() -> None:
            free.set()

        assert client.client.portal is not None
        occupied = client.client.portal.start_task_soon(occupy)
        wait_until(lambda: admin.value(_IN_TRANSACTION) == 2)
        for ask in (partial(client.get, LISTS[0]), client.restore, partial(client.get, "/readyz")):
            started = time.monotonic()
            assert is_unavailable(ask())
            assert 0.9 < time.monotonic() - started < 3
        started = time.monotonic()
        assert set(at_once([partial(client.get, LISTS[0])] * 8)) == {503}
        assert time.monotonic() - started < 4
        assert client.get("/livez").status_code == 200
        assert untouched(admin)
        client.call(release)
        occupied.result(10)
        assert set(at_once([partial(client.get, LISTS[0])] * 8)) == {200}
        assert client.restore().status_code == 200
        assert whole(admin)


def test_a_crowd_behind_a_lock_is_answered_in_bounded_time(url: str, admin: Session, blocker: Session) -> None:
    with application(url, new_token(url), database_timeout=1, database_pool_size=1) as client:
        with held(blocker, "record"):
            started = time.monotonic()
            assert set(at_once([client.restore] * 8)) == {503}
            assert time.monotonic() - started < 6  # two waits for the pool and one for the lock, with room
        assert untouched(admin)
        assert sorted(at_once([client.restore] * 4)) == [200, 409, 409, 409]
        assert whole(admin)


# --- Transactions that the server gives up


def test_a_deadlock_costs_a_503_and_nothing_else(url: str, admin: Session, blocker: Session) -> None:
    # Whoever has waited for a second looks for deadlocks: that is the service, since the other one never does.
    admin.run(f"ALTER DATABASE \"{admin.value('SELECT current_database()')}\" SET deadlock_timeout = '1s'")
    with application(url, new_token(url), database_timeout=30) as client:
        blocker.run("SET deadlock_timeout = '10min'", "BEGIN")
        blocker.run(f"SELECT FROM organization WHERE id = '{ALPHA}' FOR UPDATE")
        with meanwhile(client.restore) as answer:
            wait_until(admin.waiting)
            blocker.run(f"UPDATE task SET title = title WHERE id = '{TASK}'")  # which the service has changed
            assert is_unavailable(answer.result(20))
        blocker.run("COMMIT")
        assert untouched(admin)
        assert client.restore().status_code == 200
        assert whole(admin)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_serialization_failure_is_never_an_internal_error(
    url: str, admin: Session, blocker: Session, isolation: str
) -> None:
    name = admin.value("SELECT current_database()")
    admin.run(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = '{isolation}'")
    with application(url, new_token(url), database_timeout=30) as client:
        blocker.run("BEGIN", f"UPDATE task SET title = 'changed' WHERE id = '{TASK}'")
        with meanwhile(client.restore) as answer:
            wait_until(admin.waiting)
            blocker.run("COMMIT")
            status = answer.result(20).status_code
        assert status in (200, 503)
        assert whole(admin) if status == 200 else untouched(admin)
        statuses = at_once([client.restore] * 6)
        assert statuses.count(200) == (0 if status == 200 else 1)
        assert set(statuses) <= {200, 409, 503}
        assert whole(admin)


# --- The server takes no writes, or no connections


def test_a_read_only_database_still_lists(url: str, admin: Session) -> None:
    token = new_token(url)
    admin.run(f'ALTER DATABASE "{admin.value("SELECT current_database()")}" SET default_transaction_read_only = on')
    with application(url, token) as client:
        for path in (*LISTS, "/readyz"):
            assert client.get(path).status_code == 200
        assert is_unavailable(client.restore())
        assert client.get(LISTS[0]).status_code == 200
    assert untouched(admin)


def test_no_host_that_takes_writes(url: str, admin: Session) -> None:
    """All that the URL names are standbys: what it looks like while a failover is under way."""
    token, name = new_token(url), admin.value("SELECT current_database()")
    admin.run(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with application(f"{url}&target_session_attrs=read-write", token) as client:
        assert is_unavailable(client.get(LISTS[0]))
        assert is_unavailable(client.restore())
        assert is_unavailable(client.get("/readyz"))
        admin.run("SET default_transaction_read_only = off", f'ALTER DATABASE "{name}" RESET ALL')
        assert client.get(LISTS[0]).status_code == 200
        assert client.restore().status_code == 200


def test_the_server_takes_no_connections(cluster: Cluster, url: str) -> None:
    token, name = new_token(url), url.partition("?")[0].rpartition("/")[2]
    cluster.server.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    with ExitStack() as stack:
        stack.callback(cluster.server.run, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        with application(url, token) as client:
            assert is_unavailable(client.get(LISTS[0]))
            assert is_unavailable(client.get("/readyz"))
            stack.close()
            assert client.get(LISTS[0]).status_code == 200


def test_the_database_is_gone(cluster: Cluster, url: str) -> None:
    token, name = new_token(url), url.partition("?")[0].rpartition("/")[2]
    with application(url, token) as client:
        assert client.get(LISTS[0]).status_code == 200
        cluster.server.drop(name)
        assert is_unavailable(client.get(LISTS[0]))
        assert is_unavailable(client.restore())
        assert is_unavailable(client.get("/readyz"))
