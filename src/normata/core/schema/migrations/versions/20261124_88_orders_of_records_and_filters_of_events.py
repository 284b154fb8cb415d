"""indexes for records in the order of their titles and due dates, and for filters of events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261124_88"
down_revision = "20261124_87"

_TITLE_KEY = 400  # characters, so that an entry of an index is not too long for PostgreSQL
_KINDS = (
    *("task", "finding", "asset", "policy", "record_category", "entitlement_review", "audit", "risk_review", "acronym"),
    *("label", "integration_check", "incident", "vendor", "record", "vulnerability_class", "variable"),
)
_DUE = (
    *(("task", "deadline"), ("finding", "deadline"), ("entitlement_review", "deadline"), ("risk_review", "deadline")),
    *(("policy", "next_review_at"), ("incident", "notification_deadline"), ("vendor", "contract_expiry")),
    *(("record", "due_date"), ("record", "next_review_at")),
)


def upgrade() -> None:
    """Apply the change."""
    for kind in _KINDS:
        table = sa.table(kind, sa.column("title_key"))
        key = table.c.title_key
        op.execute(
            table.update().where(sa.func.length(key) > _TITLE_KEY).values(title_key=sa.func.substr(key, 1, _TITLE_KEY))
        )
        _order(kind, "title_key", "title")
    for kind, column in _DUE:
        _order(kind, column, column)
    for columns in (["at"], ["entity_type", "at"], ["user_id", "at"], ["action", "at"]):
        names = ["organization_id", *columns, "id"]
        op.create_index(f"ix_audit_event_{'_'.join(names)}", "audit_event", names)
    op.drop_index("ix_audit_event_organization_id_at", "audit_event")  # the previous version uses the new one as well
    connection = op.get_bind()
    if connection.dialect.name == "sqlite" and sa.inspect(connection).has_table("sqlite_stat1"):
        # SQLite takes an index without statistics for better than one with some.
        analyzed = set(connection.exec_driver_sql("SELECT DISTINCT tbl FROM sqlite_stat1").scalars())
        connection.exec_driver_sql("PRAGMA analysis_limit = 100000")
        for name in sorted(analyzed.intersection((*_KINDS, "audit_event"))):
            connection.exec_driver_sql(f"ANALYZE {name}")


def _order(kind: str, column: str, name: str) -> None:
    live = sa.text("archived_at IS NULL AND created_at <> '0001-01-01T00:00:00.000Z'")
    op.create_index(
        f"ix_{kind}_{name}_order", kind, ["organization_id", column], sqlite_where=live, postgresql_where=live
    )
