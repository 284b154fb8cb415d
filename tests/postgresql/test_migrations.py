"""Migrations on PostgreSQL: many processes at once, locks that others hold, and schemas that are not current."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, MetaData, inspect

from normata.cli import check
from normata.core.db.types import UtcTimestamp
from normata.core.schema import migrations
from normata.core.schema.migrations import upgrading
from normata.core.schema.migrations.comparing import belongs_to, differs
from normata.errors import Unavailable
from normata.operations import SECURITY
from normata.tables import Table
from tests.core.db.sessions import Session, as_role, session, wait_until
from tests.databases import migrate, open_url
from tests.postgres import Server
from tests.postgresql.conftest import is_one_sentence, normata, start
from tests.server import reserved_port

TABLES = Table.metadata.sorted_tables


def differences(url: str) -> list[Any]:
    """What the models say and the schema does not, or the other way round."""

    def compare(connection: Connection) -> list[Any]:
        options = {
            "compare_type": differs,
            "compare_server_default": True,
            "include_object": belongs_to(connection.dialect.name),
        }
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, Table.metadata))

    with closing(open_url(url)) as database:
        return database.alter_now(compare)


def tables(admin: Session) -> set[str]:
    """The names of all tables."""
    return {name for (name,) in admin.rows("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")}


def secured(admin: Session) -> set[tuple[str, str]]:
    """The tables that row-level security holds, each with the roles of its policies."""
    return set(
        admin.rows(
            "SELECT c.relname::text, array_to_string(array_agg(DISTINCT r.rolname), ',') FROM pg_class c"
            " JOIN pg_policy p ON p.polrelid = c.oid JOIN pg_roles r ON r.oid = ANY (p.polroles)"
            " WHERE c.relrowsecurity GROUP BY 1"
        )
    )


OWNED = {table.name for table in TABLES if "organization_id" in table.c or table.name == "organization"}


def is_secured(admin: Session, role: str) -> bool:
    """Whether the database itself keeps apart the rows of organizations, for this role and no other."""
    found = secured(admin)
    return {name for name, _ in found} >= OWNED and {roles for _, roles in found} == {role}


def run_all(*urls: str, role: str) -> list[tuple[int, str]]:
    """``normata migrate`` of all addresses at once: the exit codes, and what was said on standard error."""
    processes = [start("migrate", url=url, settings={"NORMATA_DATABASE_ROLE": role}) for url in urls]
    try:
        said = [process.communicate(timeout=180)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [(process.returncode, errors) for process, errors in zip(processes, said, strict=True)]


@pytest.mark.long
def test_several_processes_migrate_an_empty_database_at_once(new_role: str, blank_url: str) -> None:
    assert run_all(*[blank_url] * 3, role=new_role) == [(0, "")] * 3
    assert differences(blank_url) == []
    with session(blank_url) as admin:
        assert admin.rows("SELECT version_num FROM alembic_version") == [(migrations.head(),)]
        assert tables(admin) == {table.name for table in TABLES} | {"alembic_version"}
        assert is_secured(admin, new_role)


@pytest.mark.long
def test_two_databases_of_one_server_make_the_role_at_once(postgres: Server, new_role: str, blank_url: str) -> None:
    """Roles are the whole server's, where the lock that keeps migrations apart is one database's."""
    maintenance = postgres.url("postgres")
    with session(maintenance) as other, session(blank_url) as watching:
        other.run("BEGIN", f"CREATE ROLE {new_role} NOLOGIN")  # as far as another database's migration has come
        process = start("migrate", url=blank_url, settings={"NORMATA_DATABASE_ROLE": new_role})
        try:
            wait_until(watching.waiting, 60)
            other.run("COMMIT")
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        assert (process.returncode, errors) == (0, "")
        assert is_secured(watching, new_role)


def test_the_migrations_lead_to_the_models(postgres_url: str) -> None:
    assert differences(postgres_url) == []
    with session(postgres_url) as admin:
        partial = dict(
            admin.rows(
                "SELECT i.relname::text, pg_get_expr(x.indpred, x.indrelid) FROM pg_index x JOIN pg_class i"
                " ON i.oid = x.indexrelid WHERE x.indpred IS NOT NULL AND x.indisunique"
            )
        )
        expected = {index.name for table in TABLES for index in table.indexes if index.unique}
        assert partial == dict.fromkeys(expected, "(archived_at IS NULL)") | {"uq_link_live": "(removed_at IS NULL)"}
        assert expected
        instants = admin.rows(
            "SELECT table_name::text, column_name::text FROM information_schema.columns"
            " WHERE table_schema = 'public' AND data_type = 'timestamp with time zone'"
        )
        assert set(instants) == {
            (table.name, column.name)
            for table in TABLES
            for column in table.columns
            if isinstance(column.type, UtcTimestamp)
        }
        texts = admin.rows(
            "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'public'"
            " AND data_type IN ('text', 'character varying') AND collation_name IS DISTINCT FROM 'C'"
            " AND table_name <> 'alembic_version'"
        )
        assert texts == []


@pytest.mark.long
def test_to_widen_identifiers_writes_no_row_and_hardly_an_index(blank_url: str) -> None:
    """And policies, which hold on to the columns, are there again afterwards. PostgreSQL makes partial indexes anew."""
    files = "SELECT relname::text, relfilenode::int FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    lengths = (
        "SELECT DISTINCT character_maximum_length::int FROM information_schema.columns"
        " WHERE table_schema = 'public' AND column_name IN ('id', 'organization_id', 'parent_id')"
    )
    with closing(open_url(blank_url, create=True)) as database, session(blank_url) as admin:

        def older(connection: Connection) -> None:
            command.upgrade(upgrading.configuration(connection, Table.metadata), "20261122_03")
            there = MetaData()
            for table in Table.metadata.sorted_tables:
                if inspect(connection).has_table(table.name):
                    table.to_metadata(there)
            for table in there.tables.values():  # which may refer to tables that are newer
                for key in list(table.foreign_keys):
                    if key.target_fullname.partition(".")[0] not in there.tables:
                        table.foreign_keys.discard(key)
                        key.parent.foreign_keys.discard(key)
            columns = {name: {one["name"] for one in inspect(connection).get_columns(name)} for name in there.tables}
            for name in ("user_account", "access_token"):  # whose policies look at a column that is newer
                there.remove(there.tables[name])
            writes = tuple(
                write._replace(columns=write.columns & columns[write.table])
                for write in SECURITY.writes
                if write.table in there.tables
            )
            partly = {name: found for name, found in SECURITY.partly_readable.items() if name in there.tables}
            database.secure(connection, there, replace(SECURITY, writes=writes, partly_readable=partly))

        database.alter_now(older)
        before, policies = dict(admin.rows(files)), secured(admin)
        assert (admin.rows(lengths), bool(policies)) == ([(128,)], True)
        migrate(database)
        after = dict(admin.rows(files))
        assert admin.rows(lengths) == [(255,)]
        there = before.keys() & after.keys()  # a later step has another index in the place of one
        assert all(name.endswith("_live_slug") for name in there if after[name] != before[name])
        assert policies <= secured(admin)
        assert database.read_now(lambda transaction: list(check.faults(database, transaction, SECURITY))) == []


def test_a_column_more_or_an_index_less_is_a_difference(postgres_url: str) -> None:
    """That the comparison sees what it is for."""
    with session(postgres_url) as admin:
        admin.run("ALTER TABLE label ADD COLUMN extra text", "DROP INDEX uq_label_live_slug")
        admin.run("ALTER TABLE task ALTER COLUMN deadline TYPE timestamp")
    found = {str(change[0] if isinstance(change, tuple) else change[0][0]) for change in differences(postgres_url)}
    assert found == {"remove_column", "add_index", "modify_type"}


@pytest.mark.long
def test_a_lock_that_somebody_holds_stops_it_in_time(postgres_url: str) -> None:
    """A reader's is enough. Nothing has been changed then, and the next try succeeds."""
    with session(postgres_url) as holder, session(postgres_url) as admin, closing(open_url(postgres_url)) as database:
        admin.run("ALTER TABLE label DISABLE ROW LEVEL SECURITY")  # so that there is something to do
        holder.run("BEGIN", "LOCK TABLE label IN ACCESS SHARE MODE")
        started = time.monotonic()
        with pytest.raises(Unavailable, match="lock"):
            migrate(database)
        assert time.monotonic() - started < 20  # five seconds for the lock
        holder.run("ROLLBACK")
        assert "label" not in {name for name, _ in secured(admin)}
        migrate(database)
        assert is_secured(admin, "normata_service")


