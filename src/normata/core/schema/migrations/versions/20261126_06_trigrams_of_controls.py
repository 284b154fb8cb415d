"""the texts of controls in the index of trigrams, on SQLite.

PostgreSQL's is made after all steps, see :mod:`normata.core.db.postgresql.trigrams`.
"""

from __future__ import annotations

from alembic import op

from normata.core.db.trigrams import TEXTS, filling, triggers, view_of

revision = "20261126_06"
down_revision = "20261126_05"

_TABLES = (
    *("acronym", "asset", "audit", "control", "entitlement_review", "evidence", "finding", "incident"),
    *("integration_check", "label", "policy", "record", "record_category", "risk_review", "task", "variable"),
    *("vendor", "vulnerability_class"),
)


def upgrade() -> None:
    """Apply the change."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    connection.exec_driver_sql(f"DROP VIEW {TEXTS}")
    connection.exec_driver_sql(view_of(_TABLES))
    connection.exec_driver_sql(filling("control"))
    for trigger in triggers("control"):
        connection.exec_driver_sql(trigger.sqlite)
