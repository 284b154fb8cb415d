"""indexes of lists end with the id, and the one of the default order has live records only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "20261126_02"
down_revision = "20261124_89"

_NEVER = "'0001-01-01T00:00:00.000Z'"
_KINDS = (
    *("acronym", "asset", "audit", "entitlement_review", "finding", "incident", "integration_check", "label", "policy"),
    *("record", "record_category", "risk_review", "task", "variable", "vendor", "vulnerability_class"),
)
_DUE = (
    *(("task", "deadline"), ("finding", "deadline"), ("entitlement_review", "deadline"), ("risk_review", "deadline")),
    *(("policy", "next_review_at"), ("incident", "notification_deadline"), ("vendor", "contract_expiry")),
    *(("record", "due_date"), ("record", "next_review_at")),
)


def upgrade() -> None:
    """Apply the change."""
    live = sa.text(f"archived_at IS NULL AND created_at <> {_NEVER}")
    for kind in _KINDS:
        _index(kind, "live_list", "created_at", where=live)
        op.drop_index(f"ix_{kind}_title_order", kind)
        _index(kind, "title_order", "title_key", where=live)
        if kind != "risk_review":
            op.drop_index(f"ix_{kind}_updated_list", kind)
            op.create_index(  # the previous version uses it as well
                f"ix_{kind}_updated_list",
                kind,
                ["organization_id", "updated_at", "id", "archived_at"],
                sqlite_where=sa.text(f"updated_at <> {_NEVER}"),
            )
    for kind, column in _DUE:
        op.drop_index(f"ix_{kind}_{column}_order", kind)
        _index(kind, f"{column}_order", column, where=live)
    connection = op.get_bind()
    if connection.dialect.name == "sqlite" and sa.inspect(connection).has_table("sqlite_stat1"):
        # SQLite takes an index without statistics for better than one with some.
        analyzed = set(connection.exec_driver_sql("SELECT DISTINCT tbl FROM sqlite_stat1").scalars())
        connection.exec_driver_sql("PRAGMA analysis_limit = 100000")
        for name in sorted(analyzed.intersection(_KINDS)):
            connection.exec_driver_sql(f"ANALYZE {name}")


def _index(kind: str, name: str, column: str, *, where: sa.TextClause) -> None:
    columns = ["organization_id", column, "id"]
    op.create_index(f"ix_{kind}_{name}", kind, columns, sqlite_where=where, postgresql_where=where)
