"""earlier wordings of controls, and the assessments that they make stale."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261124_60"
down_revision = "20261124_50"

_IS_STALE = "stale_since IS NOT NULL"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "control_wording",
        sa.Column("id", text(255), nullable=False),
        sa.Column("control_id", text(255), nullable=False),
        sa.Column("identifier", text(1000), nullable=False),
        sa.Column("name", text(500), nullable=False),
        sa.Column("description", text(), nullable=True),
        sa.Column("version", text(1000), nullable=True),
        sa.Column("valid_from", timestamp(), nullable=True),
        sa.Column("replaced_at", timestamp(), nullable=False),
        sa.Column("is_editorial", sa.Boolean(), nullable=False),
        sa.Column("stale_since", timestamp(), nullable=True),
        sa.Column("organization_id", text(255), nullable=True),
        sa.ForeignKeyConstraint(
            ["control_id"],
            ["control.id"],
            name=op.f("fk_control_wording_control_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_control_wording")),
    )
    op.create_index(op.f("ix_control_wording_control_id_replaced_at"), "control_wording", ["control_id", "replaced_at"])
    op.create_index(op.f("ix_control_wording_organization_id"), "control_wording", ["organization_id"])
    op.create_index(
        "ix_control_wording_stale",
        "control_wording",
        ["control_id", "replaced_at", "valid_from", "stale_since"],
        sqlite_where=sa.text(_IS_STALE),
        postgresql_where=sa.text(_IS_STALE),
    )
