"""the control that the event of an assessment is about.

The event of a new or a cleared assessment has all its fields, and leads to the others of its row. An erased one gets
the control of its row, if that is still there.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text

revision = "20261124_83"
down_revision = "20261124_82"

_OF_A_CONTROL = "control_id IS NOT NULL"
# The condition comes before the cast, since an erased event has an empty body.
FILL = {
    "sqlite": "UPDATE audit_event SET control_id = CASE WHEN body <> '' THEN"
    " coalesce(json_extract(body, '$.after.controlId'), json_extract(body, '$.before.controlId')) END"
    " WHERE entity_type = 'ControlCoverage'",
    "postgresql": "UPDATE audit_event SET control_id = CASE WHEN body <> '' THEN"
    " coalesce(body::json #>> '{after,controlId}', body::json #>> '{before,controlId}') END"
    " WHERE entity_type = 'ControlCoverage'",
}


def upgrade() -> None:
    """Apply the change."""
    op.add_column("audit_event", sa.Column("control_id", text(255), nullable=True))
    op.execute(FILL[op.get_bind().dialect.name])
    op.create_index(
        "ix_audit_event_control",
        "audit_event",
        ["organization_id", "control_id", "entity_id"],
        sqlite_where=sa.text(_OF_A_CONTROL),
        postgresql_where=sa.text(_OF_A_CONTROL),
    )
    op.execute(
        "UPDATE audit_event SET control_id = ("
        "SELECT control_coverage.control_id FROM control_coverage WHERE control_coverage.id = audit_event.entity_id"
        ") WHERE entity_type = 'ControlCoverage' AND control_id IS NULL"
    )
