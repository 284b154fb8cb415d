"""who archived a record, when and why; columns by which lists of records are searched, sorted and filtered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text, timestamp
from normata.core.schema.text import natural_key, search_text

revision = "20261122_06"
down_revision = "20261122_05"

# The texts of each kind, its title first.
_TEXTS = {
    "task": ("title", "slug", "description", "instructions", "category", "frequency"),
    "finding": (
        *("name", "slug", "identifier", "findings", "causes", "correction", "measures", "notes"),
        *("verified_by_name", "verification_note"),
    ),
    "asset": ("name", "slug", "description"),
    "policy": ("title", "slug", "current_version", "last_approved_by"),
    "record_category": ("name", "slug", "description", "color"),
    "entitlement_review": ("title", "description"),
    "audit": ("name", "slug", "auditor", "notes"),
    "risk_review": ("title", "notes"),
    "acronym": ("acronym", "slug", "acronym_plural", "extended", "extended_plural"),
    "label": ("name", "slug", "scope", "color"),
    "integration_check": ("name", "slug", "provider"),
    "incident": ("name", "slug", "description", "root_cause", "lessons_learned", "notification_notes"),
    "vendor": ("name", "slug", "description", "website", "contact_name", "contact_email"),
    "record": ("title", "slug", "finalized_by"),
    "vulnerability_class": ("name", "slug", "description"),
    "variable": ("name", "slug", "value"),
}
# The columns by which the list of each kind can be filtered; those that may be null are separate.
_FILTERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "task": (
        ("type", "status", "priority"),
        (
            "assignee_member_id",
            "assignee_business_role_id",
            "control_coverage_id",
            "policy_id",
            "evidence_id",
            "risk_id",
            "asset_id",
            "vendor_id",
            "audit_id",
            "treatment_action_id",
            "incident_id",
            "risk_review_id",
            "asset_review_id",
            "entitlement_review_id",
            "vendor_review_id",
            "training_id",
            "process_id",
            "device_id",
            "record_id",
            "task_template_id",
        ),
    ),
    "finding": (("type", "status", "source"), ("verified_by_id", "control_id", "audit_id")),
    "asset": (
        ("status",),
        ("owner_id", "parent_id", "asset_class_id", "location_id", "retention_period_id", "last_review_id"),
    ),
    "policy": (("status",), ("category_id", "approver_id", "review_schedule_id")),
    "record_category": (("allow_portal_submission",), ("owner_id", "default_template_id", "cadence_schedule_id")),
    "entitlement_review": (("type",), ("coordinator_id", "employee_id")),
    "audit": (("type",), ("framework_id",)),
    "risk_review": (("priority_filter",), ("coordinator_id",)),
    "acronym": ((), ("definition_id",)),
    "label": ((), ()),
    "integration_check": (("status",), ()),
    "incident": (
        ("status", "severity", "is_personal_data_breach"),
        ("owner_id", "reported_by_member_id", "threat_class_id"),
    ),
    "vendor": (
        ("category", "relationship", "status", "treatment_strategy"),
        ("owner_id", "location_id", "assessment_period_id", "last_assessment_id"),
    ),
    "record": (("status",), ("category_id", "assignee_member_id", "assignee_business_role_id", "review_schedule_id")),
    "vulnerability_class": ((), ()),
    "variable": ((), ()),
}
_AT_ONCE = 1_000


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "archive_entry",
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("kind", text(64), nullable=False),
        sa.Column("record_id", text(255), nullable=False),
        sa.Column("archive_id", text(255), nullable=False),
        sa.Column("archived_at", timestamp(), nullable=False),
        sa.Column("user_id", text(255), nullable=True),
        sa.Column("reason", text(1000), nullable=True),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_archive_entry_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("organization_id", "kind", "record_id", name=op.f("pk_archive_entry")),
    )
    op.create_index(
        op.f("ix_archive_entry_organization_id_archive_id"), "archive_entry", ["organization_id", "archive_id"]
    )
    connection = op.get_bind()
    for table, texts in _TEXTS.items():
        for name in ("search_text", "title_key"):
            op.add_column(table, sa.Column(name, text(), server_default=sa.text("''"), nullable=False))
        _fill(connection, table, texts)
    for table, (always, sometimes) in _FILTERS.items():
        _index(table)
        for name in always:
            _index(table, name)
        for name in sometimes:
            _index(table, name, where=sa.text(f"{name} IS NOT NULL"))


def _index(table: str, *names: str, where: sa.TextClause | None = None) -> None:
    """An index in the order of the table's list."""
    op.create_index(
        "_".join(("ix", table, *names, "list")),
        table,
        ["organization_id", *names, "created_at", "id", "archived_at"],
        sqlite_where=where,
        postgresql_where=where,
    )


def _fill(connection: sa.Connection, name: str, texts: tuple[str, ...]) -> None:
    """Derive the new columns of all rows of a table."""
    table = sa.table(name, *(sa.column(column) for column in ("id", "search_text", "title_key", *texts)))
    title = texts[0]
    page = sa.select(table.c.id, *(table.c[column] for column in texts)).order_by(table.c.id).limit(_AT_ONCE)
    change = (
        sa.update(table)
        .where(table.c.id == sa.bindparam("row"))
        .values(search_text=sa.bindparam("search"), title_key=sa.bindparam("key"))
    )
    last = ""
    while rows := connection.execute(page.where(table.c.id > last)).all():
        connection.execute(
            change,
            [
                {
                    "row": row.id,
                    "search": search_text(*(getattr(row, column) for column in _in_order(texts))),
                    "key": natural_key(getattr(row, title)),
                }
                for row in rows
            ],
        )
        last = rows[-1].id


def _in_order(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The slug comes before the title, as in the table."""
    return ("slug", *(text for text in texts if text != "slug")) if "slug" in texts else texts
