"""PostgreSQL keeps organizations apart by itself: a query that forgets its organization is answered with nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, Executable, insert, select, update
from sqlalchemy import Table as SqlTable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from normata.database import Sight, T, now
from normata.errors import NotFound
from normata.frameworks.controls import ControlQuery, list_controls
from normata.frameworks.frameworks import FrameworkQuery, list_frameworks
from normata.identity.access import Caller
from normata.identity.model import AuditEvent
from normata.identity.tokens import digest
from normata.models import Table
from normata.notifications.inbox import NotificationQuery, list_notifications
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.restore import restore
from normata.vocabulary import sql_table
from tests import world
from tests.databases import open_url
from tests.following import follow
from tests.postgres import Server
from tests.postgresql.conftest import (
    Service,
    Session,
    as_role,
    is_one_sentence,
    new_token,
    normata,
    session,
)
from tests.world import ALPHA, BETA, record_id

IN_ALPHA, IN_BETA = Sight((ALPHA,)), Sight((BETA,))
NOT_ALLOWED = "42501"  # insufficient_privilege: also what row-level security says
KINDS = Restorable.kinds
TABLES = Table.metadata.sorted_tables

# Not taken from the models, so that a table whose model forgets it is found.
OWNED = [table for table in TABLES if "organization_id" in table.c or table.name == "organization"]


def owner_column(table: SqlTable) -> str:
    """The column that says which organization a row belongs to."""
    return "id" if table.name == "organization" else "organization_id"


@dataclass(frozen=True)
class Access:
    """A copy of the world: as its administrator reaches it, and as the service's URL names it."""

    admin: str
    url: str
    role: str


@pytest.fixture(scope="module")
def owner(postgres: Server) -> Iterator[Access]:
    """A world whose tables belong to a role without special rights but to make roles, which also made the service's."""
    name, password = f"normata_owner_{uuid4().hex[:12]}", "owner-of-tables"
    role, database = f"{name}_service", f"normata_{uuid4().hex}"
    with ExitStack() as stack:
        postgres.run(f"CREATE ROLE {name} LOGIN CREATEROLE PASSWORD '{password}'")
        stack.callback(postgres.run, f"DROP ROLE IF EXISTS {role}", f"DROP ROLE {name}")
        admin = postgres.create(database)
        stack.callback(postgres.drop, database)
        postgres.run(f'ALTER DATABASE "{database}" OWNER TO {name}')
        url = as_role(admin, name, password)
        migrated = normata("migrate", url=url, settings={"NORMATA_DATABASE_ROLE": role})
        assert migrated.returncode == 0, migrated.stderr
        database_of_owner = open_url(url)
        world.load(database_of_owner, world.bundle())
        database_of_owner.close()
        yield Access(admin, url, role)


@pytest.fixture(params=["superuser", "owner", "login"])
def access(request: pytest.FixtureRequest, postgres: Server) -> Iterator[Access]:
    """The world, with the service's URL naming a superuser, the tables' owner, or a login that is a member only."""
    if request.param == "owner":
        owned: Access = request.getfixturevalue("owner")
        name = f"normata_{uuid4().hex}"
        admin = postgres.create(name, template=owned.admin.partition("?")[0].rpartition("/")[2])
        user, password = owned.role.removesuffix("_service"), "owner-of-tables"
        yield Access(admin, as_role(admin, user, password), owned.role)
        postgres.drop(name)
        return
    url: str = request.getfixturevalue("postgres_url")
    if request.param == "superuser":
        yield Access(url, url, "normata_service")
        return
    login, password = f"normata_login_{uuid4().hex[:12]}", "member-of-service"
    postgres.run(f"CREATE ROLE {login} LOGIN PASSWORD '{password}' IN ROLE normata_service")
    yield Access(url, as_role(url, login, password), "normata_service")
    postgres.run(f"DROP ROLE {login}")


@pytest.fixture
def admin(access: Access) -> Iterator[Session]:
    """A session that sees everything; both organizations have an audit event, which the world has not."""
    with session(access.admin) as everything:
        for organization in (ALPHA, BETA):
            everything.run(
                "INSERT INTO audit_event (id, organization_id, at, action, entity_type, entity_id, user_id, token_id,"
                f" request_id) VALUES ('event-{organization}', '{organization}', now(), 'restore', 'Label', 'x', 'x',"
                " 'x', 'x')"
            )
        yield everything


