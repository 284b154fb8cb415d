"""revisions and counts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.database import text
from normata.vocabulary import new_id

revision = "20261120_02"
down_revision = "20261120_01"


def upgrade() -> None:
    """Apply the change."""
    with op.batch_alter_table("organization", schema=None) as batch_op:
        batch_op.add_column(sa.Column("revision", text(36), server_default=sa.literal_column("''"), nullable=False))
    with op.batch_alter_table("framework", schema=None) as batch_op:
        batch_op.add_column(sa.Column("control_count", sa.Integer(), server_default="0", nullable=False))
    op.execute(
        "UPDATE framework SET control_count = (SELECT count(*) FROM control WHERE control.framework_id = framework.id)"
    )
    # An empty one would be the same in every database that was upgraded.
    op.execute(sa.text("UPDATE organization SET revision = :revision").bindparams(revision=new_id()))
