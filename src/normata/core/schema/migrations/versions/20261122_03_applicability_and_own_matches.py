"""applicability, and matches of an organization's own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import now, text, timestamp

revision = "20261122_03"
down_revision = "20261122_02"


def upgrade() -> None:
    """Apply the change."""
    # Not in a batch: on SQLite that would rebuild the tables, and the references to them forbid it.
    op.add_column(
        "control_coverage", sa.Column("is_applicable", sa.Boolean(), server_default=sa.true(), nullable=False)
    )
    op.add_column("control_coverage", sa.Column("justification", text(), nullable=True))
    op.add_column("control_coverage", sa.Column("reasons", text(1300), server_default=sa.text("''"), nullable=False))
    op.add_column("control_coverage", sa.Column("created_at", timestamp(), nullable=True))
    op.add_column("control_coverage", sa.Column("updated_at", timestamp(), nullable=True))
    statements = sa.table(
        "control_coverage", sa.column("created_at", timestamp()), sa.column("updated_at", timestamp())
    )
    moment = now()
    op.execute(statements.update().values(created_at=moment, updated_at=moment))

    with op.batch_alter_table("control_match", schema=None) as batch_op:
        batch_op.add_column(sa.Column("justification", text(), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f("fk_control_match_organization_id"),
            "organization",
            ["organization_id"],
            ["id"],
            initially="DEFERRED",
            deferrable=True,
        )

    # 20261124_22 computes their values, by the rules of its version.
    op.add_column("effective_coverage", sa.Column("own", sa.Integer(), server_default="0", nullable=False))
    op.add_column("effective_coverage", sa.Column("rank", sa.Integer(), server_default="0", nullable=False))
