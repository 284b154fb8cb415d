"""counts of sign-in attempts, shared by all processes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261124_01"
down_revision = "20261122_13"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "sign_in_count",
        sa.Column("digest", text(64), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("expires_at", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sign_in_count")),
    )
    op.create_index(op.f("ix_sign_in_count_expires_at"), "sign_in_count", ["expires_at"])
