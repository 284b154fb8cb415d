"""what the management system of an organization is about."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text

revision = "20261124_80"
down_revision = "20261124_70"


def upgrade() -> None:
    """Apply the change."""
    op.add_column("organization", sa.Column("scope", text(), nullable=True))
