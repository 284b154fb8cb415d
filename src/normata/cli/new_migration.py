"""``python -m normata.cli.new_migration "add exemptions"``: write a migration for what the tables have changed."""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime

from alembic import command
from sqlalchemy import Connection

from normata.core.db.opening import open_database
from normata.core.schema.migrations import known_versions, upgrading
from normata.operations import SECURITY
from normata.settings import Settings
from normata.tables import Table


def write(message: str) -> None:
    """Compare a database of the newest schema with the tables, and write the difference as the next migration."""
    day = f"{datetime.now(UTC):%Y%m%d}"
    number = 1 + sum(version.startswith(day) for version in known_versions())
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Settings(database_url=f"sqlite:///{folder}/empty.db"), create=True)
        upgrading.prepare(database, Table.metadata, SECURITY)

        def compare(connection: Connection) -> None:
            configuration = upgrading.configuration(connection, Table.metadata)
            command.revision(configuration, message, autogenerate=True, rev_id=f"{day}_{number:02}")

        database.alter_now(compare)
        database.close()


if __name__ == "__main__":
    write(sys.argv[1])
