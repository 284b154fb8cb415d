"""files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_05"
down_revision = "20261126_04"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "file",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("user_id", text(255), nullable=True),
        sa.Column("name", text(255), nullable=False),
        sa.Column("media_type", text(255), nullable=False),
        sa.Column("size", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("sha256", text(64), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("attached_at", timestamp(), nullable=True),
        *(
            sa.ForeignKeyConstraint([column], [target], name=f"fk_file_{column}", initially="DEFERRED", deferrable=True)
            for column, target in (("organization_id", "organization.id"), ("user_id", "user_account.id"))
        ),
        sa.PrimaryKeyConstraint("id", name="pk_file"),
    )
    op.create_index("ix_file_organization_id_size", "file", ["organization_id", "size"])
    unattached = sa.text("attached_at IS NULL")
    op.create_index(
        "ix_file_unattached",
        "file",
        ["organization_id", "created_at"],
        sqlite_where=unattached,
        postgresql_where=unattached,
    )
