"""indexes of each kind for the list of archived records, and for what was changed since some time."""

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
