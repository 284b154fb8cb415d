"""The schema's history: from nothing it leads to what the models say, and it leaves what is not ours alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from normata.core.db.database import Database
from normata.core.db.trigrams import OWN_TABLES
from normata.core.schema import migrations
from normata.core.schema.migrations import upgrading
from normata.core.schema.migrations.comparing import belongs_to, differs
from normata.operations import SECURITY
from normata.tables import Table
from tests import world
from tests.databases import migrate, open_url
from tests.served import run_sql


def shape(connection: Connection) -> dict[str, Any]:
    """All that the database knows of its tables, but for Alembic's own."""
    inspector = inspect(connection)
    return {
        name: {
            "columns": [
                (column["name"], shown(column["type"]), column["nullable"], column["default"])
                for column in inspector.get_columns(name)
            ],
            "primary key": inspector.get_pk_constraint(name),
            "foreign keys": sorted(inspector.get_foreign_keys(name), key=repr),
            "unique": sorted(inspector.get_unique_constraints(name), key=repr),
            "checks": sorted(inspector.get_check_constraints(name), key=repr),
            "indexes": sorted(map(repr, map(index_shape, inspector.get_indexes(name)))),
        }
        for name in inspector.get_table_names()
        if name not in {"alembic_version", *OWN_TABLES}
    }


def shown(type_: object) -> str:
    """A type, but for lengths: SQLite takes texts of any length, so no migration changes what it says of them."""
    return re.sub(r"length=\d+", "", repr(type_))


def index_shape(index: Any) -> dict[str, Any]:
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}
    return {"name": index["name"], "columns": index["column_names"], "unique": index["unique"], "options": options}


def table_names(database: Database) -> frozenset[str]:
    return database.read_now(lambda transaction: transaction.tables())


@pytest.fixture
def blank(tmp_path: Path) -> Iterator[Database]:
    """A database with nothing in it at all."""
    with closing(open_url(f"sqlite:///{tmp_path / 'blank.db'}", create=True)) as database:
        yield database


@pytest.mark.long
def test_from_empty_they_lead_to_the_models(empty: Database) -> None:
    def differences(connection: Connection) -> list[Any]:
        options = {
            "compare_type": differs,
            "compare_server_default": True,
            "include_object": belongs_to(connection.dialect.name),
        }
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, Table.metadata))

    assert empty.alter_now(differences) == []


@pytest.mark.parametrize("empty_url", ["sqlite"], indirect=True)  # tests/postgresql has the other's
def test_constraints_and_partial_indexes_are_those_of_the_models(empty: Database, blank: Database) -> None:
    """Alembic's own comparison passes over conditions of indexes, deferred constraints and the order of columns."""
    blank.alter_now(Table.metadata.create_all)
    migrated, declared = empty.alter_now(shape), blank.alter_now(shape)
    assert migrated.keys() == declared.keys()
    for name, table in declared.items():
        assert migrated[name] == table
    assert "archived_at IS NULL" in repr(declared["label"]["indexes"])


def test_there_is_one_line_of_history_and_file_names_tell_it(blank: Database) -> None:
    def walk(connection: Connection) -> None:
        script = ScriptDirectory.from_config(upgrading.configuration(connection, Table.metadata))
        assert len(script.get_bases()) == 1
        assert script.get_heads() == [migrations.head()]
        assert {revision.revision for revision in script.walk_revisions()} == migrations.known_versions()

    blank.alter_now(walk)
    assert migrations.needed() in migrations.known_versions()


def test_every_migration_is_dated() -> None:
    for revision in migrations.known_versions():
        day, _, number = revision.partition("_")
        assert (len(day), len(number)) == (8, 2)
        assert (day + number).isdigit()


def test_a_blank_database_becomes_current(blank: Database) -> None:
    assert blank.read_now(migrations.version) is None
    migrate(blank)
    assert blank.read_now(migrations.version) == migrations.head()


@pytest.mark.long
@pytest.mark.parametrize("finish", [True, False])
def test_again_changes_nothing(database: Database, finish: bool) -> None:
    before, tables = world.contents(database), database.alter_now(shape)
    upgrading.prepare(database, Table.metadata, SECURITY, finish=finish)
    assert world.contents(database) == before
    assert database.alter_now(shape) == tables


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (["CREATE TABLE recipe (id INTEGER PRIMARY KEY)"], "tables of something else"),
        (
            ["CREATE TABLE alembic_version (version_num VARCHAR(32))", "INSERT INTO alembic_version VALUES ('9999')"],
            "newer version of Normata",
        ),
    ],
)
def test_what_is_not_ours_or_newer_is_left_alone(blank: Database, statements: list[str], reason: str) -> None:
    run_sql(blank, *statements)
    before = table_names(blank)
    with pytest.raises(migrations.UnusableSchema, match=reason):
        migrate(blank)
    assert table_names(blank) == before


@pytest.mark.long
def test_a_migration_that_fails_leaves_nothing_behind(blank: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the power fails")

    monkeypatch.setattr(blank, "secure", fail)  # the last step
    with pytest.raises(RuntimeError, match="power"):
        migrate(blank)
    assert table_names(blank) == frozenset()
