"""Opening the tests' databases past the application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from normata.bundle import loading
from normata.database import Database, open_database
from normata.database.sqlite import SQLite
from normata.migrations import upgrading
from normata.settings import Settings
from tests import world


def open_url(url: str, *, create: bool = False, **settings: Any) -> Database:
    """A database as the command line has it: with everything in sight."""
    return open_database(Settings(database_url=url, **settings), create=create)


def migrate(database: Database) -> None:
    """Give a database its schema, or bring it up to date."""
    database.write_now(lambda connection: upgrading.prepare(database, connection))


def build(url: str, *, with_world: bool) -> None:
    """Make a database with a current schema, and the test world in it if asked to."""
    database = open_url(url, create=True)
    migrate(database)
    if with_world:
        database.write_now(lambda connection: loading.load(connection, world.rows()))
    database.close()


# For tests that are about the file itself.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def path_of(database: Database) -> Path:
    """The file of a SQLite database."""
    assert isinstance(database, SQLite)
    return database.path
