"""reminders, and indexes of unread notifications and due dates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261122_09"
down_revision = "20261122_08"

# The table, column and condition of each due date.
_DUE = (
    ("task", "deadline", "status NOT IN ('DONE', 'CANCELLED')"),
    ("finding", "deadline", "status NOT IN ('RESOLVED', 'VERIFIED', 'CLOSED')"),
    ("policy", "next_review_at", "status NOT IN ('RETIRED')"),
    ("entitlement_review", "deadline", "finished_at IS NULL"),
    ("risk_review", "deadline", "finished_at IS NULL"),
    ("incident", "notification_deadline", "status NOT IN ('CLOSED') AND authority_notified_at IS NULL"),
    ("vendor", "contract_expiry", "status NOT IN ('TERMINATED')"),
    ("record", "due_date", "status NOT IN ('FINALIZED', 'SUPERSEDED')"),
    ("record", "next_review_at", "status NOT IN ('SUPERSEDED')"),
)


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "reminder",
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("kind", text(64), nullable=False),
        sa.Column("record_id", text(255), nullable=False),
        sa.Column("what", text(64), nullable=False),
        sa.Column("due_at", timestamp(), nullable=False),
        sa.Column("which", text(64), nullable=False),
        sa.Column("reminded_at", timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_reminder_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint(
            "organization_id", "kind", "record_id", "what", "due_at", "which", name=op.f("pk_reminder")
        ),
    )
    unread = sa.text("read_at IS NULL")
    op.create_index(
        "ix_notification_unread",
        "notification",
        ["organization_id", "user_id", "created_at", "id"],
        sqlite_where=unread,
        postgresql_where=unread,
    )
    for table, column, condition in _DUE:
        is_open = sa.text(f"archived_at IS NULL AND {column} IS NOT NULL AND {condition}")
        op.create_index(
            f"ix_{table}_{column}_due",
            table,
            ["organization_id", column, "id"],
            sqlite_where=is_open,
            postgresql_where=is_open,
        )
