"""Comments on records and controls."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_12"
down_revision = "20261126_11"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "comment",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("about_kind", text(64), nullable=False),
        sa.Column("about_id", text(255), nullable=False),
        sa.Column("author_id", text(255), nullable=False),
        sa.Column("text", text(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["author_id"],
            ["membership.id"],
            name=op.f("fk_comment_author_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_comment_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comment")),
    )
    op.create_index(
        op.f("ix_comment_organization_id_about_id_created_at_id"),
        "comment",
        ["organization_id", "about_id", "created_at", "id"],
    )
    op.create_index(
        op.f("ix_comment_organization_id_created_at_id"), "comment", ["organization_id", "created_at", "id"]
    )
