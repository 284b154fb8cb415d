"""Opening the tests' databases past the application."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, text

from normata.bundle import loading
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.core.db.sqlite.database import SQLite
from normata.core.schema.migrations import upgrading
from normata.operations import SECURITY
from normata.settings import Settings
from normata.tables import Table
from normata.wiring import changes_of
from tests import world

T = TypeVar("T")


def settings_for(url: str, **chosen: Any) -> Settings:
    """The settings with the address of a database, as ``Settings(database_url=url, **chosen)`` has them.

    To read all of them takes longer than to answer a request, and most tests want the same. So they are kept, and only
    the two that are another one in each test, and may be any text, are replaced.
    """
    own = {"database_url": url}
    if "event_key" in chosen:
        own["event_key"] = chosen.pop("event_key")
    environment = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("NORMATA_")))
    return _settings(environment, tuple(sorted(chosen.items()))).model_copy(update=own)


@cache
def _settings(_environment: tuple[tuple[str, str], ...], chosen: tuple[tuple[str, Any], ...]) -> Settings:
    return Settings(**dict(chosen))


def open_url(url: str, *, create: bool = False, **settings: Any) -> Database:
    """A database as the command line has it: with every organization in scope."""
    return open_database(settings_for(url, **settings), create=create)


def migrate(database: Database) -> None:
    """Give a database its schema, or bring it up to date."""
    upgrading.prepare(database, Table.metadata, SECURITY)


def change(database: Database, work: Callable[[UnitOfWork], T]) -> T:
    """Make a change as a command does: in a unit of work, with all subscribers."""
    return changes_of(database).make_now(work)


def tamper(database: Database, *statements: str) -> None:
    """Execute SQL past all rules, as only an operator can. Each statement must change a row."""

    def work(connection: Connection) -> None:
        for statement in statements:
            assert connection.execute(text(statement)).rowcount > 0

    database.alter_now(work)


def build(url: str, *, with_world: bool) -> None:
    """Make a database with a current schema, and the test world in it if asked to."""
    database = open_url(url, create=True)
    migrate(database)
    if with_world:
        change(database, lambda unit: loading.load(unit, world.rows()))
        change(database, world.furnish)
        tamper(database, "DELETE FROM audit_event", "DELETE FROM unsealed_event")  # the world has no past
    database.close()


# For tests that are about the file itself.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
# For tests of what is the same on every database but for this.
on_both = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
# For searches, which PostgreSQL makes with or without its extension.
with_and_without_trigrams = pytest.mark.parametrize("database_url", ["sqlite", "postgresql", "pg_trgm"], indirect=True)
on_both_shared = pytest.mark.parametrize("shared_url", ["sqlite", "postgresql"], indirect=True)


def path_of(database: Database) -> Path:
    """The file of a SQLite database."""
    assert isinstance(database, SQLite)
    return database.path
