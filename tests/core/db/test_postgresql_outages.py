"""The server is away, hangs or refuses: Unavailable is raised in time, nothing is half done, and service resumes."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from uuid import uuid4

import pytest

from normata.core.db.transaction import ConstraintViolation, Transaction
from normata.errors import NotFound, Unavailable
from tests.core.db.calls import ANSWER, CALLS, count, crowd, is_unavailable, looks_up, reads, untouched, writes
from tests.core.db.example import IN_ALPHA, adding, build
from tests.core.db.sessions import Cluster, Service, Session, own_cluster, run, scalar, session


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server that these tests may stop."""
    with own_cluster() as started:
        yield started


@pytest.fixture(scope="module")
def template(cluster: Cluster) -> str:
    """The name of a database of the cluster with the example in it."""
    build(cluster.server.create("example"))
    return "example"


@pytest.fixture
def url(cluster: Cluster, template: str) -> Iterator[str]:
    """The address of a fresh copy of the example."""
    name = f"normata_{uuid4().hex}"
    yield cluster.server.create(name, template=template)
    cluster.server.drop(name)


@pytest.fixture
def admin(url: str) -> Iterator[Session]:
    """A session that watches."""
    with session(url) as watching:
        yield watching


# --- The server is away


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_the_server_stops_and_returns(cluster: Cluster, url: str, mode: str) -> None:
    with closing(Service(url, pool_size=4)) as service:
        assert service.run(crowd(service, 12)) == [1] * 12  # the pool is full of connections from here on
        assert looks_up(service) == ANSWER
        cluster.stop(mode)
        try:
            is_unavailable(service, CALLS)
            assert {type(outcome) for outcome in service.run(crowd(service, 12))} == {Unavailable}
        finally:
            cluster.start()
        assert service.run(crowd(service, 12)) == [1] * 12
        assert (writes(service), looks_up(service)) == ("label-alpha", ANSWER)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_between_calls_costs_nobody_an_answer(cluster: Cluster, url: str, mode: str) -> None:
    def characteristics(transaction: Transaction) -> tuple[str, str, str]:
        settings = (
            "current_setting('transaction_isolation'), current_setting('transaction_read_only'), current_user::text"
        )
        return tuple(run(f"SELECT {settings}")(transaction)[0])

    with closing(Service(url, pool_size=4)) as service:
        for _ in range(2):
            assert service.run(crowd(service, 12)) == [1] * 12
            assert looks_up(service) == ANSWER
            cluster.stop(mode)
            cluster.start()
            assert service.run(crowd(service, 3)) == [1] * 3
            assert service.read(characteristics) == ("repeatable read", "on", "normata_service")
            assert service.write(characteristics) == ("read committed", "off", "normata_service")
            assert looks_up(service) == ANSWER
        cluster.stop(mode)
        cluster.start()
        assert writes(service) == "label-alpha"


def test_a_service_that_begins_without_a_server(cluster: Cluster, url: str) -> None:
    cluster.stop()
    with closing(Service(url)) as service:
        try:
            is_unavailable(service, CALLS)
        finally:
            cluster.start()
        assert (reads(service), writes(service), looks_up(service)) == (1, "label-alpha", ANSWER)


# --- The server is there, and does not answer


@pytest.mark.long
def test_the_server_freezes_and_thaws(cluster: Cluster, url: str) -> None:
    with closing(Service(url, timeout=1, pool_size=2)) as service:
        assert reads(service) == 1
        assert looks_up(service) == ANSWER
        cluster.freeze()
        try:
            is_unavailable(service, CALLS)
        finally:
            cluster.thaw()
        assert (reads(service), looks_up(service)) == (1, ANSWER)
        with session(url) as admin:
            assert untouched(admin)
        assert writes(service) == "label-alpha"


