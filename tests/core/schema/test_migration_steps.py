"""Migrations come in steps: what a version of the program needs of them, and how far a database is brought."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, inspect, select

from normata.core.db.database import Database
from normata.core.schema import migrations
from normata.core.schema.migrations import UnusableSchema, upgrading
from normata.core.schema.table import sql_table
from normata.identity.model import Invitation, User
from normata.operations import SECURITY
from normata.tables import Table
from tests.core.schema.conftest import upgrade_to
from tests.databases import open_url, tamper
from tests.postgres import Server
from tests.served import run_sql

pytestmark = pytest.mark.long


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes the program believe that these are all migrations."""

    def believe(*names: str) -> None:
        monkeypatch.setattr(migrations, "_migrations", lambda: tuple(Path(f"{name}.py") for name in names))
        forget()

    def forget() -> None:
        migrations.known_versions.cache_clear()
        migrations.needed.cache_clear()

    yield believe
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize(
    ("names", "needed"),
    [
        (["20260101_01_first"], "20260101_01"),
        (["20260101_01_first", "20260102_01_second"], "20260102_01"),
        (["20260101_01_first", "20260102_01_after_first"], "20260101_01"),
        (["20260101_01_first", "20260102_01_second", "20260102_02_after_a", "20260103_01_after_b"], "20260102_01"),
        (["20260101_01_first", "20260102_01_after_first", "20260103_01_third"], "20260103_01"),
        (["20260101_01_first", "20260102_01_afternoon"], "20260102_01"),
        (["20260101_01_first", "20260102_01_the_day_after_tomorrow"], "20260102_01"),
    ],
)
def test_what_a_version_needs_is_its_newest_step_but_for_those_after(
    history: Any, names: list[str], needed: str
) -> None:
    history(*names)
    assert migrations.needed() == needed
    assert migrations.head() == names[-1][:11]


NOT_CURRENT, NEWER, FOREIGN = "run `normata migrate`", "upgrade the program", "tables of something else"


@pytest.mark.parametrize(
    ("version", "servable", "refusal"),
    [
        ("20260101_01", False, NOT_CURRENT),
        ("20260102_01", True, None),
        ("20260102_02", True, None),
        ("20260103_01", True, NEWER),
    ],
    ids=["older", "before", "after", "newer"],
)
def test_what_can_be_served_and_what_commands_take(
    history: Any, database: Database, version: str, servable: bool, refusal: str | None
) -> None:
    """A process that serves goes on when the next version comes; a command must know what it changes."""
    history("20260101_01_first", "20260102_01_second", "20260102_02_after_second")
    tamper(database, f"UPDATE alembic_version SET version_num = '{version}'")
    assert database.read_now(migrations.is_servable) is servable
    if refusal is None:
        database.read_now(migrations.require_current)
        return
    with pytest.raises(UnusableSchema, match=refusal):
        database.read_now(migrations.require_current)


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [("DELETE FROM alembic_version", FOREIGN), ("DROP TABLE alembic_version", FOREIGN)],
)
def test_without_a_version_nothing_is_served_or_taken(database: Database, statement: str, refusal: str) -> None:
    run_sql(database, statement)
    assert database.read_now(migrations.is_servable) is False
    with pytest.raises(UnusableSchema, match=refusal):
        database.read_now(migrations.require_current)


@pytest.fixture(params=["sqlite", "postgresql"])
def blank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with nothing in it at all."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path / 'blank.db'}"
        else:
            server: Server = request.getfixturevalue("postgres")
            name = f"normata_{uuid4().hex}"
            url = server.create(name)
            stack.callback(server.drop, name)
        yield stack.enter_context(closing(open_url(url, create=True)))


def prepare(database: Database, *, finish: bool) -> str | None:
    """The version that a database has after `normata migrate`, with or without `--after`."""
    upgrading.prepare(database, Table.metadata, SECURITY, finish=finish)
    return database.read_now(migrations.version)