@pytest.fixture
def service(access: Access, admin: Session) -> Iterator[Service]:
    """The service, with one connection for everything."""
    del admin  # what it adds must be there
    acting = Service(access.url, role=access.role)
    yield acting
    acting.close()


def rows_of(connection: Connection, table: SqlTable) -> list[str]:
    """Every row that the table shows, without any condition."""
    return sorted(connection.exec_driver_sql(f'SELECT rows::text FROM "{table.name}" AS rows').scalars())


def executed(connection: Connection, statement: Executable) -> None:
    """Execute a statement, as work of a transaction."""
    connection.execute(statement)


def stored_rows(admin: Session, table: SqlTable, *organizations: str) -> list[str]:
    """The rows that are shared, or belong to one of the organizations, as the administrator sees them."""
    column = owner_column(table)
    return sorted(
        text
        for (text,) in admin.rows(
            f'SELECT rows::text FROM "{table.name}" AS rows WHERE "{column}" IS NULL OR "{column}" = ANY($1::text[])',
            organizations,
        )
    )


def refusal(act: Callable[[], object]) -> str:
    """The SQLSTATE that the database refuses something with."""
    with pytest.raises(DBAPIError) as caught:
        act()
    return str(getattr(caught.value.orig, "sqlstate", None))


# --- What is in sight


def test_every_table_of_an_organization_has_row_level_security(access: Access, admin: Session) -> None:
    found = admin.rows(
        "SELECT c.relname, c.relrowsecurity, array_agg(r.rolname::text), bool_and(p.polcmd = '*')"
        " FROM pg_class c LEFT JOIN pg_policy p ON p.polrelid = c.oid LEFT JOIN pg_roles r ON r.oid = ANY (p.polroles)"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND (c.relname = 'organization' OR"
        " EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'organization_id'))"
        " GROUP BY c.relname, c.relrowsecurity ORDER BY c.relname"
    )
    assert found == [(name, True, [access.role], True) for name in sorted(table.name for table in OWNED)]
    assert len(found) > 20  # the tables have been found at all


def test_without_sight_nothing_of_any_organization_is_there(service: Service, admin: Session) -> None:
    for table in OWNED:
        assert stored_rows(admin, table, ALPHA), table.name
        assert stored_rows(admin, table, BETA), table.name
        assert service.read(partial(rows_of, table=table)) == stored_rows(admin, table)


@pytest.mark.parametrize("seen", [(ALPHA,), (BETA,), (ALPHA, BETA), (BETA, "org-gone")])
def test_the_organizations_in_sight_and_what_is_shared_are_there(
    service: Service, admin: Session, seen: tuple[str, ...]
) -> None:
    for table in OWNED:
        shown = service.read(partial(rows_of, table=table), Sight(seen))
        assert shown == stored_rows(admin, table, *seen), table.name


@pytest.mark.parametrize(
    "organization",
    ["", "NULL", "null", "{org-alpha}", "org-alpha,org-beta", '{"org-alpha","org-beta"}', '"org-alpha"', "org-alpha\\",
     "org_alpha", "ORG-ALPHA", "org-%", "' OR true --", '","org-beta'],
)  # fmt: skip
def test_an_identifier_is_never_read_as_more_than_itself(service: Service, admin: Session, organization: str) -> None:
    for table in OWNED:
        shown = service.read(partial(rows_of, table=table), Sight((organization,)))
        assert shown == stored_rows(admin, table), table.name


def test_an_organization_with_a_nasty_identifier_is_seen_by_it_alone(service: Service, admin: Session) -> None:
    nasty = "a,b\"{}\\'NULL "
    admin.run(f"INSERT INTO organization (id, name, slug) VALUES ($id${nasty}$id$, 'Nasty', 'nasty')")

    def ids(connection: Connection) -> list[str]:
        return list(connection.exec_driver_sql("SELECT id FROM organization ORDER BY id").scalars())

    assert service.read(ids, Sight((nasty,))) == [nasty]
    assert service.read(ids, Sight((nasty, ALPHA))) == sorted([nasty, ALPHA])
    assert service.read(ids, IN_BETA) == [BETA]


def test_memberships_are_those_of_the_tokens_user_or_of_the_organizations_in_sight(
    service: Service, admin: Session, access: Access
) -> None:
    admin.run(f"INSERT INTO membership (id, organization_id, user_id, role) VALUES ('second', '{BETA}', 'user-editor',"
              " 'viewer')")  # fmt: skip
    token = digest(new_token(access.admin, "editor"))

    def ids(connection: Connection) -> set[str]:
        return set(connection.exec_driver_sql("SELECT id FROM membership").scalars())

    def others(connection: Connection) -> int:
        found = connection.exec_driver_sql("SELECT count(*) FROM label").scalar()
        assert isinstance(found, int)
        return found

    def showing(token: str, look: Callable[[Connection], T]) -> Callable[[Connection], T]:
        """As the function that tells who asks does."""

        def work(connection: Connection) -> T:
            connection.exec_driver_sql("SELECT set_config('normata.token', $1, true)", (token,))
            return look(connection)

        return work

    assert service.read(showing(token, ids)) == {"member-editor", "second"}
    assert service.read(showing(digest(new_token(access.admin, "nobody")), ids)) == set()
    assert service.read(showing("0" * 64, ids)) == set()
    assert service.read(ids, IN_ALPHA) == {f"member-{role}" for role in world.ROLES}
    assert service.read(showing(token, ids), IN_BETA) == {"member-foreigner", "member-editor", "second"}
    assert service.read(showing(token, others)) == 0
    assert service.read(ids) == set(), "it was for those transactions only"


# --- Queries with their scoping taken out


def test_a_list_for_another_organization_is_empty(service: Service) -> None:
    """The shipped queries are told the wrong organization, as if the check of membership before them were gone."""
    controls = ControlQuery.model_validate({"organizationId": BETA})
    assert service.read(lambda connection: list_controls(connection, controls), IN_ALPHA)["total"] == 0
    assert service.read(lambda connection: list_controls(connection, controls), IN_BETA)["total"] == 26

    inbox = NotificationQuery.model_validate({"organizationId": BETA})
    for sight, total in ((IN_ALPHA, 0), (IN_BETA, 1)):
        page = service.read(lambda connection: list_notifications(connection, "user-foreigner", inbox), sight)
        assert page["total"] == total

    frameworks = FrameworkQuery.model_validate({"organizationId": BETA})
    seen = service.read(lambda connection: list_frameworks(connection, frameworks), IN_ALPHA)["items"]
    assert {item["id"] for item in seen} == {"fw-sun", "fw-moon", "fw-star"}
    assert not any(item["isAdopted"] for item in seen)
    allowed = service.read(lambda connection: list_frameworks(connection, frameworks), IN_BETA)["items"]
    assert {item["id"] for item in allowed if item["isAdopted"]} == {"fw-foreign", "fw-star"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.path))
