"""PostgreSQL keeps organizations apart by itself: a statement that forgets its organization reaches nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import Table, delete, insert, select, update

from normata.core.db.transaction import NO_TENANT, NotPermitted, TenantScope, Transaction
from normata.errors import Unavailable
from tests.core.db.example import (
    ALPHA,
    BETA,
    IN_ALPHA,
    IN_BETA,
    METADATA,
    account,
    build,
    faults,
    framework,
    label,
    member,
    new_label,
    note,
    open_url,
    organization,
    secure,
)
from tests.core.db.sessions import Service, Session, as_role, run, session
from tests.postgres import Server

NOT_ALLOWED = "42501"  # insufficient_privilege: also what row-level security says
OWNED = [organization, label, framework, note, member]


def owner_column(table: Table) -> str:
    """The column that says which organization a row belongs to."""
    return "id" if table is organization else "organization_id"


@dataclass(frozen=True)
class Access:
    """A copy of the example: as its administrator reaches it, and as the service's URL names it."""

    admin: str
    url: str
    role: str


@pytest.fixture(scope="module")
def owner(postgres: Server) -> Iterator[Access]:
    """An example whose tables belong to a role without special rights but to make roles, which made the service's."""
    name, password = f"normata_owner_{uuid4().hex[:12]}", "owner-of-tables"
    role, database = f"{name}_service", f"normata_{uuid4().hex}"
    with ExitStack() as stack:
        postgres.run(f"CREATE ROLE {name} LOGIN CREATEROLE PASSWORD '{password}'")
        stack.callback(postgres.run, f"DROP ROLE IF EXISTS {role}", f"DROP ROLE {name}")
        admin = postgres.create(database)
        stack.callback(postgres.drop, database)
        postgres.run(f'ALTER DATABASE "{database}" OWNER TO {name}')
        url = as_role(admin, name, password)
        build(url, database_role=role)
        yield Access(admin, url, role)


@pytest.fixture(params=["superuser", "owner", "login"])
def access(request: pytest.FixtureRequest, postgres: Server) -> Iterator[Access]:
    """The example, with the service's URL naming a superuser, the tables' owner, or a login that is a member only."""
    if request.param == "owner":
        owned: Access = request.getfixturevalue("owner")
        name = f"normata_{uuid4().hex}"
        admin = postgres.create(name, template=owned.admin.partition("?")[0].rpartition("/")[2])
        yield Access(admin, as_role(admin, owned.role.removesuffix("_service"), "owner-of-tables"), owned.role)
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
    """A session that sees everything."""
    with session(access.admin) as everything:
        yield everything


@pytest.fixture
def service(access: Access) -> Iterator[Service]:
    """The service, with one connection for everything."""
    acting = Service(access.url, role=access.role)
    yield acting
    acting.close()


def keys(transaction: Transaction, table: Table) -> list[tuple[Any, ...]]:
    """Every row that the table shows, without any condition, by what of its key may be read."""
    columns = [table.c.account_id] if table is member else list(table.primary_key.columns)
    return sorted(tuple(row) for row in transaction.rows(select(*columns)))


def stored(admin: Session, table: Table, *organizations: str) -> list[tuple[Any, ...]]:
    """The rows that are shared, or belong to one of the organizations, as the administrator sees them."""
    key = "account_id" if table is member else "id"
    where = f'"{owner_column(table)}" IS NULL OR "{owner_column(table)}" = ANY($1::text[])'
    return sorted(admin.rows(f'SELECT {key} FROM "{table.name}" WHERE {where}', organizations))


def everything(admin: Session) -> dict[str, list[Any]]:
    """Every row of every table."""
    return {
        name: sorted(admin.rows(f'SELECT rows::text FROM "{name}" AS rows'))
        for name in (table.name for table in METADATA.sorted_tables)
    }


def refusal(act: Callable[[], object]) -> str:
    """The SQLSTATE that the database refuses something with."""
    with pytest.raises((asyncpg.PostgresError, NotPermitted)) as caught:
        act()
    error: Any = caught.value.__cause__ if isinstance(caught.value, NotPermitted) else caught.value
    return str(error.sqlstate)


def changing(statement: Any) -> Callable[[Transaction], list[Any]]:
    """Work that executes a statement."""
    return lambda transaction: transaction.rows(statement)


# --- Reading


@pytest.mark.parametrize("readable", [(), (ALPHA,), (BETA,), (ALPHA, BETA), (BETA, "org-gone")])
def test_what_is_readable_and_what_is_shared_are_there(
    service: Service, admin: Session, readable: tuple[str, ...]
) -> None:
    """What may be written makes nothing readable."""
    for table in OWNED:
        assert stored(admin, table, ALPHA) != stored(admin, table)
        shown = service.read(partial(keys, table=table), TenantScope(readable, (ALPHA, BETA)))
        assert shown == stored(admin, table, *readable), table.name


