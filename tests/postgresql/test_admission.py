"""The function that tells who asks: with the service's rights, of the tokens that it is asked for and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from normata.database import Sight, Unavailable
from normata.identity.tokens import digest
from normata.settings import Settings
from tests import world
from tests.postgres import Server
from tests.postgresql.conftest import Service, Session, as_role, new_token, session
from tests.world import ALPHA, BETA

_ASK = "SELECT number, user_id, organization_id, revision FROM public.normata_admit($1::text[], $2::text[])"
_WHO = (
    "SELECT current_user::text, session_user::text, current_setting('role'), current_setting('search_path'),"
    " coalesce(current_setting('normata.organizations', true), ''),"
    " coalesce(current_setting('normata.token', true), '')"
)
UNKNOWN = "0" * 64


@pytest.fixture
def login(postgres: Server, postgres_url: str) -> Iterator[str]:
    """The address of the world for a login that may do what the service may, and nothing else."""
    name, password = f"normata_login_{uuid4().hex[:12]}", "member-of-service"
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD '{password}' IN ROLE normata_service")
    yield as_role(postgres_url, name, password)
    postgres.run(f"DROP ROLE {name}")


@pytest.fixture
def admin(postgres_url: str) -> Iterator[Session]:
    """A session that sees everything."""
    with session(postgres_url) as everything:
        yield everything


@pytest.fixture
def digests(postgres_url: str) -> dict[str, str]:
    """The digest of a token of each of the world's users."""
    return {user: digest(new_token(postgres_url, user)) for user in world.USERS}


@pytest.mark.parametrize("who", ["admin", "login"])
def test_each_token_is_told_of_its_own_users_memberships_only(
    who: str, postgres_url: str, login: str, admin: Session, digests: dict[str, str]
) -> None:
    """Also where the others' memberships are in sight, since they are asked for at the same time."""
    admin.run(
        f"INSERT INTO membership (id, organization_id, user_id, role) VALUES ('x', '{BETA}', 'user-editor', 'viewer')"
    )
    revisions = dict(admin.rows("SELECT id, revision FROM organization"))
    asked: list[tuple[str, str | None]] = [
        (digests["editor"], None),
        (digests["editor"], BETA),
        (digests["foreigner"], ALPHA),
        (UNKNOWN, ALPHA),
        (digests["nobody"], None),
        (digests["viewer"], BETA),
        (digests["foreigner"], None),
        ("", None),
        (digests["owner"], "org-gone"),
    ]
    with session(postgres_url if who == "admin" else login) as asking:
        rows = asking.rows(_ASK, [one for one, _ in asked], [place for _, place in asked])
    assert rows == [
        (1, "user-editor", ALPHA, revisions[ALPHA]),
        (1, "user-editor", BETA, revisions[BETA]),
        (2, "user-editor", BETA, revisions[BETA]),
        (3, "user-foreigner", None, None),
        (5, "user-nobody", None, None),
        (6, "user-viewer", None, None),
        (7, "user-foreigner", BETA, revisions[BETA]),
        (9, "user-owner", None, None),
    ]


def test_a_revoked_token_is_told_nothing_and_an_expired_one_when_it_ended(
    admin: Session, digests: dict[str, str]
) -> None:
    admin.run("UPDATE access_token SET revoked_at = now() WHERE user_id = 'user-editor'")
    admin.run("UPDATE access_token SET expires_at = '2026-01-01T00:00:00Z' WHERE user_id = 'user-viewer'")
    rows = admin.rows(
        "SELECT number, user_id, expires_at < now() FROM normata_admit($1, $2)",
        [digests["editor"], digests["viewer"]],
        [None, None],
    )
    assert rows == [(2, "user-viewer", True)]


@pytest.mark.parametrize(
    "odd", ["{a}", "a,b", '"', "\\", "NULL", "' OR true --", "%", "{}", " ", "'", "\u2603" * 100], ids=repr
)
def test_no_digest_or_organization_is_read_as_more_than_itself(
    admin: Session, digests: dict[str, str], odd: str
) -> None:
    """A comma separates tokens in the setting that the policy reads, so it must not let another in."""
    known = digests["editor"]
    assert (
        admin.rows(_ASK, [odd, f"{odd},{known}", f"{known},{odd}", f"{known},{digests['foreigner']}"], [None] * 4) == []
    )
    assert admin.rows(_ASK, [known], [odd]) == [(1, "user-editor", None, None)]


def test_asked_for_nobody_it_tells_nothing(admin: Session) -> None:
    assert admin.rows(_ASK, [], []) == []
    assert admin.rows(_ASK, [None], [None]) == []
    assert admin.rows(_ASK, None, None) == []


@pytest.mark.parametrize("who", ["admin", "login"])
def test_nothing_of_it_is_left_afterwards(who: str, postgres_url: str, login: str, digests: dict[str, str]) -> None:
    with session(postgres_url if who == "admin" else login) as asking:
        before = asking.rows(_WHO)
        assert asking.rows(_ASK, [digests["editor"]], [ALPHA])
        assert asking.rows(_WHO) == before
        asking.run("BEGIN")
        assert asking.rows(_ASK, [digests["editor"]], [ALPHA])
        inside = asking.rows(_WHO)
        asking.run("COMMIT")
        assert inside[0][:4] == before[0][:4], "also in the middle of a transaction, its role is put down again"
        assert asking.rows(_WHO) == before


