"""baselines of frameworks, and the one of an adoption."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261124_40"
down_revision = "20261124_32"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "baseline",
        sa.Column("id", text(255), nullable=False),
        sa.Column("framework_id", text(255), nullable=False),
        sa.Column("identifier", text(1000), nullable=False),
        sa.Column("slug", text(200), nullable=False),
        sa.Column("name", text(500), nullable=False),
        sa.Column("version", text(1000), nullable=True),
        sa.Column("description", text(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.Column("organization_id", text(255), nullable=True),
        sa.ForeignKeyConstraint(
            ["framework_id"],
            ["framework.id"],
            name=op.f("fk_baseline_framework_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_baseline")),
        sa.UniqueConstraint("framework_id", "id", name=op.f("uq_baseline_framework_id_id")),
    )
    op.create_index(op.f("ix_baseline_organization_id"), "baseline", ["organization_id"])
    # Before anything refers to adoptions, because SQLite rebuilds their table.
    with op.batch_alter_table("framework_adoption", schema=None) as batch_op:
        batch_op.add_column(sa.Column("baseline_id", text(255), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f("fk_framework_adoption_framework_id_baseline_id"),
            "baseline",
            ["framework_id", "baseline_id"],
            ["framework_id", "id"],
            initially="DEFERRED",
            deferrable=True,
        )
    op.create_index(
        op.f("ix_framework_adoption_framework_id_baseline_id"), "framework_adoption", ["framework_id", "baseline_id"]
    )
    # The previous version can use the new index as well: it begins with the same column.
    op.drop_index("ix_framework_adoption_framework_id", table_name="framework_adoption")
    op.create_table(
        "baseline_control",
        sa.Column("id", text(255), nullable=False),
        sa.Column("baseline_id", text(255), nullable=False),
        sa.Column("control_id", text(255), nullable=False),
        sa.Column("retired_at", timestamp(), nullable=True),
        sa.Column("organization_id", text(255), nullable=True),
        sa.ForeignKeyConstraint(
            ["baseline_id"],
            ["baseline.id"],
            name=op.f("fk_baseline_control_baseline_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["control_id"],
            ["control.id"],
            name=op.f("fk_baseline_control_control_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_baseline_control")),
        sa.UniqueConstraint("baseline_id", "control_id", name=op.f("uq_baseline_control_baseline_id_control_id")),
    )
    op.create_index(op.f("ix_baseline_control_control_id"), "baseline_control", ["control_id"])
    op.create_index(op.f("ix_baseline_control_organization_id"), "baseline_control", ["organization_id"])
