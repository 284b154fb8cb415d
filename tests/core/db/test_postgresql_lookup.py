"""A lookup of PostgreSQL's: a function that answers what it is asked and nothing else, for all that wait at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Boolean, Integer, select

from normata.core.db.lookup import Lookup
from normata.core.db.security import Security
from normata.core.db.types import UtcTimestamp, text
from normata.errors import Unavailable
from tests.core.db.example import (
    ALPHA,
    BETA,
    IN_ALPHA,
    METADATA,
    NOON,
    SECURITY,
    WHO,
    account,
    member,
    open_url,
    organization,
)
from tests.core.db.sessions import Service, Session, as_role, session
from tests.postgres import Server

_ASK = f"SELECT number, account_id, organization_id FROM public.{WHO.name}($1::text[], $2::text[])"
_WHERE = (
    "SELECT current_user::text, session_user::text, current_setting('role'), current_setting('search_path'),"
    " coalesce(current_setting('normata.readable', true), '')"
)


@pytest.fixture
def login(postgres: Server, postgres_url: str) -> Iterator[str]:
    """The address of the example for a login that may do what the service may, and nothing else."""
    name, password = f"normata_login_{uuid4().hex[:12]}", "member-of-service"
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD '{password}' IN ROLE normata_service")
    yield as_role(postgres_url, name, password)
    postgres.run(f"DROP ROLE {name}")


async def ask_all(service: Service, asked: Sequence[tuple[str, str | None]]) -> list[Any]:
    """The answers, errors included, to questions that are asked at the same moment."""
    calls = (service.database.look_up(WHO, secret, place) for secret, place in asked)
    return list(await asyncio.gather(*calls, return_exceptions=True))


# --- What it answers


def test_it_answers_with_rows_that_have_names(service: Service) -> None:
    (row,) = service.run(service.database.look_up(WHO, "secret-alpha", ALPHA))
    assert (row.account_id, row.organization_id, row.since) == ("user-alpha", ALPHA, NOON)


def test_each_that_asks_has_its_own_answer(login: str, admin: Session) -> None:
    admin.run(f"INSERT INTO member (organization_id, account_id) VALUES ('{BETA}', 'user-alpha')")
    asked: list[tuple[str, str | None]] = [
        ("secret-alpha", None),
        ("secret-alpha", BETA),
        ("secret-beta", ALPHA),
        ("unknown", ALPHA),
        ("secret-nobody", None),
        ("secret-beta", None),
        ("", None),
        ("secret-alpha", None),
    ]
    with closing(Service(login)) as service:
        assert service.run(ask_all(service, asked)) == [
            [("user-alpha", ALPHA, NOON), ("user-alpha", BETA, None)],
            [("user-alpha", BETA, None)],
            [("user-beta", None, None)],
            [],
            [("user-nobody", None, None)],
            [("user-beta", BETA, NOON)],
            [],
            [("user-alpha", ALPHA, NOON), ("user-alpha", BETA, None)],
        ]


def test_all_that_wait_go_in_one_round_trip(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncpg

    sent: list[Any] = []
    fetch = asyncpg.Connection.fetch

    async def fetch_counted(self: Any, query: str, *arguments: Any, **options: Any) -> Any:
        sent.append(arguments)
        return await fetch(self, query, *arguments, **options)

    service.run(ask_all(service, [("secret-alpha", None)]))
    monkeypatch.setattr(asyncpg.Connection, "fetch", fetch_counted)
    assert len(service.run(ask_all(service, [("secret-alpha", None)] * 100))) == 100
    assert [len(secrets) for secrets, _ in sent] == [100]


@pytest.mark.parametrize(
    "odd", ["{a}", "a,b", '"', "\\", "NULL", "' OR true --", "%", "{}", " ", "'", "\u2603" * 100], ids=repr
)
def test_nothing_is_read_as_more_than_itself(service: Service, odd: str) -> None:
    secrets = [odd, f"{odd},secret-alpha", f"secret-alpha,{odd}", "secret-alpha,secret-beta"]
    assert service.run(ask_all(service, [(secret, None) for secret in secrets])) == [[]] * 4
    assert service.run(ask_all(service, [("secret-alpha", odd)])) == [[("user-alpha", None, None)]]


def test_asked_for_nothing_it_answers_nothing(admin: Session) -> None:
    assert admin.rows(_ASK, [], []) == []
    assert admin.rows(_ASK, [None], [None]) == []
    assert admin.rows(_ASK, None, None) == []


def test_several_lookups_are_answered_side_by_side(postgres_url: str, service: Service) -> None:
    """Also one that fails does so for itself."""
    count = Lookup(
        "normata_test_count",
        ("user", "after"),
        {"members": Integer(), "any": Boolean(), "user": text(), "last": UtcTimestamp()},
        lambda user, after, *, source, number: (
            f"SELECT {number and number + ','} count(member.account_id)::integer, count(*) > 0, {user}::varchar,"
            f" max(member.since) FROM {source or '(SELECT 1)'} LEFT JOIN member ON member.account_id = {user}"
            f" AND member.since > {after}::timestamptz GROUP BY {number and number + ','} {user} ORDER BY 1"
        ),
    )
    missing = Lookup("normata_test_missing", ("x",), {"x": text()}, WHO.select)
    with closing(open_url(postgres_url)) as database:
        both = Security(SECURITY.writes, (WHO, count), SECURITY.partly_readable)
        database.alter_now(lambda connection: database.secure(connection, METADATA, both))
        assert database.read_now(lambda transaction: list(database.faults(transaction, METADATA, both))) == []

    async def mixed() -> list[Any]:
        look_up = service.database.look_up
        asked = (
            look_up(count, "user-alpha", "2025-01-01"),
            look_up(WHO, "secret-alpha", None),
            look_up(missing, "x"),
            look_up(count, "user-beta", "2027-01-01"),
        )
        return list(await asyncio.gather(*asked, return_exceptions=True))

    first, second, third, fourth = service.run(mixed())
    assert (first[0].members, first[0].any, first[0].user, first[0].last) == (1, True, "user-alpha", NOON)
    assert second == [("user-alpha", ALPHA, NOON)]
    assert "normata_test_missing" in str(third)
    assert not isinstance(third, Unavailable)
    assert fourth == [(0, True, "user-beta", None)]


# --- With whose rights


def test_it_reads_what_the_service_may_not(login: str) -> None:
    """The secret is compared in the function, and never leaves it."""
    with closing(Service(login)) as service:
        assert service.run(service.database.look_up(WHO, "secret-alpha", ALPHA)) == [("user-alpha", ALPHA, NOON)]
        with pytest.raises(Exception, match="permission denied"):
            service.read(lambda transaction: transaction.rows(select(account.c.secret)), IN_ALPHA)


@pytest.mark.parametrize("who", ["admin", "login"])
def test_nothing_of_it_is_left_afterwards(who: str, postgres_url: str, login: str) -> None:
    with session(postgres_url if who == "admin" else login) as asking:
        before = asking.rows(_WHERE)
        assert asking.rows(_ASK, ["secret-alpha"], [ALPHA])
        assert asking.rows(_WHERE) == before
        asking.run("BEGIN")
        assert asking.rows(_ASK, ["secret-alpha"], [ALPHA])
        assert asking.rows(_WHERE) == before
        asking.run("COMMIT")


def test_what_it_has_read_is_not_readable_for_a_transaction(service: Service) -> None:
    assert service.run(service.database.look_up(WHO, "secret-alpha", ALPHA))
    assert service.read(lambda transaction: transaction.scalars(select(organization.c.id))) == []
    assert service.read(lambda transaction: transaction.scalars(select(member.c.account_id))) == []


def test_who_may_not_act_as_the_service_may_not_ask(postgres: Server, postgres_url: str) -> None:
    name = f"normata_stranger_{uuid4().hex[:12]}"
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD 'stranger'")
    try:
        with session(as_role(postgres_url, name, "stranger")) as stranger, pytest.raises(Exception, match="permission"):
            stranger.rows(_ASK, ["secret-alpha"], [None])
    finally:
        postgres.run(f"DROP ROLE {name}")


def test_a_table_that_comes_first_in_the_search_path_deceives_nobody(postgres_url: str) -> None:
    """A temporary table of the same name is looked at last."""
    with session(postgres_url) as asking:
        asking.run(
            "CREATE TEMPORARY TABLE member (organization_id text, account_id text, since timestamptz)",
            f"INSERT INTO pg_temp.member VALUES ('{BETA}', 'user-alpha', now())",
            "GRANT SELECT ON pg_temp.member TO PUBLIC",
        )
        assert asking.rows(_ASK, ["secret-alpha"], [None]) == [(1, "user-alpha", ALPHA)]


# --- When it fails


def test_a_connection_that_is_cut_costs_no_request(service: Service, admin: Session) -> None:
    for _ in range(3):
        assert service.run(service.database.look_up(WHO, "secret-alpha", ALPHA)) == [("user-alpha", ALPHA, NOON)]
        for pid in admin.backends():
            admin.value("SELECT pg_terminate_backend($1, 5000)", pid)


def test_an_answer_that_does_not_come_in_time_is_unavailable(postgres_url: str, admin: Session) -> None:
    with closing(Service(postgres_url, timeout=0.3)) as service:
        crowd = [("secret-alpha", None)] * 5
        service.run(ask_all(service, crowd))
        admin.run("BEGIN", "LOCK TABLE member IN ACCESS EXCLUSIVE MODE")
        assert {type(answer) for answer in service.run(ask_all(service, crowd))} == {Unavailable}
        admin.run("ROLLBACK")
        assert [len(answer) for answer in service.run(ask_all(service, crowd))] == [1] * 5


@pytest.mark.parametrize("first", ["lookup", "transaction"])
def test_after_one_has_waited_in_vain_no_other_does(postgres_url: str, admin: Session, first: str) -> None:
    """As after the loss of a machine: all connections lead nowhere, and new ones to the server that has taken over."""

    def name(transaction: Any) -> Any:
        return transaction.scalar(select(organization.c.name))

    with closing(Service(postgres_url, timeout=0.5, pool_size=3)) as service:

        async def ask(what: str) -> Any:
            if what == "lookup":
                return await service.database.look_up(WHO, "secret-alpha", None)
            return await service.database.read(name, IN_ALPHA)

        async def crowd() -> None:
            await asyncio.gather(ask("lookup"), *(ask("transaction") for _ in range(6)))

        service.run(crowd())
        backends = admin.backends()
        assert len(backends) == 4
        for pid in backends:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable):
                service.run(ask(first))
            for what in ("lookup", *["transaction"] * 4, "lookup"):
                assert service.run(ask(what))
        finally:
            for pid in backends:
                os.kill(pid, signal.SIGCONT)


def test_a_schema_without_the_function_is_a_fault_that_says_so(service: Service, admin: Session) -> None:
    admin.run(f"DROP FUNCTION {WHO.name}")
    with pytest.raises(Exception, match=WHO.name) as caught:
        service.run(service.database.look_up(WHO, "unknown", None))
    assert not isinstance(caught.value, Unavailable)
