"""What PostgreSQL itself keeps the service from, by the real declarations: other tenants, and what nothing needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Table as SqlTable
from sqlalchemy import insert, update

from normata.core.changes.unit_of_work import Actor, UnitOfWork
from normata.core.db.transaction import NO_TENANT, NotPermitted, TenantScope, Transaction
from normata.core.db.types import now
from normata.errors import NotFound, Unavailable
from normata.events.model import AuditEvent
from normata.frameworks.control_list import list_controls
from normata.frameworks.control_query import ControlQuery
from normata.frameworks.framework_list import FrameworkQuery, list_frameworks
from normata.identity.tokens.lookup import TOKEN_LOOKUP
from normata.notifications.inbox import NotificationQuery, list_notifications
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.restore import restore
from normata.tables import Table
from tests.core.db.sessions import Service, Session, run
from tests.history.rows import fill
from tests.postgresql.row_level import DELETED, IN_ALPHA, IN_BETA, SECRET
from tests.world import ALPHA, BETA, record_id

IN_BOTH = TenantScope((ALPHA, BETA), (ALPHA, BETA))
NOT_ALLOWED = "42501"  # insufficient_privilege: also what row-level security says
KINDS = Restorable.kinds
TABLES = Table.metadata.sorted_tables

# Not as the declarations have it, so that a table whose model forgets whose it is is found.
OWNED = [
    table
    for table in TABLES
    if ("organization_id" in table.c or table.name == "organization") and "owned_by" not in table.info
]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.path))


def whole_rows(table: SqlTable) -> str:
    """Every row of a table as text, whatever its columns are: all that are no secrets."""
    return f'SELECT ({shown(table)})::text FROM "{table.name}" AS rows ORDER BY 1'


def shown(table: SqlTable) -> str:
    """The columns of a table that are no secrets."""
    names = ", ".join(f'"{column.name}"' for column in table.c if (table.name, column.name) not in SECRET)
    return f"ROW({names})"


def stored(admin: Session, table: SqlTable, *organizations: str) -> list[tuple[Any, ...]]:
    """The rows that are shared, or belong to one of the organizations, as the administrator sees them."""
    owner = "id" if table.name == "organization" else "organization_id"
    shared = "nobodys" not in table.info  # what is of no organization is everybody's, or the operator's
    where = f'{shared} AND "{owner}" IS NULL OR "{owner}" = ANY($1::text[])'
    return admin.rows(f'SELECT ({shown(table)})::text FROM "{table.name}" WHERE {where} ORDER BY 1', organizations)


def everything(admin: Session) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    return {table.name: admin.rows(whole_rows(table)) for table in TABLES}


def refusal(act: Callable[[], object]) -> str:
    """The SQLSTATE that the database refuses something with."""
    with pytest.raises((asyncpg.PostgresError, NotPermitted)) as caught:
        act()
    error: Any = caught.value.__cause__ if isinstance(caught.value, NotPermitted) else caught.value
    return str(error.sqlstate)


# --- Reading


def test_every_table_of_an_organization_is_read_within_the_scope_only(service: Service, admin: Session) -> None:
    """Without any condition a statement shows what is readable and what is shared, whatever is writable."""
    assert len(OWNED) > 20  # the tables have been found at all
    [admin.rows(statement) for statement in fill()]
    for table in OWNED:
        assert stored(admin, table, ALPHA) != stored(admin, table), table.name
        for readable in ((), (ALPHA,), (BETA,), (ALPHA, BETA), (BETA, "org-gone")):
            shown = service.read(run(whole_rows(table)), TenantScope(readable, (ALPHA, BETA)))
            assert list(map(tuple, shown)) == stored(admin, table, *readable), table.name


def test_a_list_of_another_organization_is_empty(service: Service) -> None:
    """The shipped lists are told the wrong organization, as if the check of membership before them were gone."""
    controls = ControlQuery.model_validate({"organizationId": BETA})
    inbox = NotificationQuery.model_validate({"organizationId": BETA})
    frameworks = FrameworkQuery.model_validate({"organizationId": BETA})
    adopted = {"fw-foreign", "fw-star"}
    centralized = {"fw-sun", "fw-moon", "fw-star"}

    outside = TenantScope((), (BETA,))
    for scope, totals, seen in ((IN_ALPHA, (0, 0), set()), (outside, (0, 0), set()), (IN_BETA, (26, 2), adopted)):
        assert service.read(lambda transaction: list_controls(transaction, controls), scope)["total"] == totals[0]
        page = service.read(lambda transaction: list_notifications(transaction, "user-foreigner", inbox), scope)
        assert page["total"] == totals[1]
        items = service.read(lambda transaction: list_frameworks(transaction, frameworks), scope)["items"]
        assert {item["id"] for item in items} == centralized | seen
        assert {item["id"] for item in items if item["isAdopted"]} == seen


def test_of_people_only_those_of_the_same_organizations_are_seen(service: Service) -> None:
    """Whoever is a member of nothing that is readable is not there."""
    of_alpha = {"Owner", "Admin", "Auditor", "Editor", "Viewer", "Robot org-alpha"}
    for readable, seen in (
        ((ALPHA,), of_alpha),
        ((BETA,), {"Foreigner", "Robot org-beta"}),
        ((), set()),
        ((ALPHA, "org-gone"), of_alpha),
    ):
        shown = service.read(run("SELECT name FROM user_account"), TenantScope(readable, (ALPHA, BETA)))
        assert {name for (name,) in shown} == seen


# --- Writing


@every_kind
def test_a_restore_out_of_scope_fails_though_its_own_checks_let_it_through(
    service: Service, admin: Session, kind: type[Restorable]
) -> None:
    """The unit of work takes the caller for an owner, so that the database alone stands in the way."""
    target = record_id(kind, "archived", BETA)

    def work(transaction: Transaction) -> Any:
        return restore(UnitOfWork(transaction, Actor(), IN_BETA, None), kind, target)

    before = everything(admin)
    for scope in (IN_ALPHA, NO_TENANT, TenantScope((), (BETA,))):
        with pytest.raises(NotFound):
            service.write(work, scope)
    with pytest.raises(Unavailable):  # it is there, archived, and cannot be changed
        service.write(work, TenantScope((ALPHA, BETA), (ALPHA,)))
    assert everything(admin) == before
    assert service.write(work, IN_BETA).id == target
    assert admin.value(f'SELECT archived_at IS NULL FROM "{kind.sql().name}" WHERE id = $1', target) is True


def test_a_change_without_any_condition_touches_only_what_is_writable(service: Service, admin: Session) -> None:
    moment = now()

    def work(transaction: Transaction) -> None:
        for kind in KINDS:
            transaction.rows(update(kind.sql()).values(archived_at=moment))

    before = {kind: stored(admin, kind.sql(), BETA) for kind in KINDS}
    service.write(work)
    for kind in KINDS:
        assert admin.value(f'SELECT count(*) FROM "{kind.sql().name}" WHERE archived_at IS NULL') > 0
    service.write(work, TenantScope((ALPHA, BETA), (ALPHA,)))
    for kind in KINDS:
        live = f"SELECT count(*) FROM \"{kind.sql().name}\" WHERE archived_at IS NULL AND organization_id = '{ALPHA}'"
        assert admin.value(live) == 0
        assert stored(admin, kind.sql(), BETA) == before[kind]


@pytest.mark.parametrize(
    "scope", [NO_TENANT, IN_ALPHA, TenantScope((ALPHA, BETA), (ALPHA,))], ids=["nothing", "alpha", "readable only"]
)
def test_nothing_can_be_written_for_an_organization_out_of_scope(
    service: Service, admin: Session, scope: TenantScope
) -> None:
    event = insert(AuditEvent).values(
        id="new", organization_id=BETA, at=now(), action="restore", entity_type="Label", entity_id="x",
        user_id="x", token_id="x", request_id="x",
    )  # fmt: skip
    notice = insert(Notification).values(
        id="new", organization_id=BETA, user_id="user-foreigner", type="t", category="SYSTEM", payload={},
        created_at=now(),
    )  # fmt: skip
    for statement, table in ((event, "audit_event"), (notice, "notification")):
        added = f"SELECT count(*) FROM {table} WHERE id = 'new'"
        assert refusal(lambda: service.write(lambda one: one.rows(statement), scope)) == NOT_ALLOWED  # noqa: B023
        assert admin.value(added) == 0
        service.write(lambda one: one.rows(statement), IN_BETA)  # noqa: B023
        assert admin.value(added) == 1


# --- Rights


REFUSED = {
    "people": (
        "UPDATE user_account SET email = 'x@x.example'",
        "UPDATE user_account SET organization_id = NULL",
        "INSERT INTO user_account (id, name) VALUES ('x', 'x')",
        "INSERT INTO operator (user_id, since) VALUES ('user-editor', now())",
    ),
    "sign-in": (
        "SELECT hash FROM password",
        "SELECT credential FROM passkey",
        "SELECT digest FROM session",
        "UPDATE session SET ended_at = now() WHERE digest = 'x'",
        "SELECT digest FROM sign_in_link",
        "UPDATE session SET user_id = 'user-owner'",
        "UPDATE session SET expires_at = 'infinity'",
        "UPDATE password SET user_id = 'user-owner'",
        "UPDATE passkey SET credential = 'x'",
        "UPDATE external_identity SET user_id = 'user-owner'",
        "UPDATE sign_in_link SET expires_at = 'infinity'",
        (
            "INSERT INTO sign_in_link (id, user_id, digest, created_at, expires_at)"
            " VALUES ('x', 'user-owner', 'x', now(), now())"
        ),
        "INSERT INTO password (user_id, hash, changed_at) VALUES ('user-owner', 'x', now())",
        (
            "INSERT INTO session (id, user_id, digest, means, created_at, last_used_at, expires_at, address,"
            " user_agent) VALUES ('x', 'user-owner', 'x', 'link', now(), now(), now(), '', '')"
        ),
    ),
    "tokens": (
        "SELECT digest FROM access_token",
        "SELECT id FROM access_token WHERE digest LIKE '0%'",
        "SELECT id FROM access_token ORDER BY digest",
        "UPDATE access_token SET last_used_at = now() WHERE digest = 'x'",
        "UPDATE access_token SET last_used_at = now() RETURNING digest",
        "UPDATE access_token SET expires_at = NULL",
        "UPDATE access_token SET scope = 'admin'",
        (
            "INSERT INTO access_token (id, user_id, digest, scope, created_at)"
            " VALUES ('x', 'user-owner', 'x', 'write', now())"
        ),
    ),
    "roles": (
        "UPDATE membership SET user_id = 'user-nobody'",
        f"UPDATE membership SET organization_id = '{BETA}'",
        "INSERT INTO membership (id, organization_id, user_id, role) VALUES ('x', 'org-gamma', 'user-nobody', 'owner')",
        "INSERT INTO organization (id, name, slug) VALUES ('x', 'x', 'x')",
        "UPDATE organization SET slug = 'x'",
    ),
    "catalogs": (
        "INSERT INTO framework (id, identifier, slug, name) VALUES ('x', 'x', 'x', 'x')",
        "UPDATE framework SET organization_id = NULL",
        "UPDATE control SET organization_id = NULL",
        "UPDATE control SET id = 'x'",
        "UPDATE framework_adoption SET framework_id = 'fw-star'",
        f"UPDATE control_coverage SET organization_id = '{BETA}'",
        "UPDATE control_coverage SET control_id = 'sun.A.2'",
        f"UPDATE set_aside_match SET organization_id = '{BETA}'",
        "INSERT INTO mapping_document VALUES ('new', NULL, 'x', 'x', NULL, now(), now())",
        "UPDATE mapping_document SET organization_id = NULL",
        "DELETE FROM mapping_document",
        f"UPDATE effective_coverage SET organization_id = '{BETA}'",
    ),
    "history": (
        "UPDATE audit_event SET user_id = 'x'",
        "UPDATE notification SET user_id = 'x'",
        "UPDATE notification SET payload = '{}'",
        "DELETE FROM reminder",
        "UPDATE reminder SET reminded_at = now()",
        f"UPDATE list_revision SET organization_id = '{BETA}'",
        "UPDATE alembic_version SET version_num = 'x'",
    ),
    "the schema": (
        "CREATE TABLE mine (id text)",
        "ALTER TABLE label ADD COLUMN mine text",
        "ALTER TABLE label DISABLE ROW LEVEL SECURITY",
        "DROP POLICY normata_select ON label",
        f"DROP FUNCTION {TOKEN_LOOKUP.name}",
        "SELECT rolpassword FROM pg_authid",
    ),
}


@pytest.mark.parametrize("about", REFUSED)
def test_what_nothing_needs_is_refused(service: Service, admin: Session, about: str) -> None:
    before = everything(admin)
    for statement in REFUSED[about]:
        assert refusal(lambda: service.write(run(statement), IN_BOTH)) == NOT_ALLOWED, statement  # noqa: B023
    assert everything(admin) == before


def test_what_a_record_is_and_whose_cannot_be_changed(service: Service) -> None:
    """All else can: what a record says, and whether it is archived."""
    for kind in KINDS:
        table = kind.sql()
        for column in table.c:
            statement = f'UPDATE "{table.name}" SET "{column.name}" = "{column.name}"'
            if column.name not in ("id", "organization_id"):
                service.write(run(statement), IN_BOTH)
            else:
                assert refusal(lambda: service.write(run(statement), IN_BOTH)) == NOT_ALLOWED, statement  # noqa: B023


def test_what_is_centralized_cannot_be_changed(service: Service, admin: Session) -> None:
    """An organization may change frameworks, controls and matches of its own, and nothing else."""
    shared = "SELECT * FROM {} WHERE organization_id IS NULL ORDER BY id"
    for table in ("framework", "control", "control_match"):
        before = admin.rows(shared.format(table))
        assert before
        changed = "match_level = 3 - match_level" if table == "control_match" else "name = 'Mine'"
        service.write(run(f"UPDATE {table} SET {changed} WHERE organization_id IS NULL"), IN_BOTH)
        assert admin.rows(shared.format(table)) == before
    before = admin.rows(shared.format("control_match"))
    service.write(run("DELETE FROM control_match WHERE organization_id IS NULL"), IN_BOTH)
    assert admin.rows(shared.format("control_match")) == before


def test_no_more_can_be_deleted_than_must_be(service: Service) -> None:
    for table in TABLES:
        delete = () if table.name in DELETED else (f'DELETE FROM "{table.name}"',)
        for statement in (*delete, f'TRUNCATE "{table.name}" CASCADE'):
            assert refusal(lambda: service.write(run(statement), IN_BOTH)) == NOT_ALLOWED, statement  # noqa: B023
