"""How a transaction of the service begins and ends on PostgreSQL, and what it is told, whatever that contains."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import ARRAY, Integer, String, bindparam, func, literal_column, select

from normata.core.db.database import Database
from normata.core.db.transaction import ConstraintViolation, TenantScope, Transaction
from normata.errors import Unavailable
from tests.core.db.example import ALPHA, BETA, IN_ALPHA, IN_BETA, adding, label, new_label, open_url
from tests.core.db.sessions import Service, Session, run, scalar, session, wait_until

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
HOSTILE = (
    "'; DROP TABLE label; --",
    "\\'; DROP TABLE label; --",
    '"},{"org-beta',
    '\\"},{\\"org-beta',
    "a,b",
    "{}",
    "NULL",
    "",
    " ",
    "\\",
    "\\\\'",
    "$1",
    "$$",
    "E'\\''",
    "\n\t\x01",
    "Ωδ≠🜚",
)


@pytest.fixture(params=["on", "off"])
def told(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[Service]:
    """The service, where backslashes in texts mean themselves and where they do not."""
    with session(postgres_url) as everything:
        name = everything.value("SELECT current_database()")
        everything.run(f'ALTER DATABASE "{name}" SET standard_conforming_strings = {request.param}')
    opened = Service(postgres_url)
    yield opened
    opened.close()


def _setting(name: str) -> Any:
    return func.current_setting(name).label(name.rpartition(".")[2])


def _organizations(name: str) -> Any:
    return literal_column(f"current_setting('normata.{name}')::text[]", ARRAY(String)).label(name)


_TOLD = select(
    literal_column("current_user::text", String).label("acts"),
    _organizations("readable"),
    _organizations("writable"),
    _setting("statement_timeout"),
    _setting("lock_timeout"),
    _setting("idle_in_transaction_session_timeout"),
    _setting("transaction_isolation"),
    _setting("transaction_read_only"),
)


def what_is_told(transaction: Transaction) -> dict[str, Any]:
    """What the transaction knows."""
    return dict(transaction.rows(_TOLD)[0]._asdict())


def test_it_is_told_who_acts_for_whom_and_how_long_anything_may_take(told: Service) -> None:
    expected = {
        "acts": "normata_service",
        "readable": [ALPHA, BETA],
        "writable": [BETA],
        "statement_timeout": "5s",
        "lock_timeout": "5s",
        "idle_in_transaction_session_timeout": "20s",
    }
    scope = TenantScope((ALPHA, BETA), (BETA,))
    writes = {"transaction_isolation": "read committed", "transaction_read_only": "off"}
    reads = {"transaction_isolation": "repeatable read", "transaction_read_only": "on"}
    for _ in range(2):
        assert told.write(what_is_told, scope) == expected | writes
        assert told.read(what_is_told, scope) == expected | reads


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(readable=st.lists(TEXTS), writable=st.lists(TEXTS))
def test_whatever_it_is_told_arrives_as_it_was(told: Service, readable: list[str], writable: list[str]) -> None:
    found = told.write(what_is_told, TenantScope(tuple(readable), tuple(writable)))
    assert (found["readable"], found["writable"]) == (readable, writable)


def test_nothing_that_it_is_told_is_taken_for_a_statement(told: Service) -> None:
    for text in HOSTILE:
        found = told.write(what_is_told, TenantScope((text, text), (text,)))
        assert (found["readable"], found["writable"]) == ([text, text], [text])


def test_the_command_line_is_told_nothing(postgres_url: str) -> None:
    with closing(open_url(postgres_url)) as database:
        for call in (database.read_now, database.write_now):
            assert call(scalar("current_setting('statement_timeout')")) == "0"
            assert call(scalar("current_setting('role')")) == "none"


# --- One connection, many transactions


_WHO = (
    "SELECT pg_backend_pid(), current_user::text, session_user::text, current_setting('role'),"
    " coalesce(current_setting('normata.readable', true), ''), coalesce(current_setting('normata.writable', true), ''),"
    " current_setting('statement_timeout'), current_setting('lock_timeout'),"
    " current_setting('idle_in_transaction_session_timeout')"
)


@pytest.mark.parametrize("fails", [False, True], ids=["committed", "failed"])
@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
def test_nothing_of_a_transaction_is_left_on_its_connection(service: Service, writes: bool, fails: bool) -> None:
    async def outside() -> tuple[Any, ...]:
        async with service.database._pool.lease() as lease:  # type: ignore[attr-defined]
            return tuple(await lease.connection.fetchrow(_WHO))

    inside: list[tuple[Any, ...]] = []

    def work(transaction: Transaction) -> None:
        inside.append(tuple(run(_WHO)(transaction)[0]))
        if fails:
            run("SELECT 1 / 0")(transaction)

    untouched = service.run(outside())
    call = service.write if writes else service.read
    scope = TenantScope((ALPHA, BETA), (ALPHA,))
    if fails:
        with pytest.raises(Exception, match="division by zero"):
            call(work, scope)
    else:
        call(work, scope)
    pid, session_user = untouched[0], untouched[2]
    role = "normata_service"
    settings_of_its_own = ('{"org-alpha","org-beta"}', '{"org-alpha"}', "5s", "5s", "20s")
    assert inside == [(pid, role, session_user, role, *settings_of_its_own)]
    assert service.run(outside()) == untouched
    assert untouched[1] == session_user != role
    assert untouched[3:6] == ("none", "", "")


@pytest.mark.parametrize("pool_size", [1, 3])
def test_organizations_that_share_connections_never_meet(postgres_url: str, pool_size: int) -> None:
    shared = Service(postgres_url, pool_size=pool_size, timeout=30)

    def seen(transaction: Transaction) -> set[str]:
        return set(transaction.scalars(select(label.c.organization_id)))

    async def ask() -> list[set[str]]:
        scopes = [(IN_ALPHA, IN_BETA, TenantScope())[number % 3] for number in range(60)]
        calls = [
            (shared.database.write if number % 2 else shared.database.read)(seen, scope)
            for number, scope in enumerate(scopes)
        ]
        return await asyncio.gather(*calls)

    try:
        assert shared.run(ask()) == [({ALPHA}, {BETA}, set())[number % 3] for number in range(60)]
    finally:
        shared.close()


def test_after_a_failure_the_connection_is_as_new(service: Service) -> None:
    pid = service.read(scalar("pg_backend_pid()"))
    for _ in range(3):
        with pytest.raises(ConstraintViolation):
            service.write(adding("one", "first"), IN_ALPHA)
        found = service.write(what_is_told)
        assert (found["readable"], found["writable"]) == ([], [])
    assert service.read(scalar("pg_backend_pid()")) == pid


def test_a_value_that_cannot_be_sent_is_a_fault_and_costs_no_connection(service: Service) -> None:
    pid = service.read(scalar("pg_backend_pid()"))
    wanted = select(label.c.id).where(label.c.order == bindparam("order", type_=Integer))
    with pytest.raises(Exception, match="invalid input") as caught:
        service.read(lambda transaction: transaction.rows(wanted, {"order": "many"}))
    assert not isinstance(caught.value, Unavailable)
    assert service.read(scalar("pg_backend_pid()")) == pid


@pytest.mark.parametrize("is_long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("rounds", range(8))
def test_a_transaction_that_is_cancelled_leaves_nothing(
    service: Service, admin: Session, rounds: int, is_long: bool
) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(service.database.write(adding("one"), IN_ALPHA, is_long=is_long))
        for _ in range(rounds):
            await asyncio.sleep(0.0005)
        task.cancel()
        await asyncio.wait({task})

    service.run(cancelled())
    wait_until(lambda: admin.value("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'") == 0)
    found = admin.value("SELECT count(*) FROM label WHERE id = 'one'")
    assert service.write(adding("two"), IN_ALPHA) == "two"
    assert admin.value("SELECT count(*) FROM label WHERE id = 'one'") == found


# --- Work that is long


@pytest.mark.parametrize("method", ["read", "write"])
def test_work_that_is_long_does_not_keep_the_event_loop(service: Service, method: str) -> None:
    goes_on = threading.Event()
    threads: list[threading.Thread] = []

    def work(transaction: Transaction) -> list[Any]:
        threads.append(threading.current_thread())
        found = transaction.rows(select(label.c.id))
        assert goes_on.wait(10), "the event loop does nothing else meanwhile"
        return [found, transaction.rows(select(label.c.id)), list(transaction.stream(select(label.c.id)))]

    async def ask() -> list[Any]:
        long = asyncio.create_task(getattr(service.database, method)(work, IN_ALPHA, is_long=True))
        expected = await service.database.read(lambda transaction: transaction.rows(select(label.c.id)), IN_ALPHA)
        goes_on.set()
        assert await long == [expected, expected, expected] != [[], [], []]
        return await service.database.read(lambda transaction: transaction.rows(select(label.c.id)), IN_ALPHA)

    assert service.run(ask())
    assert threads != [threading.main_thread()]


def test_what_fails_in_long_work_is_told_and_undone(service: Service) -> None:
    async def ask() -> None:
        with pytest.raises(ConstraintViolation):
            await service.database.write(adding("one", "first"), IN_ALPHA, is_long=True)
        with pytest.raises(ZeroDivisionError):
            await service.database.write(
                lambda transaction: [adding("one")(transaction), 1 // 0], IN_ALPHA, is_long=True
            )

    service.run(ask())
    assert service.write(adding("one"), IN_ALPHA) == "one", "it is not there yet"


# --- Locks that are asked for


@contextmanager
def both(url: str) -> Iterator[tuple[Database, Database]]:
    """The database twice, as two commands have it."""
    with closing(open_url(url)) as one, closing(open_url(url)) as two:
        yield one, two


def test_who_asks_for_the_same_lock_waits_and_who_asks_for_another_does_not(postgres_url: str) -> None:
    order: list[str] = []
    held, go_on = threading.Event(), threading.Event()

    def work(name: str, lock: str, database: Database) -> None:
        def locked(transaction: Transaction) -> None:
            transaction.lock(lock)
            order.append(name)
            if name == "first":
                held.set()
                assert go_on.wait(30)

        database.write_now(locked)

    with (
        closing(open_url(postgres_url)) as one,
        closing(open_url(postgres_url)) as two,
        ThreadPoolExecutor(2) as threads,
    ):
        first = threads.submit(work, "first", "load", one)
        assert held.wait(30)
        work("other", "something else", two)
        second = threads.submit(work, "second", "load", two)
        with session(postgres_url) as watching:
            wait_until(watching.waiting)
        assert order == ["first", "other"]
        go_on.set()
        first.result(30)
        second.result(30)
    assert order == ["first", "other", "second"]


def test_what_changes_the_schema_keeps_every_other_such_out_and_nobody_else(
    postgres_url: str, service: Service
) -> None:
    held, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def hold(_connection: Any) -> None:
        order.append("first")
        held.set()
        assert go_on.wait(30)

    with (
        closing(open_url(postgres_url)) as one,
        closing(open_url(postgres_url)) as two,
        ThreadPoolExecutor(2) as threads,
    ):
        first = threads.submit(one.alter_now, hold)
        assert held.wait(30)
        second = threads.submit(two.alter_now, lambda _: order.append("second"))
        with session(postgres_url) as watching:
            wait_until(watching.waiting)
        assert service.write(adding("meanwhile"), IN_ALPHA) == "meanwhile"
        assert order == ["first"]
        go_on.set()
        first.result(30)
        second.result(30)
    assert order == ["first", "second"]


def test_what_changes_the_schema_waits_for_tables_only_as_long_as_those_behind_it_can_bear(
    postgres_url: str, admin: Session
) -> None:
    with closing(open_url(postgres_url)) as database:
        found = database.alter_now(lambda connection: connection.exec_driver_sql("SHOW lock_timeout").scalar())
        assert found == "5s"
        with pytest.raises(ConstraintViolation) as caught:
            database.alter_now(lambda connection: connection.execute(label.insert(), new_label("secret", "first")))
        assert "secret" not in str(caught.value)
    assert admin.value("SELECT count(*) FROM label") == 2


def test_a_long_list_is_planned_by_its_items(postgres_url: str) -> None:
    """Also after the times that the server plans by values: in a plan for any values, a list has ten items."""
    statement = select(label.c.id).where(label.c.id.in_(bindparam("ids", expanding=True)))
    plans = run(
        "SELECT sum(generic_plans) FROM pg_prepared_statements"
        " WHERE statement LIKE 'SELECT label.id %unnest($1::VARCHAR[]%'"
    )

    def work(transaction: Transaction) -> list[Any]:
        for number in range(12):
            assert transaction.rows(statement, {"ids": [f"{number}-{one}" for one in range(500)]}) == []
        return plans(transaction)

    with closing(open_url(postgres_url)) as database:
        [[count]] = database.write_now(work)
    assert not count
