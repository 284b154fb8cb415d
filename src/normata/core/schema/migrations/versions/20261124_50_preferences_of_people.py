"""preferences of people: time zone, format of dates, theme."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text

revision = "20261124_50"
down_revision = "20261124_40"


def upgrade() -> None:
    """Apply the change."""
    for name, length in (("time_zone", 64), ("date_format", 16), ("theme", 8)):
        op.add_column("user_account", sa.Column(name, text(length), nullable=True))