@pytest.mark.long
def test_a_role_that_cannot_be_made_is_told_in_one_sentence(postgres: Server, new_role: str, blank_url: str) -> None:
    """Who owns the database but may make no roles; with the role there and granted, it is enough."""
    owner = f"{new_role}_owner"
    name = blank_url.partition("?")[0].rpartition("/")[2]
    postgres.run(f"CREATE ROLE {owner} LOGIN PASSWORD 'owner'", f'ALTER DATABASE "{name}" OWNER TO {owner}')
    url, settings = as_role(blank_url, owner, "owner"), {"NORMATA_DATABASE_ROLE": new_role}
    try:
        done = normata("migrate", url=url, settings=settings)
        assert done.returncode == 1
        assert is_one_sentence(done.stderr), done.stderr
        with session(blank_url) as admin:
            assert tables(admin) == set()
        postgres.run(f"CREATE ROLE {new_role} NOLOGIN", f"GRANT {new_role} TO {owner}")
        done = normata("migrate", url=url, settings=settings)
        assert (done.returncode, done.stderr) == (0, "")
    finally:
        postgres.drop(name)
        postgres.run(f"DROP ROLE {owner}")


@pytest.mark.parametrize(
    ("command", "schema", "reason"),
    [
        ("serve", "empty", "run `normata migrate`"),
        ("load", "unknown", "newer version"),
        ("serve", "foreign", "something else"),
    ],
)
def test_serving_and_loading_refuse_a_schema_that_is_not_current(
    blank_url: str, tmp_path: Path, command: str, schema: str, reason: str
) -> None:
    bundle = tmp_path / "bundle.json"
    bundle.write_text(json.dumps({"organizations": [{"id": "o", "name": "O"}]}))
    with session(blank_url) as admin, reserved_port() as port:
        if schema == "unknown":
            admin.run(
                "CREATE TABLE alembic_version (version_num varchar(32) NOT NULL PRIMARY KEY)",
                "INSERT INTO alembic_version VALUES ('20000101_01')",
            )
        if schema == "foreign":
            admin.run("CREATE TABLE label (id text)")
        before = tables(admin)
        arguments = [str(bundle)] if command == "load" else ["--port", str(port)]
        done = normata(command, *arguments, url=blank_url)
        assert done.returncode == 1
        assert is_one_sentence(done.stderr), done.stderr
        assert reason in done.stderr
        assert tables(admin) == before


