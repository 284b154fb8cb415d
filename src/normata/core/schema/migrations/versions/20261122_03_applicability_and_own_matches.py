"""applicability, and matches of an organization's own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import now, text, timestamp
from normata.coverage.engine import Level, compute_ranked

revision = "20261122_03"
down_revision = "20261122_02"


def upgrade() -> None:
    """Apply the change."""
    # Plainly added: a batch would make the tables anew on SQLite, which the references to them forbid.
    op.add_column(
        "control_coverage", sa.Column("is_applicable", sa.Boolean(), server_default=sa.true(), nullable=False)
    )
    op.add_column("control_coverage", sa.Column("justification", text(), nullable=True))
    op.add_column("control_coverage", sa.Column("reasons", text(1300), server_default=sa.text("''"), nullable=False))
    op.add_column("control_coverage", sa.Column("created_at", timestamp(), nullable=True))
    op.add_column("control_coverage", sa.Column("updated_at", timestamp(), nullable=True))
    statements = sa.table(
        "control_coverage", sa.column("created_at", timestamp()), sa.column("updated_at", timestamp())
    )
    moment = now()
    op.execute(statements.update().values(created_at=moment, updated_at=moment))

    with op.batch_alter_table("control_match", schema=None) as batch_op:
        batch_op.add_column(sa.Column("justification", text(), nullable=True))
        batch_op.create_foreign_key(
            batch_op.f("fk_control_match_organization_id"),
            "organization",
            ["organization_id"],
            ["id"],
            initially="DEFERRED",
            deferrable=True,
        )

    op.add_column("effective_coverage", sa.Column("own", sa.Integer(), server_default="0", nullable=False))
    op.add_column("effective_coverage", sa.Column("rank", sa.Integer(), server_default="0", nullable=False))
    connection = op.get_bind()
    for organization_id in connection.scalars(sa.text("SELECT id FROM organization ORDER BY id")).all():
        _compute(connection, organization_id)


def _compute(connection: sa.Connection, organization_id: str) -> None:
    """Coverage by the rules of this version, with what is new of it."""
    key = {"organization": organization_id}
    parents = connection.execute(
        sa.text(
            "SELECT id, parent_id FROM control WHERE framework_id IN"
            " (SELECT framework_id FROM framework_adoption WHERE organization_id = :organization)"
        ),
        key,
    ).all()
    matches = connection.execute(
        sa.text(
            "SELECT source_control_id, target_control_id, match_level FROM control_match"
            " WHERE organization_id IS NULL OR organization_id = :organization"
        ),
        key,
    ).all()
    stated = connection.execute(
        sa.text("SELECT control_id, coverage_status FROM control_coverage WHERE organization_id = :organization"), key
    ).all()
    computed, ranks = compute_ranked(
        dict(map(tuple, parents)),
        [(source, target, Level(level)) for source, target, level in matches],
        {control: Level(level) for control, level in stated},
    )
    rows = [
        {
            **key,
            "control": control,
            "status": int(found.effective),
            "indirect": found.indirect,
            "own": int(found.own),
            "rank": ranks.get(control, 0),
        }
        for control, found in computed.items()
    ]
    if rows:
        connection.execute(
            sa.text(
                "UPDATE effective_coverage SET status = :status, is_indirect = :indirect, own = :own, rank = :rank"
                " WHERE organization_id = :organization AND control_id = :control"
            ),
            rows,
        )
