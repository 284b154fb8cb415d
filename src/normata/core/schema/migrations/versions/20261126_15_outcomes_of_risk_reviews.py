"""outcomes of risk reviews."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp

revision = "20261126_15"
down_revision = "20261126_14"

_RATINGS = tuple(f"{of}_{what}" for of in ("inherent", "residual", "target") for what in ("probability", "impact"))
_REFERENCES = (("risk_review_id", "risk_review"), ("risk_id", "risk"), ("recorded_by_id", "membership"))


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "risk_review_outcome",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("risk_review_id", text(255), nullable=False),
        sa.Column("risk_id", text(255), nullable=False),
        sa.Column("outcome", text(64), nullable=False),
        sa.Column("note", text(), nullable=True),
        sa.Column("recorded_at", timestamp(), nullable=False),
        sa.Column("recorded_by_id", text(255), nullable=True),
        sa.Column("name", text(500), nullable=False),
        sa.Column("status", text(64), nullable=False),
        sa.Column("treatment_strategy", text(64), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in _RATINGS),
        sa.Column("level", text(16), nullable=True),
        sa.Column("accepted_at", timestamp(), nullable=True),
        sa.Column("next_review_at", timestamp(), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_risk_review_outcome_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        *(
            sa.ForeignKeyConstraint(
                ["organization_id", column],
                [f"{table}.organization_id", f"{table}.id"],
                name=op.f(f"fk_risk_review_outcome_organization_id_{column}"),
                initially="DEFERRED",
                deferrable=True,
            )
            for column, table in _REFERENCES
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_risk_review_outcome")),
        sa.UniqueConstraint(
            "organization_id",
            "risk_review_id",
            "risk_id",
            name=op.f("uq_risk_review_outcome_organization_id_risk_review_id_risk_id"),
        ),
    )
