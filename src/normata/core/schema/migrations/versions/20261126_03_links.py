"""links between records, controls and members."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_03"
down_revision = "20261126_02"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "link",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("from_kind", text(64), nullable=False),
        sa.Column("from_id", text(255), nullable=False),
        sa.Column("to_kind", text(64), nullable=False),
        sa.Column("to_id", text(255), nullable=False),
        sa.Column("relation", text(64), nullable=False),
        sa.Column("note", text(1_000), nullable=True),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("removed_at", timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_link_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_link")),
    )
    is_live = sa.text("removed_at IS NULL")
    op.create_index(
        "uq_link_live",
        "link",
        ["organization_id", "from_kind", "from_id", "to_kind", "to_id", "relation"],
        unique=True,
        sqlite_where=is_live,
        postgresql_where=is_live,
    )
    op.create_index(op.f("ix_link_organization_id_from_id"), "link", ["organization_id", "from_id"])
    op.create_index(op.f("ix_link_organization_id_to_id"), "link", ["organization_id", "to_id"])
    op.create_index(op.f("ix_link_organization_id_created_at_id"), "link", ["organization_id", "created_at", "id"])
