"""items of entitlement reviews."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_23"
down_revision = "20261126_22"

_REFERENCES = (("entitlement_review_id", "entitlement_review"), ("decided_by_id", "membership"), ("task_id", "task"))


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "entitlement_review_item",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("entitlement_review_id", text(255), nullable=False),
        *(sa.Column(name, text(500), nullable=False) for name in ("person", "system", "entitlement")),
        sa.Column("remark", text(), nullable=True),
        sa.Column("decision", text(16), nullable=True),
        sa.Column("change", text(), nullable=True),
        sa.Column("decided_at", timestamp(), nullable=True),
        sa.Column("decided_by_id", text(255), nullable=True),
        sa.Column("task_id", text(255), nullable=True),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_entitlement_review_item_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        *(
            sa.ForeignKeyConstraint(
                ["organization_id", column],
                [f"{table}.organization_id", f"{table}.id"],
                name=op.f(f"fk_entitlement_review_item_organization_id_{column}"),
                initially="DEFERRED",
                deferrable=True,
            )
            for column, table in _REFERENCES
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entitlement_review_item")),
    )
    op.create_index(
        "ix_entitlement_review_item_list",
        "entitlement_review_item",
        ["organization_id", "entitlement_review_id", "created_at", "id"],
    )
