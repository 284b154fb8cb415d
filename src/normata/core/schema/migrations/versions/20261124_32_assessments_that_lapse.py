"""when an assessment was made or confirmed, when its review passes, and whether it has lapsed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import passes_at, text, timestamp

revision = "20261124_32"
down_revision = "20261124_31"

_ASSESSMENT = sa.table(
    "control_coverage",
    sa.column("id", text(255)),
    sa.column("coverage_status", sa.Integer()),
    sa.column("updated_at", timestamp()),
    sa.column("review_by", timestamp()),
    sa.column("assessed_at", timestamp()),
    sa.column("review_due_at", timestamp()),
)


def upgrade() -> None:
    """Apply the change."""
    op.add_column("organization", sa.Column("stale_assessments", text(8), server_default="FLAG", nullable=False))
    for column in (
        sa.Column("assessed_at", timestamp(), nullable=True),
        sa.Column("lapsed_status", sa.Integer(), nullable=True),
        sa.Column("lapsed_at", timestamp(), nullable=True),
        sa.Column("review_due_at", timestamp(), nullable=True),
    ):
        op.add_column("control_coverage", column)
    columns = _ASSESSMENT.c
    op.execute(_ASSESSMENT.update().where(columns.coverage_status.is_not(None)).values(assessed_at=columns.updated_at))
    bind = op.get_bind()
    for row in bind.execute(sa.select(columns.id, columns.review_by).where(columns.review_by.is_not(None))).all():
        bind.execute(_ASSESSMENT.update().where(columns.id == row.id).values(review_due_at=passes_at(row.review_by)))
    for name, names, condition in (
        ("may_lapse", ["organization_id", "review_due_at", "id"], _MAY_LAPSE),
        ("lapsed", ["organization_id", "id"], "lapsed_status IS NOT NULL"),
    ):
        op.create_index(
            f"ix_control_coverage_{name}",
            "control_coverage",
            names,
            sqlite_where=sa.text(condition),
            postgresql_where=sa.text(condition),
        )


_MAY_LAPSE = "review_due_at IS NOT NULL AND coverage_status IS NOT NULL"
