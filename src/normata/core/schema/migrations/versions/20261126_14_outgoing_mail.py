"""the outbox of mail about notifications."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_14"
down_revision = "20261126_13"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "outgoing_mail",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("message", text(64), nullable=True),
        sa.Column("due_at", timestamp(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("ended_at", timestamp(), nullable=True),
        sa.Column("outcome", text(16), nullable=True),
        *(
            sa.ForeignKeyConstraint(
                [column], [target], name=f"fk_outgoing_mail_{column}", initially="DEFERRED", deferrable=True
            )
            for column, target in (("organization_id", "organization.id"), ("user_id", "user_account.id"))
        ),
        sa.PrimaryKeyConstraint("id", name="pk_outgoing_mail"),
    )
    is_open, is_over = sa.text("ended_at IS NULL"), sa.text("ended_at IS NOT NULL")
    for name, column, where in (
        ("due", "due_at", is_open),
        ("message", "message", is_open),
        ("ended", "ended_at", is_over),
    ):
        op.create_index(
            f"ix_outgoing_mail_{name}",
            "outgoing_mail",
            ["organization_id", column],
            sqlite_where=where,
            postgresql_where=where,
        )
