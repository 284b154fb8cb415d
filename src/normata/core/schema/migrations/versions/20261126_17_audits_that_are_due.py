"""indexes of the days on which audits start."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261126_17"
down_revision = "20261126_16"


def upgrade() -> None:
    """Apply the change."""
    is_open = "archived_at IS NULL AND started IS NOT NULL"
    is_live = "archived_at IS NULL AND created_at <> '0001-01-01T00:00:00.000Z'"
    for name, condition in (("due", is_open), ("order", is_live)):
        op.create_index(
            f"ix_audit_started_{name}",
            "audit",
            ["organization_id", "started", "id"],
            sqlite_where=sa.text(condition),
            postgresql_where=sa.text(condition),
        )
