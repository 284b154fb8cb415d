"""jobs: what the service does by itself at a certain time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261124_21"
down_revision = "20261124_20"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "job",
        sa.Column("owner", text(255), nullable=False),
        sa.Column("type", text(64), nullable=False),
        sa.Column("key", text(255), nullable=False),
        sa.Column("due_at", timestamp(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("claim", text(36), nullable=True),
        sa.Column("failure", text(64), nullable=True),
        sa.PrimaryKeyConstraint("owner", "type", "key", name=op.f("pk_job")),
    )
    op.create_index(op.f("ix_job_owner_due_at"), "job", ["owner", "due_at"])
    begun = sa.text("attempts > 0")
    op.create_index("ix_job_begun", "job", ["due_at"], sqlite_where=begun, postgresql_where=begun)