def test_a_new_database_is_made_in_one_go(blank: Database) -> None:
    assert not blank.read_now(migrations.is_servable)
    with pytest.raises(UnusableSchema, match=NOT_CURRENT):
        blank.read_now(migrations.require_current)
    assert prepare(blank, finish=False) == migrations.head()
    assert blank.read_now(migrations.is_servable)


def test_what_is_current_stays_as_it_is(blank: Database) -> None:
    """How older ones are brought up to date is in test_upgrades.py."""
    assert prepare(blank, finish=True) == migrations.head()
    assert prepare(blank, finish=True) == migrations.head(), "again is harmless"
    assert prepare(blank, finish=False) == migrations.head(), "there is no way back"


def test_what_the_version_before_needs_is_there_until_the_end(blank: Database) -> None:
    """Of the first upgrade in two steps: the one revision of an organization, and the function that read it."""

    def left(connection: Connection) -> tuple[bool, bool]:
        columns = {column["name"] for column in inspect(connection).get_columns("organization")}
        asked = "SELECT count(*) FROM pg_proc WHERE proname = 'normata_admit'"
        return "revision" in columns, not blank.embedded and connection.exec_driver_sql(asked).scalar() == 1

    upgrade_to(blank, "20261122_01")
    if not blank.embedded:
        signature = "public.normata_admit(digests text[], organizations text[])"
        run_sql(blank, f"CREATE FUNCTION {signature} RETURNS integer LANGUAGE sql RETURN 1")
    assert blank.alter_now(left) == (True, not blank.embedded)
    upgrade_to(blank, "20261122_02")
    assert blank.alter_now(left) == (False, False)
    assert prepare(blank, finish=True) == migrations.head()


@pytest.mark.parametrize("old_url", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("version", ["20261124_01"])
def test_addresses_are_compared_exactly_from_then_on(old_url: str) -> None:
    """As soon as the new version may serve, and what the one before writes meanwhile in the end."""
    a_label, u_label = "kate@xn--grobank-2va.example", "kate@großbank.example"
    with closing(open_url(old_url)) as old:

        def add(user_id: str, email: str, folded: str) -> str:
            values = f"('{user_id}', '{email}', 'U', '{folded}')"
            return f"INSERT INTO user_account (id, email, name, email_folded) VALUES {values}"

        def folded() -> dict[str, str | None]:
            table = sql_table(User)
            statement = select(table.c.id, table.c.email_folded)
            return {row.id: row.email_folded for row in old.read_now(lambda transaction: transaction.rows(statement))}

        run_sql(
            old,
            "INSERT INTO organization (id, name, slug) VALUES ('o', 'O', 'o')",
            add("ascii", "Kate@example.org", "kate@example.org"),
            add("sharp", u_label, "kate@grossbank.example"),
            add("wide", "\uff4bate@xn--grobank-2va.example", a_label),
            add("twice", "jo@ünï.example", "jo@ünï.example"),
            add("a-label", "Jo@xn--n-nga1b.example", "jo@xn--n-nga1b.example"),
            "INSERT INTO invitation (id, organization_id, email, email_folded, role, digest, created_at, expires_at)"
            f" VALUES ('i', 'o', '{u_label}', 'kate@grossbank.example', 'viewer', 'd', '2026-01-02 00:00:00',"
            " '2026-01-02 00:00:00')",
        )
        upgrade_to(old, "20261124_10")
        exact = {
            "ascii": "kate@example.org",
            "sharp": a_label,
            "wide": "\uff4bate@xn--grobank-2va.example",
            "twice": None,
            "a-label": "jo@xn--n-nga1b.example",
        }
        assert folded() == exact
        invited = select(sql_table(Invitation).c.email_folded)
        assert old.read_now(lambda transaction: transaction.scalars(invited)) == [a_label]
        run_sql(old, add("late", "straße@example.org", "strasse@example.org"))
        assert prepare(old, finish=True) == migrations.head()
        assert folded() == exact | {"late": "straße@example.org"}
