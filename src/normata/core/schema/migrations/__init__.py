"""The versions of the schema, and whether a database has the newest one.

Every opening of a database checks this, and usually it is current, so this module does not import Alembic or the
tables. ``upgrading`` brings a schema up to date.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Select, column, select, table

from normata.core.db.transaction import Transaction
from normata.errors import CommandError

_VERSION_TABLE = "alembic_version"  # Alembic's name for the table, which has one row
_VERSION: Select[Any] = select(column("version_num")).select_from(table(_VERSION_TABLE))
_VERSION_LENGTH = len("20261120_01")
_AFTER = "_after_"


class UnusableSchema(CommandError):
    """The database cannot be upgraded by this version; the message is the reason, in one sentence."""


@cache
def _migrations() -> tuple[Path, ...]:
    """The files of all migrations, oldest first: their names begin with their versions, and these with a day."""
    return tuple(sorted((Path(__file__).parent / "versions").glob("[0-9]*.py")))


@cache
def known_versions() -> frozenset[str]:
    """All versions of the schema that this code knows."""
    return frozenset(file.name[:_VERSION_LENGTH] for file in _migrations())


def head() -> str:
    """The newest version of the schema that this code knows."""
    return max(known_versions())


@cache
def needed() -> str:
    """The oldest version of the schema that this code can work with.

    Migrations come in two steps. Those *before* a new version of the program starts add what it needs, and keep what
    the previous version needs, so that both can serve. Those *after* the old one has ended, named so, remove what
    nobody needs any more. So this is the newest version that is not an *after*.
    """
    return max(
        file.name[:_VERSION_LENGTH] for file in _migrations() if not file.name[_VERSION_LENGTH:].startswith(_AFTER)
    )


def version(transaction: Transaction) -> str | None:
    """The version of the schema that the database has; null if it has none."""
    # A query first, because after a failed statement PostgreSQL accepts no further one in the transaction.
    if _VERSION_TABLE not in transaction.tables():
        return None
    found: str | None = transaction.scalar(_VERSION)
    return found


def is_servable(transaction: Transaction) -> bool:
    """Whether this version can serve the schema: it has everything needed, or was made for a newer version.

    Migrations keep what the previous version needs, so that both can serve during an upgrade.
    """
    found = version(transaction)
    return found is not None and (found not in known_versions() or found >= needed())


def require_usable(transaction: Transaction) -> None:
    """Raise UnusableSchema if the database has other tables, or was made by a newer version."""
    _require_usable(transaction, version(transaction))


def require_current(transaction: Transaction) -> None:
    """Raise UnusableSchema if the schema lacks something that this code needs."""
    found = version(transaction)
    _require_usable(transaction, found)
    if found is None or found < needed():
        raise UnusableSchema("the schema of the database is not current; run `normata migrate`")


def _require_usable(transaction: Transaction, found: str | None) -> None:
    if found is None and transaction.tables():
        raise UnusableSchema("the database holds tables of something else; name another one with --database")
    if found is not None and found not in known_versions():
        raise UnusableSchema("the database was made by a newer version of Normata; upgrade the program")
