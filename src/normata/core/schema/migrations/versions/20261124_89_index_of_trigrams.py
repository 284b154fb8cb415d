"""the index of the trigrams of records' texts, on SQLite.

Triggers write it. A later step that adds a kind of records makes its view anew, and the triggers of the kind.
"""

from __future__ import annotations

from alembic import op

from normata.core.db.trigrams import filling, made_of, triggers

revision = "20261124_89"
down_revision = "20261124_88"

_KINDS = (
    *("acronym", "asset", "audit", "entitlement_review", "finding", "incident", "integration_check", "label", "policy"),
    *("record", "record_category", "risk_review", "task", "variable", "vendor", "vulnerability_class"),
)


def upgrade() -> None:
    """Apply the change."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    for statement in made_of(_KINDS):
        connection.exec_driver_sql(statement)
    for kind in _KINDS:
        connection.exec_driver_sql(filling(kind))
        for trigger in triggers(kind):
            connection.exec_driver_sql(trigger.sqlite)
