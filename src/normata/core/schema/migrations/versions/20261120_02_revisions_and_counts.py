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
    # Plainly added: a batch would make the tables anew on SQLite, which the references to them forbid.
    op.add_column("organization", sa.Column("revision", text(36), server_default="", nullable=False))
    op.add_column("framework", sa.Column("control_count", sa.Integer(), server_default="0", nullable=False))
    op.execute(
        "UPDATE framework SET control_count = (SELECT count(*) FROM control WHERE control.framework_id = framework.id)"
    )
    # An empty one would be the same in every database that was upgraded.
    op.execute(sa.text("UPDATE organization SET revision = :revision").bindparams(revision=new_id()))