def test_what_it_has_had_in_sight_is_not_in_sight_of_the_next_transaction(
    postgres_url: str, digests: dict[str, str]
) -> None:
    """It tells who somebody is; to see what is theirs takes more. Here all is done on one connection."""
    acting = Service(postgres_url)

    def admit(connection: Connection) -> None:
        assert connection.exec_driver_sql(_ASK, ([digests["foreigner"]], [BETA])).all()

    def look(connection: Connection) -> tuple[list[str], list[str]]:
        organizations = connection.exec_driver_sql("SELECT id FROM organization").scalars()
        memberships = connection.exec_driver_sql("SELECT id FROM membership WHERE user_id = 'user-foreigner'").scalars()
        return list(organizations), list(memberships)

    try:
        acting.read(admit)
        assert acting.read(look) == ([], [])
        assert acting.read(look, Sight((ALPHA,))) == ([ALPHA], [])
    finally:
        acting.close()


def test_it_acts_as_the_service_whoever_calls(admin: Session) -> None:
    """Bound by row-level security, though the caller is a superuser, and never with more rights than the caller has."""
    found = admin.rows(
        "SELECT prosecdef, proconfig FROM pg_proc WHERE proname = 'normata_admit'"
        " AND pronamespace = 'public'::regnamespace"
    )
    assert len(found) == 1
    assert found[0][0] is False
    assert "role=normata_service" in found[0][1]
    assert any(setting.startswith("search_path=public") for setting in found[0][1])


def test_who_may_not_act_as_the_service_may_not_ask(
    postgres: Server, postgres_url: str, digests: dict[str, str]
) -> None:
    name = f"normata_stranger_{uuid4().hex[:12]}"
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD 'stranger'")
    try:
        with session(as_role(postgres_url, name, "stranger")) as stranger, pytest.raises(Exception, match="permission"):
            stranger.rows(_ASK, [digests["editor"]], [None])
    finally:
        postgres.run(f"DROP ROLE {name}")


def test_a_table_that_comes_first_in_the_search_path_deceives_nobody(
    postgres_url: str, digests: dict[str, str]
) -> None:
    """A temporary table of the same name is looked at last."""
    with session(postgres_url) as asking:
        asking.run(
            "CREATE TEMPORARY TABLE membership (id text, organization_id text, user_id text, role text)",
            f"INSERT INTO pg_temp.membership VALUES ('x', '{BETA}', 'user-editor', 'owner')",
            "GRANT SELECT ON pg_temp.membership TO PUBLIC",
        )
        assert [row[2] for row in asking.rows(_ASK, [digests["editor"]], [None])] == [ALPHA]


def test_to_migrate_again_leaves_it_alone_and_brings_it_back(postgres_url: str, admin: Session) -> None:
    from normata.database import open_database
    from normata.migrations import upgrading

    def migrate() -> None:
        database = open_database(Settings(database_url=postgres_url))
        database.write_now(lambda connection: upgrading.prepare(database, connection))
        database.close()

    made = "SELECT xmin::text, oid::text FROM pg_proc WHERE proname = 'normata_admit'"
    before = admin.rows(made)
    migrate()
    assert admin.rows(made) == before
    admin.run("DROP FUNCTION normata_admit")
    migrate()
    assert len(admin.rows(made)) == 1


def test_a_connection_that_is_cut_costs_no_request(postgres_url: str, admin: Session, digests: dict[str, str]) -> None:
    acting = Service(postgres_url)
    try:
        for _ in range(3):
            found: Any = acting.run(acting.database.admit(digests["editor"], ALPHA))
            assert [admission.organization_id for admission in found] == [ALPHA]
            admin.rows(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'normata'"
            )
    finally:
        acting.close()


def test_an_answer_that_does_not_come_in_time_is_unavailable(
    postgres_url: str, admin: Session, digests: dict[str, str]
) -> None:
    acting = Service(postgres_url, timeout=0.3)

    async def crowd() -> list[Any]:
        asks = (acting.database.admit(digests["editor"], ALPHA) for _ in range(5))
        return await asyncio.gather(*asks, return_exceptions=True)

    try:
        acting.run(acting.database.admit(digests["editor"], ALPHA))
        admin.run("BEGIN", "LOCK TABLE membership IN ACCESS EXCLUSIVE MODE")
        assert {type(answer) for answer in acting.run(crowd())} == {Unavailable}
        admin.run("ROLLBACK")
        assert [len(answer) for answer in acting.run(crowd())] == [1] * 5
    finally:
        acting.close()


def test_a_schema_without_the_function_is_a_fault_that_says_so(postgres_url: str, admin: Session) -> None:
    admin.run("DROP FUNCTION normata_admit")
    acting = Service(postgres_url)
    try:
        with pytest.raises(Exception, match="normata_admit") as caught:
            acting.run(acting.database.admit(UNKNOWN, None))
        assert not isinstance(caught.value, (Unavailable, DBAPIError))
    finally:
        acting.close()