@pytest.mark.parametrize(
    "name",
    ["", "NULL", "null", "{org-alpha}", "org-alpha,org-beta", '{"org-alpha","org-beta"}', '"org-alpha"', "org-alpha\\",
     "org_alpha", "ORG-ALPHA", "org-%", "' OR true --", '","org-beta'],
)  # fmt: skip
def test_an_identifier_is_never_read_as_more_than_itself(service: Service, admin: Session, name: str) -> None:
    for table in OWNED:
        assert service.read(partial(keys, table=table), TenantScope((name,))) == stored(admin, table)
    assert service.write(changing(update(label).values(name="x").returning(label.c.id)), TenantScope((), (name,))) == []


def test_an_organization_with_a_nasty_identifier_is_seen_by_it_alone(service: Service, admin: Session) -> None:
    nasty = "a,b\"{}\\'NULL "
    admin.run(f"INSERT INTO organization (id, name, slug) VALUES ($id${nasty}$id$, 'Nasty', 'nasty')")

    def ids(transaction: Transaction) -> list[str]:
        return transaction.scalars(select(organization.c.id).order_by(organization.c.id))

    assert service.read(ids, TenantScope((nasty,))) == [nasty]
    assert service.read(ids, TenantScope((nasty, ALPHA))) == sorted([nasty, ALPHA])
    assert service.read(ids, IN_BETA) == [BETA]


def test_only_some_columns_of_some_tables_may_be_read(service: Service) -> None:
    assert service.read(changing(select(account.c.id, account.c.name).limit(1)), IN_ALPHA)
    assert service.read(changing(select(member.c.account_id)), IN_ALPHA) == [("user-alpha",)]
    for column in (account.c.secret, member.c.pin, member.c.organization_id):
        assert refusal(lambda: service.read(changing(select(column)), IN_ALPHA)) == NOT_ALLOWED  # noqa: B023
    assert refusal(lambda: service.read(changing(select(account)), IN_ALPHA)) == NOT_ALLOWED


# --- Writing


@pytest.mark.parametrize(
    "scope",
    [NO_TENANT, IN_BETA, TenantScope((ALPHA, BETA)), TenantScope((ALPHA, BETA), (BETA,)), TenantScope((), (BETA,))],
    ids=["nothing", "beta", "readable", "readable, beta writable", "beta writable only"],
)
def test_what_is_not_writable_stays_as_it_is(service: Service, admin: Session, scope: TenantScope) -> None:
    before = everything(admin)
    for table in (label, framework, note):
        row = {"id": "forged", "organization_id": ALPHA, "slug": "forged", "name": "forged"}
        values = {name: value for name, value in row.items() if name in table.c}
        assert refusal(lambda: service.write(changing(insert(table).values(values)), scope)) == NOT_ALLOWED  # noqa: B023
    for statement in (
        update(label).values(name="x").where(label.c.organization_id == ALPHA),
        update(framework).values(name="x").where(framework.c.organization_id == ALPHA),
        delete(framework).where(framework.c.organization_id == ALPHA),
        delete(note).where(note.c.id == "note-alpha"),
    ):
        service.write(changing(statement), scope)
    assert everything(admin) == before


@pytest.mark.parametrize("scope", [IN_ALPHA, TenantScope((ALPHA, BETA), (ALPHA,))], ids=["alpha", "both readable"])
def test_a_change_without_any_condition_touches_only_what_is_writable(
    service: Service, admin: Session, scope: TenantScope
) -> None:
    def work(transaction: Transaction) -> tuple[list[Any], ...]:
        return (
            transaction.scalars(update(label).values(name="x").returning(label.c.id)),
            transaction.scalars(update(framework).values(name="x").returning(framework.c.id)),
            transaction.scalars(delete(framework).returning(framework.c.id)),
            transaction.scalars(delete(note).returning(note.c.id)),
        )

    others = {table.name: stored(admin, table, BETA) for table in OWNED}
    assert service.write(work, scope) == (["label-alpha"], ["framework-alpha"], ["framework-alpha"], ["note-alpha"])
    assert {table.name: stored(admin, table, BETA) for table in OWNED} == others
    assert admin.rows("SELECT name FROM label ORDER BY id") == [("x",), ("beta",)]


