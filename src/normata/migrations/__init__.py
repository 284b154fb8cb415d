"""The schema's history, and how a database is brought up to date with it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from normata.database import Database
from normata.models import Table


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's settings, for ``connection`` where it is to act."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config


@cache
def head() -> str | None:
    """The newest version of the schema that this code knows."""
    return ScriptDirectory.from_config(configuration()).get_current_head()


def version(connection: Connection) -> str | None:
    """The version of the schema that the database has; null where it has none."""
    return MigrationContext.configure(connection).get_current_revision()


def migrate(database: Database, connection: Connection) -> None:
    """Bring the schema up to date and secure it, in the connection's transaction: all of it or nothing."""
    command.upgrade(configuration(connection), "head")
    database.secure(connection, Table.metadata)


class UnusableSchema(Exception):
    """The database is not one that this version can bring up to date; the message says why in one sentence."""


def require_usable(connection: Connection) -> None:
    """Raise UnusableSchema where the database holds something else, or was made by a newer version."""
    found = version(connection)
    if found is None and inspect(connection).get_table_names():
        raise UnusableSchema("the database holds tables of something else; name another one with --database")
    if found is not None and found not in known_versions():
        raise UnusableSchema("the database was made by a newer version of Normata; upgrade the program")


def require_current(connection: Connection) -> None:
    """Raise UnusableSchema where the schema is not the one that this code needs."""
    require_usable(connection)
    if version(connection) != head():
        raise UnusableSchema("the schema of the database is not current; run `normata migrate`")


def prepare(database: Database, connection: Connection) -> None:
    """Bring the schema up to date, however many processes try at once.

    Raises UnusableSchema and leaves everything as it is where that cannot be.
    """
    database.lock_schema(connection)
    require_usable(connection)
    migrate(database, connection)


def known_versions() -> set[str]:
    """All versions of the schema that this code knows."""
    return {script.revision for script in ScriptDirectory.from_config(configuration()).walk_revisions()}
