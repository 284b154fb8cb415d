"""auditors, and memberships that end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import timestamp

revision = "20261124_82"
down_revision = "20261124_80"

_WILL_EXPIRE = "expires_at IS NOT NULL AND removed_at IS NULL"


def upgrade() -> None:
    """Apply the change."""
    op.add_column("membership", sa.Column("expires_at", timestamp(), nullable=True))
    op.add_column("invitation", sa.Column("membership_expires_at", timestamp(), nullable=True))
    op.create_index(
        op.f("ix_membership_expires_at"),
        "membership",
        ["organization_id", "expires_at"],
        sqlite_where=sa.text(_WILL_EXPIRE),
        postgresql_where=sa.text(_WILL_EXPIRE),
    )
