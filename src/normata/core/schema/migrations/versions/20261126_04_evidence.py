"""evidence, a kind of records.

On SQLite, the index of trigrams has its texts as well.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.trigrams import TEXTS, triggers, view_of
from normata.core.db.types import document, text, timestamp

revision = "20261126_04"
down_revision = "20261126_03"

_KINDS = (
    *("acronym", "asset", "audit", "entitlement_review", "evidence", "finding", "incident", "integration_check"),
    *("label", "policy", "record", "record_category", "risk_review", "task", "variable", "vendor"),
    "vulnerability_class",
)


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "evidence",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("slug", text(200), nullable=False),
        sa.Column("short_id", sa.Integer(), nullable=False),
        sa.Column("name", text(500), nullable=False),
        sa.Column("description", text(), nullable=True),
        sa.Column("type", text(64), nullable=False),
        sa.Column("url", text(1000), nullable=True),
        sa.Column("collected_at", timestamp(), nullable=True),
        sa.Column("collected_by_id", text(255), nullable=True),
        sa.Column("owner_id", text(255), nullable=True),
        sa.Column("valid_until", timestamp(), nullable=True),
        sa.Column("file_ids", document(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.Column("archived_at", timestamp(), nullable=True),
        sa.Column("search_text", text(), server_default=sa.text("('')"), nullable=False),
        sa.Column("title_key", text(), server_default=sa.text("('')"), nullable=False),
        _member("collected_by_id"),
        _member("owner_id"),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_evidence_organization_id",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name="pk_evidence"),
        sa.UniqueConstraint("organization_id", "id", name="uq_evidence_organization_id_id"),
        sa.UniqueConstraint("organization_id", "short_id", name="uq_evidence_organization_id_short_id"),
    )
    archived, live = "archived_at IS NOT NULL", "archived_at IS NULL"
    order = f"{live} AND created_at <> '0001-01-01T00:00:00.000Z'"
    for name, columns, where in (
        ("archived_at", ("archived_at", "id"), archived),
        ("archived_list", ("created_at", "id"), archived),
        ("live_list", ("created_at", "id"), order),
        ("type_list", ("type", "created_at", "id", "archived_at"), None),
        *(
            (f"{column}_list", (column, "created_at", "id", "archived_at"), f"{column} IS NOT NULL")
            for column in ("collected_by_id", "owner_id")
        ),
        ("slug", ("slug",), None),
        ("title_order", ("title_key", "id"), order),
        ("valid_until_due", ("valid_until", "id"), f"{live} AND valid_until IS NOT NULL"),
        ("valid_until_order", ("valid_until", "id"), order),
    ):
        condition = None if where is None else sa.text(where)
        op.create_index(
            f"ix_evidence_{name}",
            "evidence",
            ["organization_id", *columns],
            sqlite_where=condition,
            postgresql_where=condition,
        )
    op.create_index(
        "ix_evidence_updated_list",
        "evidence",
        ["organization_id", "updated_at", "id", "archived_at"],
        sqlite_where=sa.text("updated_at <> '0001-01-01T00:00:00.000Z'"),
    )
    op.create_index(
        "uq_evidence_live_slug",
        "evidence",
        ["organization_id", "slug"],
        unique=True,
        sqlite_where=sa.text(live),
        postgresql_where=sa.text(live),
    )
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"DROP VIEW {TEXTS}")
        connection.exec_driver_sql(view_of(_KINDS))
        for trigger in triggers("evidence"):
            connection.exec_driver_sql(trigger.sqlite)


def _member(column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["organization_id", column],
        ["membership.organization_id", "membership.id"],
        name=f"fk_evidence_organization_id_{column}",
        initially="DEFERRED",
        deferrable=True,
    )
