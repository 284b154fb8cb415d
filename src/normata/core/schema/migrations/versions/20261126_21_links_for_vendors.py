"""links by which vendors answer without an account."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_21"
down_revision = "20261126_20"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "vendor_link",
        *(sa.Column(name, text(255), nullable=False) for name in ("id", "organization_id", "assessment_id")),
        sa.Column("digest", text(64), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("created_by_id", text(255), nullable=True),
        sa.Column("expires_at", timestamp(), nullable=False),
        sa.Column("revoked_at", timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_vendor_link_organization_id",
            initially="DEFERRED",
            deferrable=True,
        ),
        *(
            sa.ForeignKeyConstraint(
                ["organization_id", column],
                [f"{target}.organization_id", f"{target}.id"],
                name=f"fk_vendor_link_organization_id_{column}",
                initially="DEFERRED",
                deferrable=True,
            )
            for column, target in (("assessment_id", "vendor_assessment"), ("created_by_id", "membership"))
        ),
        sa.PrimaryKeyConstraint("id", name="pk_vendor_link"),
        sa.UniqueConstraint("digest", name="uq_vendor_link_digest"),
    )
    op.create_index("ix_vendor_link_organization_id_assessment_id", "vendor_link", ["organization_id", "assessment_id"])
