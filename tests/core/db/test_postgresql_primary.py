"""Which server is believed: one that is known to be the primary, and only for as long as that is known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest

from normata.core.db.database import BadDatabaseUrl
from normata.core.db.postgresql.server_status import Hosts
from normata.errors import Unavailable
from normata.settings import Settings
from tests.core.db.calls import ANSWER, CALLS, count, is_unavailable, looks_up, reads, rename, untouched, writes
from tests.core.db.example import IN_ALPHA, WHO, build
from tests.core.db.forwarder import Forwarder
from tests.core.db.sessions import Cluster, Service, Session, own_cluster, session, wait_until

LEASE = 3.0  # seconds
# The service's sessions that wait for a standby; its heartbeat is no part of them.
_WAITERS = (
    "FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'normata' AND wait_event = 'SyncRep'"
)
_WAITING = f"SELECT count(*) {_WAITERS}"


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Cluster, Cluster]]:
    """Two servers, which do not know of each other."""
    with own_cluster() as first, own_cluster() as second:
        yield first, second


@pytest.fixture
def urls(clusters: tuple[Cluster, Cluster]) -> Iterator[tuple[str, str]]:
    """The address of the same database on each of them."""
    name = f"normata_{uuid4().hex}"
    made = tuple(cluster.server.create(name) for cluster in clusters)
    for url in made:
        build(url)
    yield made[0], made[1]
    for cluster in clusters:
        cluster.server.drop(name)


@pytest.fixture
def url(urls: tuple[str, str]) -> str:
    """The address of the first."""
    return urls[0]


@pytest.fixture
def forwarder(url: str) -> Iterator[Forwarder]:
    """A proxy that leads to the first."""
    with closing(Forwarder(url)) as forwarding:
        yield forwarding


@contextmanager
def silent_standby(cluster: Cluster) -> Iterator[None]:
    """A server that waits for a standby that never answers, at every commit."""
    cluster.server.run("ALTER SYSTEM SET synchronous_standby_names = 'gone'", "SELECT pg_reload_conf()")
    with session(cluster.server.url("postgres")) as admin:
        wait_until(lambda: admin.value("SHOW synchronous_standby_names") == "gone")
        try:
            yield
        finally:
            admin.run("SET synchronous_commit = local", "ALTER SYSTEM RESET synchronous_standby_names")
            admin.run("SELECT pg_reload_conf()")
            wait_until(lambda: admin.value("SHOW synchronous_standby_names") == "")


def ready(service: Service) -> None:
    service.run(service.database.require_ready())


# --- A primary that does not commit


@pytest.mark.long
def test_a_silent_standby_stops_changes_and_not_lists(clusters: tuple[Cluster, Cluster], url: str) -> None:
    with closing(Service(url, timeout=1, pool_size=4)) as service:
        ready(service)
        with silent_standby(clusters[0]):
            service.run(asyncio.sleep(LEASE))  # the last confirmation has run out
            for _ in range(3):
                is_unavailable(service, [writes], 5)
                with pytest.raises(Unavailable):
                    ready(service)
                assert (reads(service), looks_up(service)) == (1, ANSWER)
        assert writes(service) == "label-alpha"
        ready(service)


def test_statements_that_are_given_up_do_not_fill_the_server(clusters: tuple[Cluster, Cluster], url: str) -> None:
    """Their sessions wait for the standby, and would not notice by themselves that nobody waits for them any more."""

    async def many(service: Service) -> set[type]:
        calls = (service.database.write(rename, IN_ALPHA) for _ in range(30))
        return set(map(type, await asyncio.gather(*calls, return_exceptions=True)))

    with closing(Service(url, timeout=0.5, pool_size=3)) as service, session(url) as admin:
        ready(service)
        with silent_standby(clusters[0]):
            assert service.run(many(service)) == {Unavailable}
            assert len(admin.backends()) <= 3
            service.run(asyncio.sleep(1))
            assert admin.value(_WAITING) == 0
        assert reads(service) == 1


def test_a_commit_that_an_administrator_cancels_is_not_acknowledged(
    clusters: tuple[Cluster, Cluster], url: str
) -> None:
    """The server reports success, with a warning: the change is on the primary, and perhaps nowhere else."""

    async def cancelled(service: Service) -> object:
        change = asyncio.create_task(service.database.write(rename, IN_ALPHA))
        while not await asyncio.to_thread(_cancel, url):
            assert not change.done()
        return (await asyncio.gather(change, return_exceptions=True))[0]

    with closing(Service(url, timeout=10)) as service, session(url) as admin:
        ready(service)
        with silent_standby(clusters[0]):
            outcome = service.run(cancelled(service))
        assert isinstance(outcome, Unavailable)
        assert outcome.reason == "unconfirmed"
        assert not untouched(admin)


def _cancel(url: str) -> bool:
    with session(url) as admin:
        return bool(admin.value(f"SELECT bool_or(pg_cancel_backend(pid)) {_WAITERS}"))


# --- Another primary


def test_a_server_that_is_promoted_anew_is_found(clusters: tuple[Cluster, Cluster], url: str) -> None:
    with closing(Service(url, pool_size=2)) as service:
        assert (reads(service), looks_up(service)) == (1, ANSWER)
        with clusters[0].demoted():
            pass
        assert (reads(service), looks_up(service), writes(service)) == (1, ANSWER, "label-alpha")
        ready(service)


@contextmanager
def stale(clusters: tuple[Cluster, Cluster], urls: tuple[str, str]) -> Iterator[Session]:
    """The first server does not commit, and the second one knows of a revocation that the first one does not."""
    with session(urls[1]) as admin, silent_standby(clusters[0]):
        admin.run("UPDATE account SET secret = 'changed'")
        yield admin


def test_where_a_proxy_leads_elsewhere_nothing_stale_is_told(
    clusters: tuple[Cluster, Cluster], urls: tuple[str, str], forwarder: Forwarder
) -> None:
    """The server before lives on, and its connections stay: as a primary that nobody minds any more."""
    with closing(Service(forwarder.address(urls[0]), timeout=1, pool_size=2)) as service:
        ready(service)
        assert (reads(service), looks_up(service)) == (1, ANSWER)
        with stale(clusters, urls) as admin:
            forwarder.url = urls[1]
            service.run(asyncio.sleep(LEASE))
            assert looks_up(service) == []
            assert (reads(service), writes(service)) == (1, "label-alpha")
            assert not untouched(admin)


def test_where_nothing_leads_to_another_server_nothing_stale_is_told_either(
    clusters: tuple[Cluster, Cluster], urls: tuple[str, str], forwarder: Forwarder
) -> None:
    """A server that does not commit, behind a proxy that takes no more connections."""
    with closing(Service(forwarder.address(urls[0]), timeout=1, pool_size=2)) as service:
        ready(service)
        assert (reads(service), looks_up(service)) == (1, ANSWER)
        with stale(clusters, urls):
            forwarder.refuse()
            service.run(asyncio.sleep(LEASE))
            is_unavailable(service, CALLS)


def test_who_waits_for_a_server_that_is_replaced_goes_on_at_once(
    clusters: tuple[Cluster, Cluster], urls: tuple[str, str], forwarder: Forwarder
) -> None:
    """The server hangs, so an attempt to connect to it takes the whole time-out."""

    async def meanwhile(service: Service) -> object:
        service.database._pool.doubt()  # type: ignore[attr-defined]
        calls = (service.database.read(count, IN_ALPHA), service.database.look_up(WHO, "secret-alpha", None))
        asked = asyncio.gather(*calls)
        await asyncio.sleep(0.5)
        forwarder.url = urls[1]
        return await asked

    with closing(Service(forwarder.address(urls[0]), timeout=20, pool_size=2)) as service:
        ready(service)
        clusters[0].freeze()
        try:
            started = time.monotonic()
            assert service.run(meanwhile(service)) == [1, ANSWER]
            assert time.monotonic() - started < 10
        finally:
            clusters[0].thaw()


def test_a_server_of_an_older_timeline_is_not_believed(urls: tuple[str, str], forwarder: Forwarder) -> None:
    """A pooler has kept a connection to a server that was replaced: each transaction is told for whom it is."""
    with closing(Service(forwarder.address(urls[0]), pool_size=1)) as service:
        assert (reads(service), looks_up(service)) == (1, ANSWER)
        server = service.run(service.database._pool.heartbeat.confirmed())  # type: ignore[attr-defined]
        older = replace(server, timeline="00000009")

        async def as_if_it_were_older() -> None:
            heartbeat = service.database._pool.heartbeat  # type: ignore[attr-defined]
            heartbeat._server = older

        service.run(as_if_it_were_older())
        is_unavailable(service, CALLS)


def test_no_server_that_is_a_primary(clusters: tuple[Cluster, Cluster], url: str) -> None:
    """All that the URL names are standbys: what it looks like while a failover is under way."""
    with closing(Service(url)) as service:
        with clusters[0].demoted():
            is_unavailable(service, CALLS)
            with pytest.raises(Unavailable, match="no host of the database URL is a primary"):
                ready(service)
        assert (reads(service), writes(service), looks_up(service)) == (1, "label-alpha", ANSWER)


def test_hosts_of_different_clusters_are_not_taken_for_one(urls: tuple[str, str]) -> None:
    folders = [parse_qs(urlsplit(url).query)["host"][0] for url in urls]
    together = f"{urls[0].partition('?')[0]}?host={','.join(folders)}"
    with closing(Service(together)) as service, pytest.raises(Unavailable, match="different clusters"):
        ready(service)


# --- What the URL names


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("postgresql://u:p@one,two:6432/db", ["postgresql://u:p@one/db", "postgresql://u:p@two:6432/db"]),
        ("postgresql://u@one/db?target_session_attrs=read-write", ["postgresql://u@one/db"]),
        (
            "postgresql:///db?host=one,two&port=1",
            ["postgresql:/db?host=one&port=1", "postgresql:/db?host=two&port=1"],
        ),
        (
            "postgresql:///db?host=one,two&port=1,2",
            ["postgresql:/db?host=one&port=1", "postgresql:/db?host=two&port=2"],
        ),
        ("postgresql://u@/db?host=/run/it", ["postgresql://u@/db?host=%2Frun%2Fit"]),
    ],
)
def test_each_host_has_an_address(url: str, addresses: list[str]) -> None:
    assert Hosts(Settings(database_url=url), serving=True).addresses == addresses


def test_the_hosts_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "one,two")
    addresses = Hosts(Settings(database_url="postgresql:///db"), serving=True).addresses
    assert addresses == ["postgresql:/db?host=one", "postgresql:/db?host=two"]


@pytest.mark.parametrize("wanted", ["standby", "read-only", "prefer-standby"])
def test_a_url_that_asks_for_a_standby_is_refused(wanted: str) -> None:
    with pytest.raises(BadDatabaseUrl, match=wanted):
        Hosts(Settings(database_url=f"postgresql://u@one,two/db?target_session_attrs={wanted}"), serving=True)
