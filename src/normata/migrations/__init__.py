"""The schema's history as far as everybody needs it: the versions there are, and whether a database has the newest.

Whoever opens a database asks that, and mostly the answer is yes; so nothing here needs Alembic or the models. How a
schema is brought up to date is in ``upgrading``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from normata.refusal import Refusal

_VERSION_TABLE = "alembic_version"  # Alembic's own name for it, with one row
_VERSION_LENGTH = len("20261120_01")


class UnusableSchema(Refusal):
    """The database is not one that this version can bring up to date; the message says why in one sentence."""


@cache
def known_versions() -> frozenset[str]:
    """All versions of the schema that this code knows: the names of migrations begin with them."""
    files = (Path(__file__).parent / "versions").glob("[0-9]*.py")
    return frozenset(file.name[:_VERSION_LENGTH] for file in files)


def head() -> str:
    """The newest version of the schema that this code knows: each begins with its day."""
    return max(known_versions())


def version(connection: Connection) -> str | None:
    """The version of the schema that the database has; null where it has none."""
    # Asked first, since PostgreSQL takes nothing more in a transaction in which a statement has failed.
    if not inspect(connection).has_table(_VERSION_TABLE):
        return None
    found: str | None = connection.scalar(select(column("version_num")).select_from(table(_VERSION_TABLE)))
    return found


def require_usable(connection: Connection) -> None:
    """Raise UnusableSchema where the database holds something else, or was made by a newer version."""
    _require_usable(connection, version(connection))


def require_current(connection: Connection) -> None:
    """Raise UnusableSchema where the schema is not the one that this code needs."""
    found = version(connection)
    _require_usable(connection, found)
    if found != head():
        raise UnusableSchema("the schema of the database is not current; run `normata migrate`")


def _require_usable(connection: Connection, found: str | None) -> None:
    if found is None and inspect(connection).get_table_names():
        raise UnusableSchema("the database holds tables of something else; name another one with --database")
    if found is not None and found not in known_versions():
        raise UnusableSchema("the database was made by a newer version of Normata; upgrade the program")
