"""checklists of audits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import document, text, timestamp

revision = "20261126_22"
down_revision = "20261126_21"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "checklist_row",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("audit_id", text(255), nullable=False),
        sa.Column("about_kind", text(64), nullable=False),
        sa.Column("about_id", text(255), nullable=False),
        sa.Column("identifier", text(1_000), nullable=True),
        sa.Column("label", text(500), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("status", text(16), nullable=False),
        sa.Column("note", text(), nullable=True),
        sa.Column("checked_at", timestamp(), nullable=True),
        sa.Column("checked_by_id", text(255), nullable=True),
        sa.Column("finding_ids", document(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_checklist_row_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        *(
            sa.ForeignKeyConstraint(
                ["organization_id", column],
                [f"{table}.organization_id", f"{table}.id"],
                name=op.f(f"fk_checklist_row_organization_id_{column}"),
                initially="DEFERRED",
                deferrable=True,
            )
            for column, table in (("audit_id", "audit"), ("checked_by_id", "membership"))
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checklist_row")),
        sa.UniqueConstraint(
            "organization_id",
            "audit_id",
            "about_kind",
            "about_id",
            name=op.f("uq_checklist_row_organization_id_audit_id_about_kind_about_id"),
        ),
    )
    op.create_index(
        op.f("ix_checklist_row_organization_id_audit_id_position_id"),
        "checklist_row",
        ["organization_id", "audit_id", "position", "id"],
    )
