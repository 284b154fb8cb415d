"""secret addresses of people's calendars."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_18"
down_revision = "20261126_17"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "calendar_address",
        sa.Column("id", text(255), nullable=False),
        sa.Column("user_id", text(255), nullable=False),
        sa.Column("digest", text(64), nullable=False),
        sa.Column("narrowed_to", text(255), nullable=True),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("last_used_at", timestamp(), nullable=True),
        *(
            sa.ForeignKeyConstraint(
                [column],
                [target],
                name=op.f(f"fk_calendar_address_{column}"),
                initially="DEFERRED",
                deferrable=True,
            )
            for column, target in (("narrowed_to", "organization.id"), ("user_id", "user_account.id"))
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_calendar_address")),
        *(sa.UniqueConstraint(column, name=op.f(f"uq_calendar_address_{column}")) for column in ("digest", "user_id")),
    )
