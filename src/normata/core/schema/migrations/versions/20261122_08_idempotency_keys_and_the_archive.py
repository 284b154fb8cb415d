"""idempotency keys; who archived a record, and an index for the archive."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import document, text, timestamp

revision = "20261122_08"
down_revision = "20261122_07"

_KINDS = (
    *("task", "finding", "asset", "policy", "record_category", "entitlement_review", "audit", "risk_review"),
    *("acronym", "label", "integration_check", "incident", "vendor", "record", "vulnerability_class", "variable"),
)


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "idempotency_key",
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("key", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("method", text(16), nullable=False),
        sa.Column("path", text(), nullable=False),
        sa.Column("fingerprint", text(64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("headers", document(), nullable=False),
        sa.Column("body", text(), nullable=True),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_idempotency_key_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_idempotency_key")),
    )
    op.create_index(op.f("ix_idempotency_key_created_at"), "idempotency_key", ["created_at"])
    op.add_column("archive_entry", sa.Column("user_name", text(500), nullable=True))
    archived = sa.text("archived_at IS NOT NULL")
    for table in _KINDS:
        op.create_index(
            f"ix_{table}_archived_at",
            table,
            ["organization_id", "archived_at", "id"],
            sqlite_where=archived,
            postgresql_where=archived,
        )
