"""coverage of requirements: store whether a control applies, and compute all coverage again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text
from normata.coverage.upgrading import ALL_MATCHES, compute_anew

revision = "20261124_22"
down_revision = "20261124_21"


def upgrade() -> None:
    """Apply the change."""
    op.add_column("effective_coverage", sa.Column("applies", sa.Boolean(), server_default=sa.true(), nullable=False))
    op.add_column("effective_coverage", sa.Column("conflict", text(64), nullable=True))
    op.create_index(
        "ix_control_below",
        "control",
        ["parent_id", "id", "type", "is_decomposed"],
        postgresql_include=["organization_id"],
    )
    # The previous version can use the new index as well: it begins with the same column.
    op.drop_index("ix_control_parent_id", table_name="control")
    compute_anew(op.get_bind(), ALL_MATCHES)
