"""revisions and counts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text
from normata.core.schema.table import new_id

revision = "20261120_02"
down_revision = "20261120_01"


def upgrade() -> None:
    """Apply the change."""
    # Not in a batch: on SQLite that would rebuild the tables, and the references to them forbid it.
    op.add_column("organization", sa.Column("revision", text(36), server_default="", nullable=False))
    op.add_column("framework", sa.Column("control_count", sa.Integer(), server_default="0", nullable=False))
    op.execute(
        "UPDATE framework SET control_count = (SELECT count(*) FROM control WHERE control.framework_id = framework.id)"
    )
    # An empty revision would be the same in every upgraded database.
    op.execute(sa.text("UPDATE organization SET revision = :revision").bindparams(revision=new_id()))
