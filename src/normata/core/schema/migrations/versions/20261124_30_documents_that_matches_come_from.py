"""mapping documents of matches, and matches that are retired or set aside."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261124_30"
down_revision = "20261124_22"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "mapping_document",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=True),
        sa.Column("document", text(1000), nullable=False),
        sa.Column("name", text(500), nullable=False),
        sa.Column("version", text(1000), nullable=True),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_mapping_document_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mapping_document")),
    )
    op.create_index(op.f("ix_mapping_document_organization_id"), "mapping_document", ["organization_id"])
    # Before anything refers to matches, because SQLite rebuilds their table.
    with op.batch_alter_table("control_match", schema=None) as batch_op:
        batch_op.add_column(sa.Column("mapping_document_id", text(255), nullable=True))
        batch_op.add_column(sa.Column("retired_at", timestamp(), nullable=True))
        batch_op.add_column(sa.Column("rationale", text(1000), nullable=True))
        batch_op.add_column(sa.Column("strength", text(1000), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f("fk_control_match_mapping_document_id"),
            "mapping_document",
            ["mapping_document_id"],
            ["id"],
            initially="DEFERRED",
            deferrable=True,
        )
    op.create_index(op.f("ix_control_match_mapping_document_id"), "control_match", ["mapping_document_id"])
    op.create_table(
        "set_aside_match",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("match_id", text(255), nullable=False),
        sa.Column("justification", text(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["match_id"],
            ["control_match.id"],
            name=op.f("fk_set_aside_match_match_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_set_aside_match_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_set_aside_match")),
        sa.UniqueConstraint("organization_id", "match_id", name=op.f("uq_set_aside_match_organization_id_match_id")),
    )
    op.create_index(op.f("ix_set_aside_match_match_id"), "set_aside_match", ["match_id"])