def test_a_restore_that_asks_for_no_membership_reaches_nothing(
    service: Service, admin: Session, kind: type[Restorable]
) -> None:
    table = kind.sql()
    target = record_id(kind, "archived", BETA)
    statement = (
        update(table)
        .where(table.c.id == target, table.c.archived_at.is_not(None))
        .values(archived_at=None)
        .returning(table.c.id)
    )
    archived = f'SELECT archived_at IS NOT NULL FROM "{table.name}" WHERE id = $1'

    def run(connection: Connection) -> list[str]:
        return list(connection.execute(statement).scalars())

    assert service.write(run, IN_ALPHA) == []
    assert service.write(run) == []
    assert admin.value(archived, target) is True
    assert service.write(run, IN_BETA) == [target]
    assert admin.value(archived, target) is False


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.path))
def test_the_shipped_restore_fails_out_of_sight_even_for_a_member(
    service: Service, admin: Session, kind: type[Restorable]
) -> None:
    """The query's own condition holds for this caller, so that the database alone stands in the way."""
    caller = Caller("user-foreigner", "Foreigner", "token", "write", (BETA,), "")
    target = record_id(kind, "archived", BETA)

    def run(connection: Connection) -> str:
        return str(follow(connection, restore(kind, target, caller, request_id="test"))["id"])

    before = world_of(admin)
    with pytest.raises(NotFound):
        service.write(run, IN_ALPHA)
    assert world_of(admin) == before
    assert service.write(run, IN_BETA) == target
    assert admin.value("SELECT count(*) FROM audit_event WHERE entity_id = $1", target) == 1


def world_of(admin: Session) -> dict[str, list[str]]:
    """Every row of every table that belongs to an organization."""
    return {table.name: stored_rows(admin, table, ALPHA, BETA) for table in OWNED}


