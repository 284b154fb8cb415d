"""``python -m normata.migrations "add exemptions"``: write a migration for what the models have changed."""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime

from alembic import command
from sqlalchemy import Connection

from normata.database import open_database
from normata.migrations import known_versions, upgrading
from normata.settings import Settings


def write(message: str) -> None:
    """Compare a database of the newest schema with the models, and write the difference as the next migration."""
    day = f"{datetime.now(UTC):%Y%m%d}"
    number = 1 + sum(version.startswith(day) for version in known_versions())
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Settings(database_url=f"sqlite:///{folder}/empty.db"), create=True)

        def compare(connection: Connection) -> None:
            upgrading.migrate(database, connection)
            configuration = upgrading.configuration(connection)
            command.revision(configuration, message, autogenerate=True, rev_id=f"{day}_{number:02}")

        database.write_now(compare)
        database.close()


if __name__ == "__main__":
    write(sys.argv[1])
