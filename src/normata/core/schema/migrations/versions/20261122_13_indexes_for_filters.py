"""indexes for archived records, for rows changed since a time, and for filters of controls."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261122_13"
down_revision = "20261122_12"

_MAINTAINED = (
    *("task", "finding", "asset", "policy", "record_category", "entitlement_review", "audit", "acronym", "label"),
    *("integration_check", "incident", "vendor", "record", "vulnerability_class", "variable"),
)


def upgrade() -> None:
    """Apply the change."""
    archived = sa.text("archived_at IS NOT NULL")
    for kind in (*_MAINTAINED, "risk_review"):
        op.create_index(
            f"ix_{kind}_archived_list",
            kind,
            ["organization_id", "created_at", "id"],
            sqlite_where=archived,
            postgresql_where=archived,
        )
    for kind in _MAINTAINED:
        op.create_index(
            f"ix_{kind}_updated_list",
            kind,
            ["organization_id", "updated_at", "archived_at"],
            sqlite_where=sa.text("updated_at <> '0001-01-01T00:00:00.000Z'"),
        )
    # It has the columns of the previous index and more, so the previous version can use it as well.
    op.create_index(
        "ix_control_places",
        "control",
        ["framework_id", "position", "id", "type"],
        postgresql_include=["organization_id"],
    )
    op.drop_index("ix_control_framework_id_position", table_name="control")
    if op.get_bind().dialect.name == "sqlite":
        # If SQLite has statistics of the other indexes only, it takes the new one for the best of all.
        op.execute("PRAGMA analysis_limit = 100000")
        op.execute("ANALYZE control")
