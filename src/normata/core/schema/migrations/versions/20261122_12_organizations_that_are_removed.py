"""organizations that are removed, and can be restored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import timestamp

revision = "20261122_12"
down_revision = "20261122_11"


def upgrade() -> None:
    """Apply the change."""
    op.add_column("organization", sa.Column("removed_at", timestamp(), nullable=True))
