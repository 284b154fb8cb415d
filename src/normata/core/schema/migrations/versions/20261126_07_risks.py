"""risks, a kind of records with a history, and the levels of the risk matrix.

On SQLite, the index of trigrams has their texts as well.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from normata.core.db.trigrams import TEXTS, triggers, view_of
from normata.core.db.types import text, timestamp
from normata.core.schema.history_triggers import EveryRow, create_statements

revision = "20261126_07"
down_revision = "20261126_06"

_TABLES = (
    *("acronym", "asset", "audit", "control", "entitlement_review", "evidence", "finding", "incident"),
    *("integration_check", "label", "policy", "record", "record_category", "risk", "risk_review", "task", "variable"),
    *("vendor", "vulnerability_class"),
)


def _columns() -> list[sa.Column[Any]]:
    ratings = (f"{of}_{what}" for of in ("inherent", "residual", "target") for what in ("probability", "impact"))
    return [
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("slug", text(200), nullable=False),
        sa.Column("short_id", sa.Integer(), nullable=False),
        sa.Column("name", text(500), nullable=False),
        sa.Column("description", text(), nullable=True),
        sa.Column("category", text(1000), nullable=True),
        sa.Column("status", text(64), nullable=False),
        sa.Column("treatment_strategy", text(64), nullable=False),
        sa.Column("owner_id", text(255), nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in ratings),
        sa.Column("accepted_at", timestamp(), nullable=True),
        sa.Column("accepted_by_id", text(255), nullable=True),
        sa.Column("next_review_at", timestamp(), nullable=True),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.Column("archived_at", timestamp(), nullable=True),
    ]


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "risk",
        *_columns(),
        sa.Column("search_text", text(), server_default=sa.text("('')"), nullable=False),
        sa.Column("title_key", text(), server_default=sa.text("('')"), nullable=False),
        _member("accepted_by_id"),
        _member("owner_id"),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_risk_organization_id",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name="pk_risk"),
        sa.UniqueConstraint("organization_id", "id", name="uq_risk_organization_id_id"),
        sa.UniqueConstraint("organization_id", "short_id", name="uq_risk_organization_id_short_id"),
    )
    archived, live = "archived_at IS NOT NULL", "archived_at IS NULL"
    order = f"{live} AND created_at <> '0001-01-01T00:00:00.000Z'"
    for name, columns, where in (
        ("archived_at", ("archived_at", "id"), archived),
        ("archived_list", ("created_at", "id"), archived),
        ("live_list", ("created_at", "id"), order),
        *(
            (f"{column}_list", (column, "created_at", "id", "archived_at"), None)
            for column in ("status", "treatment_strategy")
        ),
        *(
            (f"{column}_list", (column, "created_at", "id", "archived_at"), f"{column} IS NOT NULL")
            for column in ("accepted_by_id", "owner_id")
        ),
        ("slug", ("slug",), None),
        ("title_order", ("title_key", "id"), order),
        (
            "next_review_at_due",
            ("next_review_at", "id"),
            f"{live} AND next_review_at IS NOT NULL AND status NOT IN ('CLOSED')",
        ),
        ("next_review_at_order", ("next_review_at", "id"), order),
    ):
        condition = None if where is None else sa.text(where)
        op.create_index(
            f"ix_risk_{name}",
            "risk",
            ["organization_id", *columns],
            sqlite_where=condition,
            postgresql_where=condition,
        )
    op.create_index(
        "ix_risk_updated_list",
        "risk",
        ["organization_id", "updated_at", "id", "archived_at"],
        sqlite_where=sa.text("updated_at <> '0001-01-01T00:00:00.000Z'"),
    )
    op.create_index(
        "uq_risk_live_slug",
        "risk",
        ["organization_id", "slug"],
        unique=True,
        sqlite_where=sa.text(live),
        postgresql_where=sa.text(live),
    )
    op.create_table(
        "risk_history",
        *_columns(),
        sa.Column("search_text", text(), nullable=False),
        sa.Column("title_key", text(), nullable=False),
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", "organization_id", "valid_from", name="pk_risk_history"),
    )
    op.add_column("organization", sa.Column("risk_levels", text(25), nullable=True))
    names = (*(column.name for column in _columns()), "search_text", "title_key")
    connection = op.get_bind()
    for trigger in EveryRow("risk", names, ("organization_id", "id")).triggers():
        for statement in create_statements(trigger, connection.dialect.name):
            connection.exec_driver_sql(statement)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"DROP VIEW {TEXTS}")
        connection.exec_driver_sql(view_of(_TABLES))
        for trigger in triggers("risk"):
            connection.exec_driver_sql(trigger.sqlite)


def _member(column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["organization_id", column],
        ["membership.organization_id", "membership.id"],
        name=f"fk_risk_organization_id_{column}",
        initially="DEFERRED",
        deferrable=True,
    )
