"""recurrences of tasks and reviews."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_20"
down_revision = "20261126_19"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "recurrence",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("kind", text(64), nullable=False),
        sa.Column("record_id", text(255), nullable=False),
        sa.Column("frequency", text(64), nullable=True),
        sa.Column("day", sa.Integer(), nullable=True),
        sa.Column("next_id", text(255), nullable=True),
        sa.Column("made_at", timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_recurrence_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recurrence")),
        sa.UniqueConstraint(
            "organization_id", "kind", "record_id", name=op.f("uq_recurrence_organization_id_kind_record_id")
        ),
    )
