"""Every schema that ever was, filled, becomes the current one with all that it held."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, select

from normata.cli import check
from normata.core.changes.revisions import ListRevision
from normata.core.db.database import Database
from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from normata.core.schema import migrations
from normata.core.schema.migrations import upgrading
from normata.frameworks.model import ControlCoverage
from normata.operations import OPERATIONS, SECURITY
from normata.records.base import Restorable
from normata.tables import Table
from tests import world
from tests.core.http.samples import enough, sample
from tests.databases import change, migrate, open_url
from tests.served import run_sql, served

VERSIONS = sorted(migrations.known_versions())
SHARES = 3
# SQLite makes a table anew for most changes of it. On PostgreSQL the upgrade of the first version alone goes through
# every migration, so a share of the others is tried there.
FILLED = [(version, "sqlite") for version in VERSIONS] + [(version, "postgresql") for version in VERSIONS[::SHARES]]


def asked(version: str) -> list[Operation]:
    """The operations that are tried after the upgrade of a version: those of one kind, and a share of all others.

    What is stored then is what a fresh load makes, so each need not be tried after each version.
    """
    number = VERSIONS.index(version)
    kind = Restorable.kinds[number % len(Restorable.kinds)]
    left_out = {other.path for other in Restorable.kinds if other is not kind}
    return [one for one in OPERATIONS if one.path.split("/")[1] not in left_out][number % SHARES :: SHARES]


KEPT = {one.cached for one in OPERATIONS if isinstance(one, ListOperation) and one.cached}

Contents = dict[str, list[str]]


@pytest.fixture
def old(old_url: str) -> Iterator[Database]:
    """The database that is to be brought up to date."""
    with closing(open_url(old_url)) as database:
        yield database


@pytest.fixture
def fresh(sqlite_url: str) -> Iterator[Database]:
    """The test world as a load into the current schema makes it."""
    with closing(open_url(sqlite_url)) as database:
        yield database


def forget_the_newer(fresh: Database, old: Database, version: str) -> bool:
    """Take from the world what the schema of a version could not hold; whether what is for sign-in was among it.

    That is newer kinds of record, too, and service accounts.
    """
    there = old.read_now(lambda transaction: transaction.tables())
    newer = [kind.sql().name for kind in Restorable.kinds if kind.sql().name not in there]
    run_sql(fresh, *(f"DELETE FROM {name}" for name in newer))
    if version >= "20261122_11":
        return False
    run_sql(
        fresh,
        *(f"DELETE FROM {name}" for name in ("operator", "session", "invitation", "access_token")),
        "DELETE FROM membership WHERE user_id LIKE 'robot-%'",
        "DELETE FROM user_account WHERE organization_id IS NOT NULL",
    )
    return True


def fill(old: Database, fresh: Database) -> int:
    """Copy all rows of all tables that the old schema has, as far as it has their columns; how many there are."""
    tables = Table.metadata.sorted_tables
    rows = fresh.read_now(
        lambda transaction: {
            table.name: [row._asdict() for row in transaction.rows(select(*table.c))] for table in tables
        }
    )

    def write(connection: Connection) -> int:
        there = MetaData()
        there.reflect(connection)
        written = 0
        for table in tables:
            if table.name in there.tables and rows[table.name]:
                known = there.tables[table.name].c.keys()
                values = [{name: row[name] for name in known if name in row} for row in rows[table.name]]
                connection.execute(table.insert(), values)
                written += len(values)
        return written

    return old.alter_now(write)


def lasting(contents: Contents) -> Contents:
    """Contents without what is new each time: the revisions of lists, and the times of statements."""
    times = re.compile(r", '20\d\d-[^']*', '20\d\d-[^']*'\)$")  # the last columns
    cached = {name: rows for name, rows in contents.items() if name != ListRevision.__tablename__}
    statements = cached[str(ControlCoverage.__tablename__)]
    assert all(times.search(row) for row in statements)
    return cached | {str(ControlCoverage.__tablename__): [times.sub(")", row) for row in statements]}


def revisions(database: Database) -> list[tuple[Any, ...]]:
    """Of which organization and list there is a revision."""
    statement = select(ListRevision.organization_id, ListRevision.list, ListRevision.revision)
    found = database.read_now(lambda transaction: transaction.rows(statement))
    assert all(row.revision for row in found)
    return sorted((row.organization_id, row.list) for row in found)


def faults(database: Database) -> list[str]:
    """What `normata check` finds."""
    return database.read_now(lambda transaction: list(check.faults(database, transaction, SECURITY)))


@pytest.mark.parametrize(("version", "old_url"), FILLED, indirect=["old_url"])
def test_what_an_older_schema_holds_is_what_a_fresh_load_makes(
    version: str, old: Database, fresh: Database, old_url: str
) -> None:
    """In two steps: as far as is needed, with the version before still running, and to the end. Then it is served."""
    lacks_sign_in = forget_the_newer(fresh, old, version)
    assert old.read_now(migrations.is_servable) is (version >= migrations.needed())
    assert fill(old, fresh) > 100
    upgrading.prepare(old, Table.metadata, SECURITY, finish=False)
    assert old.read_now(migrations.version) == max(version, migrations.needed())
    assert old.read_now(migrations.is_servable)
    old.read_now(migrations.require_current)
    assert lasting(world.contents(old)) == lasting(world.contents(fresh))
    migrate(old)
    assert old.read_now(migrations.version) == migrations.head()
    assert lasting(world.contents(old)) == lasting(world.contents(fresh))
    assert revisions(old) == [(name, cached) for name in (world.ALPHA, world.BETA) for cached in sorted(KEPT)]
    assert faults(old) == []
    world.load(old, world.bundle())
    if lacks_sign_in:
        change(old, world.furnish)
    with served(old_url) as service:
        bearers = {user: service.bearer(user) for user in {*map(enough, OPERATIONS)}}
        for operation in asked(version):
            request = sample(operation)
            if isinstance(operation, ChangeOperation):  # it may take away what others are about
                request = request.but(query=request.query | {"dryRun": "true"})
            response = request.send(service.client, bearers[enough(operation)])
            assert response.is_success, response.text


@pytest.mark.parametrize("old_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_least_that_a_reference_needs(old: Database) -> None:
    """One organization with one membership: to make either table anew breaks the reference between them."""
    was_there = ListRevision.__tablename__ in old.read_now(lambda transaction: transaction.tables())
    run_sql(
        old,
        "INSERT INTO organization (id, name, slug) VALUES ('o', 'O', 'o')",
        "INSERT INTO user_account (id, email, name, email_folded) VALUES ('u', 'u@x', 'U', 'u@x')",
        "INSERT INTO membership (id, organization_id, user_id, role) VALUES ('m', 'o', 'u', 'owner')",
    )
    migrate(old)
    assert faults(old) == []
    assert was_there or revisions(old) == [("o", cached) for cached in sorted(KEPT)]
