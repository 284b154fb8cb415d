"""versions of statements of applicability."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import document, text, timestamp

revision = "20261124_86"
down_revision = "20261124_83"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "soa_version",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("framework_id", text(255), nullable=False),
        sa.Column("other_framework_ids", document(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("title", text(500), nullable=False),
        sa.Column("scope", text(), nullable=True),
        sa.Column("state", text(16), nullable=False),
        sa.Column("approver_id", text(255), nullable=True),
        sa.Column("json_sha256", text(64), nullable=False),
        sa.Column("csv_sha256", text(64), nullable=False),
        sa.Column("xlsx_sha256", text(64), nullable=False),
        sa.Column("pdf_sha256", text(64), nullable=True),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("approved_at", timestamp(), nullable=True),
        sa.Column("superseded_at", timestamp(), nullable=True),
        sa.Column("erased_at", timestamp(), nullable=True),
        *(sa.Column(f"{name}_file", text(), nullable=True) for name in ("json", "csv", "xlsx", "pdf")),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_soa_version_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_soa_version")),
        sa.UniqueConstraint(
            "organization_id", "framework_id", "number", name=op.f("uq_soa_version_organization_id_framework_id_number")
        ),
    )
    op.create_index(op.f("ix_soa_version_organization_id_created_at"), "soa_version", ["organization_id", "created_at"])
