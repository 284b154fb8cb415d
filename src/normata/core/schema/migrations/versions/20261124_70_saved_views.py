"""views of lists that people have saved."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import document, text, timestamp

revision = "20261124_70"
down_revision = "20261124_60"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "saved_view",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
        sa.Column("kind", text(64), nullable=False),
        sa.Column("name", text(500), nullable=False),
        sa.Column("query", document(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_saved_view_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["user_account.id"],
            name=op.f("fk_saved_view_user_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_view")),
    )
    op.create_index(op.f("ix_saved_view_organization_id_user_id"), "saved_view", ["organization_id", "user_id"])