@pytest.mark.parametrize("how", ["read", "write"])
def test_a_server_that_freezes_before_a_rollback_keeps_nobody_waiting(cluster: Cluster, url: str, how: str) -> None:
    """A refusal is the end of a transaction, too, and its ROLLBACK may be what is never answered."""

    def work(transaction: Transaction) -> None:
        count(transaction)
        with ThreadPoolExecutor(1) as thread:  # it has an event loop of its own
            thread.submit(cluster.freeze).result()
        raise NotFound

    with closing(Service(url, timeout=0.5)) as service:
        try:
            started = time.monotonic()
            with pytest.raises(NotFound):
                service.run(asyncio.wait_for(getattr(service.database, how)(work), 20))
            assert time.monotonic() - started < 10
        finally:
            cluster.thaw()
        assert reads(service) == 1


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


@pytest.mark.long
@pytest.mark.parametrize("manner", ["silent", "closing", "talking"])
@pytest.mark.parametrize("options", ["", "?sslmode=disable"])
def test_something_that_is_no_server(manner: str, options: str) -> None:
    with closing(Listener(manner)) as listener:
        address = f"postgresql://nobody:nothing@127.0.0.1:{listener.port}/normata{options}"
        with closing(Service(address, timeout=1, pool_size=2)) as service:
            is_unavailable(service, CALLS)
            assert {type(outcome) for outcome in service.run(crowd(service, 6))} == {Unavailable}


def test_a_name_that_is_nobodys() -> None:
    with closing(Service("postgresql://u:p@database.invalid/normata", timeout=2)) as service:
        is_unavailable(service, CALLS)


def test_of_several_hosts_the_one_that_answers_serves(url: str) -> None:
    """The first one's machine is gone: it takes its share of the time-out once, and is asked last from then on."""
    with session(url) as admin:
        socket_folder, port = admin.rows("SELECT current_setting('unix_socket_directories'), current_setting('port')")[
            0
        ]
    name = url.partition("?")[0].rpartition("/")[2]
    with closing(Listener("silent")) as listener:
        address = f"postgresql://postgres@127.0.0.1:{listener.port},{socket_folder.replace('/', '%2F')}:{port}/{name}"
        with closing(Service(address, timeout=1, pool_size=2)) as service:
            assert reads(service) == 1
            started = time.monotonic()
            assert service.run(crowd(service, 4)) == [1] * 4
            assert looks_up(service) == ANSWER
            assert time.monotonic() - started < 0.5


# --- The server takes no writes, or no connections


def test_a_database_that_is_read_only_is_still_read(url: str, admin: Session) -> None:
    admin.run(f'ALTER DATABASE "{admin.value("SELECT current_database()")}" SET default_transaction_read_only = on')
    with closing(Service(url)) as service:
        is_unavailable(service, [writes])
        assert (reads(service), looks_up(service)) == (1, ANSWER)
    assert untouched(admin)


def test_a_database_that_is_read_only_for_a_while(url: str, admin: Session) -> None:
    """A session keeps the setting that it began with, so the connections from before are of no use for changes."""
    name = admin.value("SELECT current_database()")
    admin.run(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with closing(Service(f"{url}&target_session_attrs=read-write")) as service:
        is_unavailable(service, [writes])
        assert (reads(service), looks_up(service)) == (1, ANSWER)
        admin.run("SET default_transaction_read_only = off", f'ALTER DATABASE "{name}" RESET ALL')
        assert (reads(service), writes(service), looks_up(service)) == (1, "label-alpha", ANSWER)


def test_a_database_that_takes_no_connections_or_is_gone(cluster: Cluster, url: str) -> None:
    name = url.partition("?")[0].rpartition("/")[2]
    cluster.server.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    with closing(Service(url)) as service:
        is_unavailable(service, CALLS)
        cluster.server.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        assert (reads(service), looks_up(service)) == (1, ANSWER)
        with pytest.raises(ConstraintViolation):
            service.write(adding("one", "first"), IN_ALPHA)
        cluster.server.drop(name)
        is_unavailable(service, CALLS)


def test_a_login_that_is_refused_is_unavailable_and_says_why(url: str) -> None:
    wrong = url.replace("postgres:", "nobody:", 1).replace("postgres@", "nobody@", 1)
    with closing(Service(wrong)) as service, pytest.raises(Unavailable, match="nobody"):
        service.read(scalar("1"))