def test_a_change_without_any_condition_touches_only_what_is_in_sight(service: Service, admin: Session) -> None:
    moment = now()

    def run(connection: Connection) -> None:
        for kind in KINDS:
            connection.execute(update(kind.sql()).values(archived_at=moment))

    before = {kind: stored_beta(admin, kind) for kind in KINDS}
    service.write(run)
    for kind in KINDS:
        assert admin.value(f'SELECT count(*) FROM "{kind.sql().name}" WHERE archived_at IS NULL') > 0
    service.write(run, IN_ALPHA)
    for kind in KINDS:
        live = f"SELECT count(*) FROM \"{kind.sql().name}\" WHERE archived_at IS NULL AND organization_id = '{ALPHA}'"
        assert admin.value(live) == 0
        assert stored_beta(admin, kind) == before[kind]


def stored_beta(admin: Session, kind: type[Restorable]) -> list[str]:
    """Beta's rows of a kind."""
    return stored_rows(admin, kind.sql(), BETA)


@pytest.mark.parametrize("sight", [Sight(), IN_ALPHA], ids=["nothing", "alpha"])
def test_nothing_can_be_written_for_an_organization_out_of_sight(
    service: Service, admin: Session, sight: Sight
) -> None:
    event = insert(AuditEvent).values(
        id="forged", organization_id=BETA, at=now(), action="restore", entity_type="Label", entity_id="x",
        user_id="x", token_id="x", request_id="x",
    )  # fmt: skip
    notice = insert(Notification).values(
        id="forged", organization_id=BETA, user_id="user-foreigner", type="t", category="SYSTEM", payload={},
        created_at=now(),
    )  # fmt: skip
    for statement in (event, notice):
        assert refusal(partial(service.write, partial(executed, statement=statement), sight)) == NOT_ALLOWED
    for table in ("audit_event", "notification"):
        assert admin.value(f"SELECT count(*) FROM {table} WHERE id = 'forged'") == 0
    for statement in (event, notice):
        service.write(partial(executed, statement=statement), IN_BETA)
    for table in ("audit_event", "notification"):
        assert admin.value(f"SELECT count(*) FROM {table} WHERE id = 'forged'") == 1


# --- What the service may do at all


def test_the_service_has_exactly_the_rights_that_it_needs(access: Access, admin: Session) -> None:
    rights = admin.rows(
        "SELECT c.relname::text, p.privilege FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE',"
        " 'TRUNCATE', 'REFERENCES', 'TRIGGER', 'MAINTAIN']) AS p(privilege) WHERE c.relkind IN ('r', 'p', 'v', 'm')"
        " AND c.relnamespace = 'public'::regnamespace AND has_table_privilege($1::text, c.oid, p.privilege)",
        access.role,
    )
    assert set(rights) == {
        *((table.name, "SELECT") for table in TABLES),
        ("alembic_version", "SELECT"),
        ("audit_event", "INSERT"),
        ("notification", "INSERT"),
    }
    columns = admin.rows(
        "SELECT c.relname::text, a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped"
        " AND has_column_privilege($1::text, c.oid, a.attnum, 'UPDATE')",
        access.role,
    )
    assert set(columns) == {
        ("access_token", "last_used_at"),
        *((kind.sql().name, name) for kind in KINDS for name in ("archived_at", "updated_at") if name in kind.sql().c),
    }


def test_the_service_can_delete_nothing(service: Service, admin: Session) -> None:
    for table in TABLES:
        for statement in (f'DELETE FROM "{table.name}"', f'TRUNCATE "{table.name}" CASCADE'):
            assert refused(service, statement) == NOT_ALLOWED, statement
        if table in OWNED:
            assert stored_rows(admin, table, ALPHA), table.name


def refused(service: Service, statement: str) -> str:
    """The SQLSTATE with which a statement of the service is refused, with everything of alpha in sight."""
    return refusal(lambda: service.write(lambda connection: connection.exec_driver_sql(statement), IN_ALPHA))


def test_the_service_can_change_nothing_else(service: Service) -> None:
    assert refused(service, "UPDATE label SET slug = 'other'") == NOT_ALLOWED
    assert refused(service, f"UPDATE label SET organization_id = '{ALPHA}', archived_at = NULL") == NOT_ALLOWED
    assert refused(service, "UPDATE membership SET role = 'owner'") == NOT_ALLOWED
    assert refused(service, "UPDATE access_token SET expires_at = NULL, revoked_at = NULL") == NOT_ALLOWED
    assert refused(service, "INSERT INTO organization (id, name, slug) VALUES ('x', 'x', 'x')") == NOT_ALLOWED
    for table in TABLES:
        column = next(iter(table.primary_key.columns)).name
        assert refused(service, f'UPDATE "{table.name}" SET "{column}" = "{column}"') == NOT_ALLOWED, table.name


