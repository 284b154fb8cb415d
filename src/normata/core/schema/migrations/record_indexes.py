"""The indexes of a table of records, for steps that add one. They are those of November 2026, and do not change.

A later step that changes the indexes of all kinds changes those made here as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa
from alembic import op

_LIVE, _ARCHIVED = "archived_at IS NULL", "archived_at IS NOT NULL"
_IN_ORDER = f"{_LIVE} AND created_at <> '0001-01-01T00:00:00.000Z'"


def create_record_indexes(
    table: str, *, filters: Collection[str], nullable_filters: Collection[str], due: Mapping[str, str]
) -> None:
    """Create the indexes of a table without slugs, whose rows say when they were changed.

    ``filters`` has the columns that its list can be filtered by, and ``nullable_filters`` those of them that may be
    null. ``due`` has the due dates, each with the condition that it is still to be met.
    """
    for name, columns, where in (
        ("archived_at", ("archived_at", "id"), _ARCHIVED),
        ("archived_list", ("created_at", "id"), _ARCHIVED),
        ("live_list", ("created_at", "id"), _IN_ORDER),
        ("title_order", ("title_key", "id"), _IN_ORDER),
        *((f"{column}_list", (column, "created_at", "id", "archived_at"), None) for column in filters),
        *(
            (f"{column}_list", (column, "created_at", "id", "archived_at"), f"{column} IS NOT NULL")
            for column in nullable_filters
        ),
        *((f"{column}_order", (column, "id"), _IN_ORDER) for column in due),
        *(
            (f"{column}_due", (column, "id"), f"{_LIVE} AND {column} IS NOT NULL AND {is_open}")
            for column, is_open in due.items()
        ),
    ):
        condition = None if where is None else sa.text(where)
        op.create_index(
            f"ix_{table}_{name}",
            table,
            ["organization_id", *columns],
            sqlite_where=condition,
            postgresql_where=condition,
        )
    op.create_index(
        f"ix_{table}_updated_list",
        table,
        ["organization_id", "updated_at", "id", "archived_at"],
        sqlite_where=sa.text("updated_at <> '0001-01-01T00:00:00.000Z'"),
    )
