"""Transactions that cannot go on: nothing of them is kept, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest
from sqlalchemy import select

from normata.errors import Unavailable
from tests.core.db.calls import Call, crowd, is_unavailable, reads, untouched, writes
from tests.core.db.example import ALPHA, IN_ALPHA, organization
from tests.core.db.sessions import Service, Session, session, wait_until


@pytest.fixture
def blocker(postgres_url: str) -> Iterator[Session]:
    """A session that holds locks."""
    with session(postgres_url) as holding:
        yield holding


# --- Locks


@contextmanager
def held(blocker: Session, what: str) -> Iterator[None]:
    """A lock on what a statement of the change needs, or its commit, or on all of the table."""
    statements = {
        "statement": "SELECT FROM label WHERE id = 'label-alpha' FOR UPDATE",
        "commit": f"SELECT FROM organization WHERE id = '{ALPHA}' FOR UPDATE",  # the new framework refers to it
        "table": "LOCK TABLE label IN ACCESS EXCLUSIVE MODE",
    }
    blocker.run("BEGIN", statements[what])
    try:
        yield
    finally:
        blocker.run("ROLLBACK")


@contextmanager
def meanwhile(url: str, call: Call, **settings: Any) -> Iterator[Future[Any]]:
    """A call on its way while the block runs, in a thread with a service of its own."""

    def act() -> Any:
        with closing(Service(url, **settings)) as service:
            return call(service)

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(act)


@pytest.mark.parametrize("what", ["statement", "commit"])
def test_a_connection_dies_in_the_middle_of_a_change(
    postgres_url: str, admin: Session, blocker: Session, what: str
) -> None:
    with held(blocker, what), meanwhile(postgres_url, writes, timeout=30) as answer:
        wait_until(admin.waiting)
        (pid,) = admin.waiting()
        assert admin.value("SELECT pg_terminate_backend($1, 10000)", pid) is True
        with pytest.raises(Unavailable):
            answer.result(20)
        assert untouched(admin)


@pytest.mark.parametrize("what", ["statement", "commit", "table"])
def test_a_statement_that_hangs_is_given_up(postgres_url: str, admin: Session, blocker: Session, what: str) -> None:
    with closing(Service(postgres_url, timeout=1)) as service:
        assert reads(service) == 1
        with held(blocker, what):
            started = time.monotonic()
            is_unavailable(service, [writes] if what != "table" else [writes, reads], 4)
            assert time.monotonic() - started > 0.9
            assert not admin.waiting()
        assert untouched(admin)
        assert writes(service) == "label-alpha"


def test_the_pool_is_exhausted(postgres_url: str, admin: Session) -> None:
    with closing(Service(postgres_url, timeout=1, pool_size=2)) as service:

        async def exhausted() -> None:
            free = asyncio.Event()

            async def occupy() -> None:
                async with service.database._pool.lease():  # type: ignore[attr-defined]
                    await free.wait()

            holding = [asyncio.create_task(occupy()) for _ in range(2)]
            await asyncio.sleep(0.2)
            started = time.monotonic()
            outcomes = await crowd(service, 8)
            assert [str(outcome) for outcome in outcomes] == ["all connections are in use"] * 8
            assert 0.9 < time.monotonic() - started < 4
            free.set()
            await asyncio.gather(*holding)

        service.run(exhausted())
        assert service.run(crowd(service, 8)) == [1] * 8
        assert untouched(admin)


# --- Transactions that the server gives up


def test_a_deadlock_is_unavailable_and_nothing_else(postgres_url: str, admin: Session, blocker: Session) -> None:
    # Whoever has waited for a second looks for deadlocks: that is the service, since the other one never does.
    admin.run(f"ALTER DATABASE \"{admin.value('SELECT current_database()')}\" SET deadlock_timeout = '1s'")
    blocker.run("SET deadlock_timeout = '10min'", "BEGIN", f"SELECT FROM organization WHERE id = '{ALPHA}' FOR UPDATE")
    with meanwhile(postgres_url, writes, timeout=30) as answer:
        wait_until(admin.waiting)
        blocker.run("UPDATE label SET slug = slug WHERE id = 'label-alpha'")  # which the service has changed
        with pytest.raises(Unavailable, match="deadlock"):
            answer.result(20)
    blocker.run("COMMIT")
    assert untouched(admin)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_serialization_failure_is_unavailable(
    postgres_url: str, admin: Session, blocker: Session, isolation: str
) -> None:
    name = admin.value("SELECT current_database()")
    admin.run(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = '{isolation}'")
    blocker.run("BEGIN", "UPDATE label SET name = 'changed' WHERE id = 'label-alpha'")
    with meanwhile(postgres_url, writes, timeout=30) as answer:
        wait_until(admin.waiting)
        blocker.run("COMMIT")
        with pytest.raises(Unavailable):
            answer.result(20)
    assert admin.value("SELECT count(*) FROM framework WHERE id = 'new'") == 0


def test_a_schema_that_changes_meanwhile_costs_no_more_than_asking_again(postgres_url: str, admin: Session) -> None:
    """Asyncpg keeps statements prepared, and the server refuses one whose columns have changed since."""
    names = select(organization)
    with closing(Service(postgres_url)) as service:
        before = service.read(lambda transaction: transaction.rows(names), IN_ALPHA)
        admin.run("ALTER TABLE organization ALTER name TYPE varchar(400)", "ALTER TABLE organization ADD other text")
        for _ in range(2):
            try:
                assert service.read(lambda transaction: transaction.rows(names), IN_ALPHA) == before
            except Unavailable:
                continue
        assert service.read(lambda transaction: transaction.rows(names), IN_ALPHA) == before
