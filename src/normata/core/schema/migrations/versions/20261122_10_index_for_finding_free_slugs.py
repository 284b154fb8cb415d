"""an index of all slugs of each kind, those of archived records included."""

from __future__ import annotations

from alembic import op

revision = "20261122_10"
down_revision = "20261122_09"

_KINDS = (
    *("task", "finding", "asset", "policy", "record_category", "audit", "acronym", "label", "integration_check"),
    *("incident", "vendor", "record", "vulnerability_class", "variable"),
)


def upgrade() -> None:
    """Apply the change."""
    for kind in _KINDS:
        op.create_index(f"ix_{kind}_slug", kind, ["organization_id", "slug"])
