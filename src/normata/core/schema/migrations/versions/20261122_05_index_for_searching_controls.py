"""an index that searches of controls read in place of the table, on SQLite."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261122_05"
down_revision = "20261122_04"


def upgrade() -> None:
    """Apply the change."""
    if op.get_bind().dialect.name == "sqlite":
        op.create_index(
            "ix_control_search",
            "control",
            ["framework_id", "position", "search_text"],
            sqlite_where=sa.text("search_text >= ''"),
        )
