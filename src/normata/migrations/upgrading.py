"""How a schema is brought up to date, by Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from normata.database import Database
from normata.migrations import require_usable
from normata.models import Table


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's settings, for ``connection`` where it is to act."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config


def migrate(database: Database, connection: Connection) -> None:
    """Bring the schema up to date and secure it, in the connection's transaction: all of it or nothing."""
    command.upgrade(configuration(connection), "head")
    database.secure(connection, Table.metadata)


def prepare(database: Database, connection: Connection) -> None:
    """Bring the schema up to date, however many processes try at once.

    Raises UnusableSchema and leaves everything as it is where that cannot be.
    """
    database.lock_schema(connection)
    require_usable(connection)
    migrate(database, connection)
