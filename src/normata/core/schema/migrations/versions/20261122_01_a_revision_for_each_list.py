"""a revision for each list."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text
from normata.core.schema.table import new_id

revision = "20261122_01"
down_revision = "20261120_02"


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "list_revision",
        sa.Column("organization_id", text(128), nullable=False),
        sa.Column("list", text(64), nullable=False),
        sa.Column("revision", text(36), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_list_revision_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("organization_id", "list", name=op.f("pk_list_revision")),
    )
    for name in ("controls", "frameworks"):
        statement = sa.text(
            "INSERT INTO list_revision (organization_id, list, revision) SELECT id, :list, :revision FROM organization"
        )
        op.execute(statement.bindparams(list=name, revision=new_id()))
