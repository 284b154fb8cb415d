"""whether findings are verified before they are closed"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261126_13"
down_revision = "20261126_12"


def upgrade() -> None:
    """Apply the change."""
    op.add_column(
        "organization", sa.Column("verifies_findings", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
