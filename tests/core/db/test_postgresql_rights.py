"""Grants, policies and functions are exactly those that are declared; any drift is told, and `migrate` mends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import Column, Connection, MetaData, Table

from normata.core.db.database import Database
from normata.core.db.security import Security, Write
from normata.core.db.types import text
from tests.core.db.example import METADATA, SECURITY, WHO, faults, open_url, secure
from tests.core.db.sessions import Session
from tests.postgres import Server

MENDED = "; run `normata migrate`"
TABLES = METADATA.sorted_tables

# What somebody does to the database, and what is told of it, without the way to mend it.
DRIFTS = {
    # Policies
    "DROP POLICY normata_select ON label": ["the table label has no policy normata_select"],
    "DROP POLICY normata_update ON label": ["the table label has no policy normata_update"],
    "ALTER POLICY normata_select ON label USING (true)": [
        "the policy normata_select of label is not as Normata makes it"
    ],
    "ALTER POLICY normata_update ON label WITH CHECK (true)": [
        "the policy normata_update of label is not as Normata makes it"
    ],
    "ALTER POLICY normata_delete ON note TO PUBLIC": ["the policy normata_delete of note is not as Normata makes it"],
    "CREATE POLICY open ON label TO normata_service USING (true)": [
        "the table label has a policy open that is not Normata's"
    ],
    "CREATE POLICY normata_organization ON framework USING (true)": [
        "the table framework has a policy normata_organization that is not Normata's"
    ],
    "CREATE POLICY normata_delete ON label FOR DELETE TO normata_service USING (true)": [
        "the table label has a policy normata_delete that is not Normata's"
    ],
    "DROP POLICY normata_insert ON note; CREATE POLICY normata_insert ON note AS RESTRICTIVE FOR INSERT"
    " TO normata_service WITH CHECK (true)": ["the policy normata_insert of note is not as Normata makes it"],
    "ALTER TABLE note DISABLE ROW LEVEL SECURITY": ["row-level security is off for the table note"],
    "ALTER TABLE account ENABLE ROW LEVEL SECURITY": ["row-level security is on for the table account"],
    # Grants
    "GRANT DELETE ON label TO normata_service": [
        "the role normata_service has DELETE on the table label, which is too much"
    ],
    "GRANT UPDATE ON label TO normata_service": [
        "the role normata_service has UPDATE on the table label, which is too much"
    ],
    "GRANT UPDATE (slug), TRUNCATE ON label TO normata_service": [
        "the role normata_service has TRUNCATE, UPDATE (slug) on the table label, which is too much"
    ],
    "GRANT SELECT ON account TO normata_service": [
        "the role normata_service has SELECT on the table account, which is too much"
    ],
    "GRANT SELECT (secret) ON account TO PUBLIC": [
        "every role (PUBLIC) has SELECT (secret) on the table account, which is too much"
    ],
    "GRANT SELECT ON note TO normata_service WITH GRANT OPTION": [
        "the role normata_service has SELECT WITH GRANT OPTION on the table note, which is too much"
    ],
    "GRANT SELECT ON alembic_version TO PUBLIC": [
        "every role (PUBLIC) has SELECT on the table alembic_version, which is too much"
    ],
    "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM normata_service": [
        "the role normata_service lacks SELECT (id, name), UPDATE (name) on the table account",
        "the role normata_service lacks SELECT on the table alembic_version",
        "the role normata_service lacks DELETE, INSERT, SELECT, UPDATE (name, organization_id) on the table framework",
        "the role normata_service lacks INSERT, SELECT, UPDATE (archived_at, name) on the table label",
        "the role normata_service lacks SELECT (account_id) on the table member",
        "the role normata_service lacks DELETE, INSERT, SELECT on the table note",
        "the role normata_service lacks SELECT on the table organization",
    ],
    "REVOKE UPDATE (name) ON label FROM normata_service": [
        "the role normata_service lacks UPDATE (name) on the table label"
    ],
    "REVOKE USAGE ON SCHEMA public FROM normata_service, PUBLIC": [
        "the role normata_service may not use the schema public"
    ],
    # Functions
    f"DROP FUNCTION {WHO.name}": [f"the function {WHO.name} is missing"],
    f"REVOKE EXECUTE ON FUNCTION {WHO.name} FROM normata_service": [
        f"the role normata_service may not execute the function {WHO.name}"
    ],
    f"GRANT EXECUTE ON FUNCTION {WHO.name} TO PUBLIC": [f"every role (PUBLIC) may execute the function {WHO.name}"],
    f"ALTER FUNCTION {WHO.name} SECURITY INVOKER": [f"the function {WHO.name} is not as Normata makes it"],
    f"ALTER FUNCTION {WHO.name} SET search_path = pg_temp, public": [
        f"the function {WHO.name} is not as Normata makes it"
    ],
    f"DROP FUNCTION {WHO.name}; CREATE FUNCTION {WHO.name}(text[], text[]) RETURNS integer LANGUAGE sql RETURN 1": [
        f"the function {WHO.name} is not as Normata makes it",
        f"the role normata_service may not execute the function {WHO.name}",
        f"every role (PUBLIC) may execute the function {WHO.name}",
    ],
}


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    """The example, as commands have it."""
    with closing(open_url(postgres_url)) as opened:
        yield opened


@pytest.mark.parametrize("drift", DRIFTS)
def test_drift_is_told_and_mended(database: Database, admin: Session, drift: str) -> None:
    assert faults(database) == []
    admin.run(*drift.split("; "))
    assert faults(database) == [f"{fault}{MENDED}" for fault in DRIFTS[drift]]
    secure(database)
    assert faults(database) == []


def test_what_was_granted_by_a_version_before_is_revoked(database: Database, admin: Session) -> None:
    """Its one policy for everything, and its grants."""
    admin.run(
        *(
            f"DROP POLICY {name} ON {table}"
            for table, name in admin.rows("SELECT tablename, policyname FROM pg_policies")
        ),
        "CREATE POLICY normata_organization ON label TO normata_service USING (true)",
        "GRANT UPDATE (archived_at, slug) ON label TO normata_service",
        "GRANT SELECT ON account TO normata_service",
    )
    secure(database)
    assert faults(database) == []
    assert admin.rows("SELECT policyname::text FROM pg_policies WHERE tablename = 'label' ORDER BY 1") == [
        ("normata_insert",),
        ("normata_select",),
        ("normata_update",),
    ]


def test_what_is_right_is_left_alone(database: Database, admin: Session) -> None:
    """To make a policy locks its table against everybody, and a lookup is asked while `migrate` runs."""
    made = (
        "SELECT 'policy', oid, xmin::text FROM pg_policy UNION ALL"
        " SELECT 'table', oid, xmin::text FROM pg_class WHERE relnamespace = 'public'::regnamespace UNION ALL"
        f" SELECT 'function', oid, prosrc FROM pg_proc WHERE proname = '{WHO.name}' ORDER BY 1, 2"
    )
    before = admin.rows(made)
    admin.run("BEGIN", "LOCK TABLE label IN ACCESS SHARE MODE")
    secure(database)
    admin.run("COMMIT")
    assert admin.rows(made) == before


def test_a_policy_of_another_role_is_nobodys_business(database: Database, admin: Session, postgres: Server) -> None:
    name = f"normata_reports_{uuid4().hex[:12]}"
    postgres.run(f"CREATE ROLE {name} NOLOGIN")
    try:
        admin.run(f"GRANT SELECT ON label TO {name}", f"CREATE POLICY reports ON label TO {name} USING (true)")
        assert faults(database) == []
        secure(database)
        assert admin.value("SELECT count(*) FROM pg_policies WHERE policyname = 'reports'") == 1
    finally:
        admin.run(f"DROP OWNED BY {name}")
        postgres.run(f"DROP ROLE {name}")


def test_what_the_role_may_do_through_another_is_told(postgres: Server, postgres_template: str) -> None:
    """Also the policies of that one apply to it. No migration mends that."""
    role, other = (f"normata_{kind}_{uuid4().hex[:12]}" for kind in ("service", "other"))
    name = f"normata_{uuid4().hex}"
    url = postgres.create(name, template=postgres_template)
    postgres.run(f"CREATE ROLE {role} NOLOGIN", f"CREATE ROLE {other} NOLOGIN", f"GRANT {other} TO {role}")
    try:
        with closing(open_url(url, database_role=role)) as database:
            secure(database)
            assert faults(database) == []
            database.alter_now(
                lambda connection: connection.exec_driver_sql(f"GRANT DELETE, SELECT ON label TO {other}")
            )
            found = [f"the role {role} has DELETE on the table label through another role, which is too much"]
            assert faults(database) == found
            secure(database)
            assert faults(database) == found
    finally:
        postgres.drop(name)
        postgres.run(f"DROP ROLE {role}", f"DROP ROLE {other}")


def test_grants_on_tables_of_others_are_told_and_left_alone(database: Database, admin: Session) -> None:
    admin.run(
        "CREATE TABLE of_something_else (secret text)",
        "GRANT SELECT ON of_something_else TO normata_service",
        "CREATE TABLE of_everybody (x text)",
        "GRANT SELECT ON of_everybody TO PUBLIC",
    )
    found = ["the role normata_service has SELECT on the table of_something_else, which is not Normata's"]
    assert faults(database) == found
    secure(database)
    assert faults(database) == found


def test_a_role_that_is_gone_is_told(postgres_url: str) -> None:
    with closing(open_url(postgres_url, database_role="normata_nobody")) as database:
        assert faults(database) == [f"there is no role normata_nobody{MENDED}"]


def test_an_index_that_is_not_valid_is_told(database: Database, admin: Session) -> None:
    admin.run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'uq_label_slug'::regclass")
    assert faults(database) == ["the index uq_label_slug is not valid; rebuild it with REINDEX"]


def test_a_declaration_that_changes_changes_the_rights(database: Database, admin: Session) -> None:
    changed = replace(SECURITY, writes=(Write("label", "DELETE"),), partly_readable={})

    def told() -> list[str]:
        return database.read_now(lambda transaction: list(database.faults(transaction, METADATA, changed)))

    assert told()
    database.alter_now(lambda connection: database.secure(connection, METADATA, changed))
    assert told() == []
    assert admin.rows(
        "SELECT table_name::text, privilege_type::text FROM information_schema.table_privileges"
        " WHERE grantee = 'normata_service' AND privilege_type <> 'SELECT'"
    ) == [("label", "DELETE")]
    written = admin.rows("SELECT tablename::text, cmd FROM pg_policies WHERE cmd <> 'SELECT'")
    assert written == [("label", "DELETE")]


def test_a_right_on_a_table_that_is_not_there_is_refused(database: Database) -> None:
    wrong = Security((Write("labell", "INSERT"),), ())
    with pytest.raises(ValueError, match="labell"):
        database.alter_now(lambda connection: database.secure(connection, METADATA, wrong))


def test_a_schema_that_is_not_current_is_told_elsewhere(database: Database) -> None:
    wider = MetaData()
    for table in TABLES:
        table.to_metadata(wider)
    Table("of_tomorrow", wider, Column("id", text(128), primary_key=True), Column("organization_id", text(128)))
    found = database.read_now(lambda transaction: list(database.faults(transaction, wider, SECURITY)))
    assert found == []


def test_names_that_must_be_quoted(database: Database, admin: Session) -> None:
    odd = MetaData()
    table = Table(
        "Order",
        odd,
        Column("user", text(128), primary_key=True),
        Column("select", text()),
        info={"organization_column": "user"},
    )
    writes = Write("Order", "UPDATE", frozenset({"select"})), Write("Order", "INSERT")
    security = Security(writes, (), {"Order": frozenset({"user"})})

    def work(connection: Connection) -> None:
        table.create(connection)
        database.secure(connection, odd, security)

    admin.run("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM normata_service")
    database.alter_now(work)
    assert database.read_now(lambda transaction: list(database.faults(transaction, odd, security))) == []
