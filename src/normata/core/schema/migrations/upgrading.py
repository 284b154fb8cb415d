"""Bringing a schema up to date with Alembic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError as AlembicError
from sqlalchemy import Connection, MetaData

from normata.core.db.database import Database
from normata.core.db.security import Security
from normata.core.schema.migrations import UnusableSchema, head, needed, require_usable, version


def configuration(connection: Connection, metadata: MetaData) -> Config:
    """Alembic's settings, to upgrade the database of ``connection`` to ``metadata``."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    config.attributes["metadata"] = metadata
    return config


def _do_not_look(_connection: Connection) -> None:
    pass


def prepare(
    database: Database,
    metadata: MetaData,
    security: Security,
    *,
    finish: bool = True,
    look_before: Callable[[Connection], None] = _do_not_look,
    look_after: Callable[[Connection], None] = _do_not_look,
) -> None:
    """Bring the schema up to date and secure it, completely or not at all, even with several processes at once.

    ``look_before`` and ``look_after`` read the database in that transaction; their errors roll it back. Without
    ``finish`` the steps that remove what the previous version needs are left out, except for a new database. Raises
    UnusableSchema if the database holds something else or was made by a newer version.
    """
    database.read_now(require_usable)
    found = database.read_now(version)
    target = head() if finish or found is None else max(needed(), found)

    def upgrade(connection: Connection) -> None:
        look_before(connection)
        try:
            command.upgrade(configuration(connection, metadata), target)
        except AlembicError as error:  # a newer version has upgraded it while this one waited
            raise UnusableSchema("the database was made by a newer version of Normata; upgrade the program") from error
        database.secure(connection, metadata, security)
        look_after(connection)

    database.alter_now(upgrade)
