"""compare the addresses exactly that the previous version has written meanwhile."""

from __future__ import annotations

from alembic import op

from normata.core.schema.migrations.email_keys import fill_email_keys

revision = "20261124_11"
down_revision = "20261124_10"


def upgrade() -> None:
    """Apply the change."""
    fill_email_keys(op.get_bind())