def test_what_is_shared_is_not_the_services_to_change(service: Service, admin: Session) -> None:
    before = admin.rows("SELECT * FROM framework ORDER BY id")
    scope = TenantScope((ALPHA, BETA), (ALPHA, BETA))
    new = insert(framework).values(id="forged", name="forged")
    assert refusal(lambda: service.write(changing(new), scope)) == NOT_ALLOWED
    shared = framework.c.id == "framework-shared"
    for statement in (
        update(framework).values(name="x").where(shared),
        update(framework).values(organization_id=ALPHA).where(shared),
        delete(framework).where(shared),
    ):
        service.write(changing(statement), scope)
    give_away = update(framework).values(organization_id=None).where(framework.c.id == "framework-alpha")
    assert refusal(lambda: service.write(changing(give_away), scope)) == NOT_ALLOWED
    assert admin.rows("SELECT * FROM framework ORDER BY id") == before


def test_nothing_can_be_moved_to_an_organization_that_is_not_writable(service: Service) -> None:
    move = update(framework).values(organization_id=BETA).where(framework.c.organization_id == ALPHA)
    assert refusal(lambda: service.write(changing(move), TenantScope((ALPHA, BETA), (ALPHA,)))) == NOT_ALLOWED


# --- What the service may do at all


def test_the_service_may_do_what_is_declared_and_nothing_else(service: Service, admin: Session) -> None:
    def act(statement: str) -> str:
        return refusal(lambda: service.write(run(statement), IN_ALPHA))

    admin.run("CREATE TABLE of_something_else (secret text)")
    for table in METADATA.sorted_tables:
        key = next(iter(table.primary_key.columns)).name
        assert act(f'UPDATE "{table.name}" SET "{key}" = "{key}"') == NOT_ALLOWED, table.name
        assert act(f'TRUNCATE "{table.name}" CASCADE') == NOT_ALLOWED, table.name
        if table not in (note, framework):
            assert act(f'DELETE FROM "{table.name}"') == NOT_ALLOWED, table.name
    for statement in (
        "UPDATE label SET slug = 'other'",
        f"UPDATE label SET organization_id = '{ALPHA}', name = 'x'",
        "UPDATE account SET secret = 'x'",
        "INSERT INTO organization (id, name, slug) VALUES ('x', 'x', 'x')",
        f"INSERT INTO member (organization_id, account_id) VALUES ('{ALPHA}', 'user-beta')",
        "UPDATE alembic_version SET version_num = 'x'",
        "SELECT * FROM of_something_else",
        "SELECT rolpassword FROM pg_authid",
        "CREATE TABLE mine (id text)",
        "ALTER TABLE label DISABLE ROW LEVEL SECURITY",
        "DROP POLICY normata_select ON label",
        "ALTER TABLE label ADD COLUMN mine text",
        "SELECT pg_read_file('/etc/hostname')",
    ):
        assert act(statement) == NOT_ALLOWED, statement

    def look_past(transaction: Transaction) -> None:
        run("SET LOCAL row_security = off")(transaction)
        transaction.rows(select(label))

    assert refusal(lambda: service.write(look_past, IN_ALPHA)) == NOT_ALLOWED
    assert service.read(run("SELECT version_num FROM alembic_version")) == []


def test_the_command_line_is_held_by_the_rights_of_its_login_only(access: Access) -> None:
    def work(transaction: Transaction) -> int:
        transaction.rows(insert(framework).values(id="new", name="shared"))
        transaction.rows(insert(label).values(new_label("new")))
        return len(transaction.rows(select(label.c.id)))

    with closing(open_url(access.url, database_role=access.role)) as database:
        assert faults(database) == []
        if "_login_" in access.url:
            assert refusal(lambda: database.write_now(work)) == NOT_ALLOWED
        else:
            assert database.write_now(work) == 3


# --- A role that could look past it


@pytest.mark.parametrize("right", ["BYPASSRLS", "SUPERUSER"])
def test_a_role_that_row_level_security_does_not_bind_is_refused(postgres: Server, right: str) -> None:
    role, name = f"normata_{uuid4().hex[:12]}", f"normata_{uuid4().hex}"
    postgres.run(f"CREATE ROLE {role} NOLOGIN {right}")
    url = postgres.create(name)
    try:
        with pytest.raises(Unavailable, match=role):
            build(url, database_role=role)
        with session(url) as looking:
            assert looking.value("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    finally:
        postgres.drop(name)
        postgres.run(f"DROP ROLE {role}")


def test_the_tables_owner_is_refused_as_the_services_role(owner: Access) -> None:
    """Row-level security binds everybody but superusers, BYPASSRLS, and who owns the table."""
    name = owner.role.removesuffix("_service")
    with closing(open_url(owner.url, database_role=name)) as database:
        with pytest.raises(Unavailable, match=f"{name} is not bound"):
            secure(database)
        assert faults(database) == [f"the role {name} is not bound by row-level security; name another one"]