def test_the_service_cannot_see_or_make_what_is_not_its_own(service: Service, admin: Session) -> None:
    admin.run("CREATE TABLE of_something_else (secret text)")
    for statement in (
        "SELECT * FROM of_something_else",
        "SELECT rolpassword FROM pg_authid",
        "CREATE TABLE mine (id text)",
        "ALTER TABLE label DISABLE ROW LEVEL SECURITY",
        "DROP POLICY normata_organization ON label",
        "ALTER TABLE label ADD COLUMN mine text",
        "SELECT pg_read_file('/etc/hostname')",
    ):
        assert refused(service, statement) == NOT_ALLOWED, statement

    def look_past(connection: Connection) -> None:
        connection.exec_driver_sql("SET LOCAL row_security = off")
        connection.exec_driver_sql("SELECT * FROM label")

    assert refusal(partial(service.write, look_past, IN_ALPHA)) == NOT_ALLOWED


# --- One connection, many transactions


_WHO = (
    "SELECT pg_backend_pid(), current_user::text, session_user::text, current_setting('role'),"
    " coalesce(current_setting('normata.organizations', true), ''), coalesce(current_setting('normata.token', true),"
    " ''), current_setting('statement_timeout'), current_setting('lock_timeout'),"
    " current_setting('idle_in_transaction_session_timeout')"
)


@pytest.mark.parametrize("fails", [False, True], ids=["committed", "failed"])
@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
def test_nothing_of_a_transaction_is_left_on_its_connection(
    service: Service, access: Access, writes: bool, fails: bool
) -> None:
    engine = AsyncEngine(service.database.engine)

    async def outside() -> tuple[Any, ...]:
        async with engine.connect() as connection:
            return tuple((await connection.exec_driver_sql(_WHO)).one())

    inside: list[tuple[Any, ...]] = []

    def work(connection: Connection) -> None:
        inside.append(tuple(connection.exec_driver_sql(_WHO).one()))
        if fails:
            connection.exec_driver_sql("SELECT 1 / 0")

    untouched = service.run(outside())
    run = service.write if writes else service.read
    sight = Sight((ALPHA, BETA))
    if fails:
        assert refusal(lambda: run(work, sight)) == "22012"
    else:
        run(work, sight)
    pid, session_user = untouched[0], untouched[2]
    assert inside == [(pid, access.role, session_user, access.role, "{org-alpha,org-beta}", "", "5s", "5s", "20s")]
    assert service.run(outside()) == untouched
    assert untouched[1] == session_user != access.role
    assert untouched[3:6] == ("none", "", "")


@pytest.mark.parametrize("pool_size", [1, 3])
def test_organizations_that_share_connections_never_meet(access: Access, pool_size: int) -> None:
    shared = Service(access.url, role=access.role, pool_size=pool_size, timeout=30)

    def seen(connection: Connection) -> set[str]:
        return set(connection.scalars(select(sql_table(Notification).c.organization_id)))

    async def ask() -> list[set[str]]:
        sights = [(IN_ALPHA, IN_BETA, Sight())[number % 3] for number in range(60)]
        calls = [
            (shared.database.write if number % 2 else shared.database.read)(seen, sight)
            for number, sight in enumerate(sights)
        ]
        return await asyncio.gather(*calls)

    try:
        assert shared.run(ask()) == [({ALPHA}, {BETA}, set())[number % 3] for number in range(60)]
    finally:
        shared.close()


# --- A role that could look past it


@pytest.mark.parametrize("right", ["BYPASSRLS", "SUPERUSER"])
def test_migrate_refuses_a_role_that_row_level_security_does_not_bind(
    postgres: Server, new_role: str, blank_url: str, right: str
) -> None:
    postgres.run(f"CREATE ROLE {new_role} NOLOGIN {right}")
    done = normata("migrate", url=blank_url, settings={"NORMATA_DATABASE_ROLE": new_role})
    assert done.returncode == 1
    assert is_one_sentence(done.stderr)
    assert new_role in done.stderr
    with session(blank_url) as looking:
        assert looking.value("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0


def test_migrate_refuses_the_tables_owner_as_the_services_role(owner: Access) -> None:
    """Row-level security binds everybody but superusers, BYPASSRLS, and who owns the table."""
    name = owner.role.removesuffix("_service")
    done = normata("migrate", url=owner.url, settings={"NORMATA_DATABASE_ROLE": name})
    assert done.returncode == 1
    assert is_one_sentence(done.stderr)
    assert name in done.stderr
