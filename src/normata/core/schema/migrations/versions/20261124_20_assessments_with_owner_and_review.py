"""assessments that may be null, with owner, note and review; decomposed controls; changes by upgrades."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261124_20"
down_revision = "20261124_11"


def upgrade() -> None:
    """Apply the change."""
    op.add_column("control", sa.Column("is_decomposed", sa.Boolean(), server_default=sa.false(), nullable=False))
    with op.batch_alter_table("control_coverage", schema=None) as batch_op:
        batch_op.alter_column("coverage_status", existing_type=sa.Integer(), nullable=True)
        batch_op.alter_column("is_applicable", existing_type=sa.Boolean(), nullable=True, server_default=None)
        batch_op.add_column(sa.Column("owner_id", text(255), nullable=True))
        batch_op.add_column(sa.Column("note", text(), nullable=True))
        batch_op.add_column(sa.Column("review_by", timestamp(), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f("fk_control_coverage_organization_id_owner_id"),
            "membership",
            ["organization_id", "owner_id"],
            ["organization_id", "id"],
            initially="DEFERRED",
            deferrable=True,
        )
    due = sa.text("review_by IS NOT NULL")
    op.create_index(
        "ix_control_coverage_review_by_due",
        "control_coverage",
        ["organization_id", "review_by", "id"],
        sqlite_where=due,
        postgresql_where=due,
    )
    op.create_table(
        "upgrade_change",
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("control_id", text(255), nullable=False),
        sa.Column("rule", text(64), nullable=False),
        sa.Column("status_before", text(64), nullable=True),
        sa.Column("status_after", text(64), nullable=True),
        sa.Column("changed_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_upgrade_change_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("organization_id", "control_id", "rule", name=op.f("pk_upgrade_change")),
    )
