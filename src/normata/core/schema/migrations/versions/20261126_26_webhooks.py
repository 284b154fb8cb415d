"""webhooks, and how far each has come."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import Document, text, timestamp

revision = "20261126_26"
down_revision = "20261126_25"


def upgrade() -> None:
    """Apply the change."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "webhook",
        *(sa.Column(name, text(255), nullable=False) for name in ("id", "organization_id")),
        *(sa.Column(name, text(2_000), nullable=False) for name in ("url", "origin")),
        *(sa.Column(name, Document(), nullable=False) for name in ("kinds", "actions")),
        sa.Column("format", text(16), nullable=False),
        sa.Column("secret", text(255), nullable=False),
        sa.Column("former_secret", text(255), nullable=True),
        sa.Column("former_until", timestamp(), nullable=True),
        *(sa.Column(name, timestamp(), nullable=False) for name in ("created_at", "updated_at")),
        sa.Column("disabled_at", timestamp(), nullable=True),
        sa.Column("disabled_reason", text(16), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_webhook_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook")),
    )
    op.create_index(op.f("ix_webhook_organization_id"), "webhook", ["organization_id"])
    op.create_table(
        "webhook_delivery",
        *(sa.Column(name, text(255), nullable=False) for name in ("webhook_id", "owner")),
        sa.Column("next_number", number, nullable=False),
        sa.Column("due_at", timestamp(), nullable=True),
        sa.Column("claim", text(36), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        *(sa.Column(name, timestamp(), nullable=True) for name in ("failing_since", "last_at")),
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("last_reason", text(16), nullable=True),
        sa.Column("delivered_number", number, nullable=True),
        sa.Column("delivered_at", timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhook.id"],
            name=op.f("fk_webhook_delivery_webhook_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("pk_webhook_delivery")),
    )
    op.create_index(op.f("ix_webhook_delivery_due_at"), "webhook_delivery", ["due_at"])
