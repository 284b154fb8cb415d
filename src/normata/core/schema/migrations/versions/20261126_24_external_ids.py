"""the ids that records have in other systems."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_24"
down_revision = "20261126_23"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "external_id",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("kind", text(64), nullable=False),
        sa.Column("record_id", text(255), nullable=False),
        sa.Column("source", text(100), nullable=False),
        sa.Column("external_id", text(255), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_external_id_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_external_id")),
        sa.UniqueConstraint(
            *("organization_id", "kind", "source", "external_id"),
            name=op.f("uq_external_id_organization_id_kind_source_external_id"),
        ),
    )
    op.create_index(op.f("ix_external_id_organization_id_record_id"), "external_id", ["organization_id", "record_id"])
