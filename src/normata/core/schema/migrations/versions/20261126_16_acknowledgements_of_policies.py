"""acknowledgements of policies, and the roles that are asked for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import document, text, timestamp

revision = "20261126_16"
down_revision = "20261126_15"


def upgrade() -> None:
    """Apply the change."""
    op.add_column("policy_version", sa.Column("acknowledging_roles", document(), nullable=True))
    op.create_table(
        "acknowledgement",
        *(sa.Column(name, text(255), nullable=False) for name in ("id", "organization_id", "version_id", "member_id")),
        *(sa.Column(name, timestamp(), nullable=True) for name in ("requested_at", "reminded_at", "acknowledged_at")),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_acknowledgement_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_acknowledgement")),
        sa.UniqueConstraint(
            "organization_id",
            "version_id",
            "member_id",
            name=op.f("uq_acknowledgement_organization_id_version_id_member_id"),
        ),
    )
    is_open = sa.text("acknowledged_at IS NULL")
    op.create_index(
        "ix_acknowledgement_open",
        "acknowledgement",
        ["organization_id", "member_id", "version_id"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
