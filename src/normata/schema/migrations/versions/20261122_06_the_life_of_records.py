"""who archived a record, when and why."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.db.types import text, timestamp

revision = "20261122_06"
down_revision = "20261122_05"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "archive_entry",
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("kind", text(64), nullable=False),
        sa.Column("record_id", text(255), nullable=False),
        sa.Column("archive_id", text(255), nullable=False),
        sa.Column("archived_at", timestamp(), nullable=False),
        sa.Column("user_id", text(255), nullable=True),
        sa.Column("reason", text(1000), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_archive_entry_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("organization_id", "kind", "record_id", name=op.f("pk_archive_entry")),
    )
    op.create_index(
        op.f("ix_archive_entry_organization_id_archive_id"), "archive_entry", ["organization_id", "archive_id"]
    )