def test_migrate_leaves_what_it_does_not_know_alone(blank_url: str, postgres_url: str) -> None:
    with session(blank_url) as admin:
        admin.run("CREATE TABLE of_something_else (id text)")
        done = normata("migrate", url=blank_url)
        assert (done.returncode, is_one_sentence(done.stderr)) == (1, True)
        assert tables(admin) == {"of_something_else"}
    with session(postgres_url) as admin:
        admin.run("UPDATE alembic_version SET version_num = '99991231_99'")
        before = tables(admin)
        done = normata("migrate", url=postgres_url)
        assert (done.returncode, is_one_sentence(done.stderr)) == (1, True)
        assert "newer" in done.stderr
        assert tables(admin) == before


def test_check_names_every_table_that_has_lost_its_security_and_migrate_mends_it(postgres_url: str) -> None:
    """What else can come loose is in tests/db."""
    with session(postgres_url) as admin, closing(open_url(postgres_url)) as database:
        for name in OWNED:
            admin.run(f'ALTER TABLE "{name}" DISABLE ROW LEVEL SECURITY')
        found = database.read_now(lambda transaction: list(check.faults(database, transaction, SECURITY)))
        for name in OWNED:
            assert f"row-level security is off for the table {name}; run `normata migrate`" in found
        migrate(database)
        assert is_secured(admin, "normata_service")
        assert database.read_now(lambda transaction: list(check.faults(database, transaction, SECURITY))) == []


@pytest.mark.parametrize("command", ["migrate", "serve"])
def test_commands_say_in_one_sentence_that_there_is_no_such_database(postgres: Server, command: str) -> None:
    with reserved_port() as port:
        options = ["--port", str(port)] if command == "serve" else []
        done = normata(command, *options, url=postgres.url(f"normata_{uuid4().hex}"))
    assert done.returncode == 1
    assert is_one_sentence(done.stderr), done.stderr
    assert "does not exist" in done.stderr
