"""when notifications are mailed: the choices of people, and the default of an organization."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import document, text

revision = "20261126_08"
down_revision = "20261126_07"


def upgrade() -> None:
    """Apply the change."""
    op.add_column("user_account", sa.Column("mail", text(16), nullable=True))
    op.add_column("user_account", sa.Column("mail_by_type", document(), nullable=True))
    op.add_column("user_account", sa.Column("refused_email", text(320), nullable=True))
    op.add_column("organization", sa.Column("mail", text(16), server_default="DAILY", nullable=False))
