"""INSERT … ON CONFLICT DO UPDATE, which is the same on both databases, but separate in SQLAlchemy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Insert, Table
from sqlalchemy.dialects import postgresql


def upsert(table: Table, values: Mapping[str, Any], *, key: Sequence[str], update: Sequence[str]) -> Insert:
    """Insert a row of ``values`` (literals or parameters); if its ``key`` exists, update these columns of that row."""
    statement = postgresql.insert(table).values(**values)
    # SQLite's compiler accepts PostgreSQL's construct; a test checks both.
    return statement.on_conflict_do_update(
        index_elements=[table.c[name] for name in key], set_={name: statement.excluded[name] for name in update}
    )
