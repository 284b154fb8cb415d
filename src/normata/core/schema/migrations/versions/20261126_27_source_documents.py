"""source documents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_27"
down_revision = "20261126_26"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "source_document",
        sa.Column("id", text(255), nullable=False),
        sa.Column("framework_id", text(255), nullable=False),
        sa.Column("baseline_id", text(255), nullable=True),
        sa.Column("media_type", text(64), nullable=False),
        sa.Column("sha256", text(64), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("content", text(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.Column("organization_id", text(255), nullable=True),
        sa.ForeignKeyConstraint(
            ["framework_id", "baseline_id"],
            ["baseline.framework_id", "baseline.id"],
            name=op.f("fk_source_document_framework_id_baseline_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["framework_id"],
            ["framework.id"],
            name=op.f("fk_source_document_framework_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source_document")),
    )
    op.create_index(
        op.f("ix_source_document_framework_id_baseline_id"), "source_document", ["framework_id", "baseline_id"]
    )
    op.create_index(op.f("ix_source_document_organization_id"), "source_document", ["organization_id"])
