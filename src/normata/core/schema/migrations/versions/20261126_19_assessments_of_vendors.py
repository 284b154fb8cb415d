"""assessments of vendors, a kind of records, with questionnaires and answers.

On SQLite, the index of trigrams has the texts of assessments as well.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.trigrams import TEXTS, triggers, view_of
from normata.core.db.types import document, text, timestamp
from normata.core.schema.migrations.record_indexes import create_record_indexes

revision = "20261126_19"
down_revision = "20261126_18"

_TABLES = (
    *("acronym", "asset", "audit", "control", "entitlement_review", "evidence", "finding", "incident"),
    *("integration_check", "label", "policy", "record", "record_category", "risk", "risk_review", "task", "variable"),
    *("vendor", "vendor_assessment", "vulnerability_class"),
)
_DONE = "('SUBMITTED', 'REVIEWED', 'SUPERSEDED')"
_MEMBERS = ("owner_id", "submitted_by_id", "reviewed_by_id")


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "questionnaire",
        *_texts("id", "organization_id", size=255),
        *_texts("name", size=500),
        sa.Column("edition", text(64), nullable=True),
        sa.Column("parts", document(), nullable=False),
        *_times("created_at", "updated_at"),
        _of_organization("questionnaire"),
        sa.PrimaryKeyConstraint("id", name="pk_questionnaire"),
        sa.UniqueConstraint("organization_id", "id", name="uq_questionnaire_organization_id_id"),
        sa.UniqueConstraint("organization_id", "edition", name="uq_questionnaire_organization_id_edition"),
    )
    op.create_table(
        "vendor_assessment",
        *_texts("id", "organization_id", size=255),
        sa.Column("short_id", sa.Integer(), nullable=False),
        *_texts("title", size=500),
        sa.Column("notes", text(), nullable=True),
        *_texts("status", size=64),
        *(sa.Column(name, text(255), nullable=True) for name in ("vendor_id", "owner_id", "questionnaire_id")),
        *(sa.Column(name, timestamp(), nullable=True) for name in ("deadline", "sent_at", "submitted_at")),
        sa.Column("submitted_by_id", text(255), nullable=True),
        sa.Column("score", sa.Integer(), nullable=True),
        sa.Column("reopening_reason", text(), nullable=True),
        sa.Column("reviewed_at", timestamp(), nullable=True),
        sa.Column("reviewed_by_id", text(255), nullable=True),
        *(
            column
            for of in ("inherent", "residual")
            for column in (
                sa.Column(f"{of}_probability", sa.Integer(), nullable=True),
                sa.Column(f"{of}_impact", sa.Integer(), nullable=True),
                sa.Column(f"{of}_reason", text(), nullable=True),
            )
        ),
        sa.Column("next_assessment_at", timestamp(), nullable=True),
        *_times("created_at", "updated_at"),
        sa.Column("archived_at", timestamp(), nullable=True),
        sa.Column("search_text", text(), server_default=sa.text("('')"), nullable=False),
        sa.Column("title_key", text(), server_default=sa.text("('')"), nullable=False),
        *(_reference("vendor_assessment", name, "membership") for name in _MEMBERS),
        _reference("vendor_assessment", "questionnaire_id", "questionnaire"),
        _reference("vendor_assessment", "vendor_id", "vendor"),
        _of_organization("vendor_assessment"),
        sa.PrimaryKeyConstraint("id", name="pk_vendor_assessment"),
        sa.UniqueConstraint("organization_id", "id", name="uq_vendor_assessment_organization_id_id"),
        sa.UniqueConstraint("organization_id", "short_id", name="uq_vendor_assessment_organization_id_short_id"),
    )
    create_record_indexes(
        "vendor_assessment",
        filters=("status",),
        nullable_filters=("vendor_id", "questionnaire_id", *_MEMBERS),
        due={"deadline": f"status NOT IN {_DONE}", "next_assessment_at": "status NOT IN ('SUPERSEDED')"},
    )
    op.create_table(
        "vendor_answer",
        *_texts("id", "organization_id", "assessment_id", size=255),
        *_texts("question", size=64),
        *(sa.Column(name, text(), nullable=True) for name in ("value", "remark")),
        *_times("answered_at"),
        sa.Column("answered_by_id", text(255), nullable=True),
        sa.Column("is_by_link", sa.Boolean(), nullable=False),
        _reference("vendor_answer", "answered_by_id", "membership"),
        _reference("vendor_answer", "assessment_id", "vendor_assessment"),
        _of_organization("vendor_answer"),
        sa.PrimaryKeyConstraint("id", name="pk_vendor_answer"),
        sa.UniqueConstraint(
            *("organization_id", "assessment_id", "question"),
            name="uq_vendor_answer_organization_id_assessment_id_question",
        ),
    )
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"DROP VIEW {TEXTS}")
        connection.exec_driver_sql(view_of(_TABLES))
        for trigger in triggers("vendor_assessment"):
            connection.exec_driver_sql(trigger.sqlite)


def _texts(*names: str, size: int) -> list[sa.Column[str]]:
    return [sa.Column(name, text(size), nullable=False) for name in names]


def _times(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, timestamp(), nullable=False) for name in names]


def _of_organization(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["organization_id"],
        ["organization.id"],
        name=f"fk_{table}_organization_id",
        initially="DEFERRED",
        deferrable=True,
    )


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["organization_id", column],
        [f"{target}.organization_id", f"{target}.id"],
        name=f"fk_{table}_organization_id_{column}",
        initially="DEFERRED",
        deferrable=True,
    )
