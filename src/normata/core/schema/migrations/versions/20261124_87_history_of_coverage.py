"""the history of what coverage follows from, which begins with this upgrade.

Triggers write it. They are made from this step's own columns, since later steps may add some: such a step makes the
triggers of the table anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from normata.core.db.sqlite.transaction import CALL_IT_LARGE
from normata.core.db.types import now, text, timestamp
from normata.core.schema.history_triggers import FOREVER, ChangedRows, EveryRow, create_statements
from normata.history.model import NOTE_START

revision = "20261124_87"
down_revision = "20261124_86"

_WAS_ADOPTED = (
    "EXISTS (SELECT 1 FROM {schema}framework_adoption_history AS a WHERE a.framework_id = {row}.framework_id)"
)
_TARGET_WAS_ADOPTED = (
    "EXISTS (SELECT 1 FROM {schema}framework_adoption_history AS a JOIN {schema}control AS c"
    " ON c.framework_id = a.framework_id WHERE c.id = {row}.target_control_id)"
)
_ITS_FRAMEWORK_WAS_ADOPTED = (
    "EXISTS (SELECT 1 FROM {schema}framework_adoption_history AS a JOIN {schema}baseline AS b"
    " ON b.framework_id = a.framework_id WHERE b.id = {row}.baseline_id)"
)

_EVERY_ROW = (
    EveryRow(
        "control_coverage",
        (
            "id",
            "organization_id",
            "control_id",
            "coverage_status",
            "coverage_gap",
            "is_applicable",
            "justification",
            "reasons",
            "created_at",
            "updated_at",
            "owner_id",
            "note",
            "review_by",
            "assessed_at",
            "lapsed_status",
            "lapsed_at",
            "review_due_at",
        ),
        ("organization_id", "control_id"),
    ),
    EveryRow(
        "effective_coverage",
        ("organization_id", "control_id", "status", "is_indirect", "own", "rank", "applies", "conflict"),
        ("organization_id", "control_id"),
    ),
    EveryRow(
        "framework_adoption",
        ("id", "organization_id", "framework_id", "adopted_at", "baseline_id"),
        ("organization_id", "framework_id"),
    ),
    EveryRow(
        "set_aside_match",
        ("id", "organization_id", "match_id", "justification", "created_at", "updated_at"),
        ("organization_id", "match_id"),
    ),
)
_CHANGED_ROWS = (
    ChangedRows(
        "control",
        (
            "id",
            "framework_id",
            "parent_id",
            "identifier",
            "name",
            "slug",
            "purpose",
            "type",
            "description",
            "is_mandatory",
            "is_centralized",
            "created_at",
            "updated_at",
            "organization_id",
            "position",
            "search_text",
            "identifier_key",
            "name_key",
            "slug_key",
            "is_decomposed",
        ),
        ("parent_id", "type", "is_mandatory", "is_decomposed", "position"),
        _WAS_ADOPTED,
    ),
    ChangedRows(
        "control_match",
        (
            "id",
            "source_control_id",
            "target_control_id",
            "match_level",
            "organization_id",
            "justification",
            "mapping_document_id",
            "retired_at",
            "rationale",
            "strength",
        ),
        ("source_control_id", "target_control_id", "match_level", "organization_id", "retired_at"),
        _TARGET_WAS_ADOPTED,
    ),
    ChangedRows(
        "baseline_control",
        ("id", "baseline_id", "control_id", "retired_at", "organization_id"),
        ("retired_at",),
        _ITS_FRAMEWORK_WAS_ADOPTED,
    ),
    ChangedRows(
        "framework",
        (
            "id",
            "organization_id",
            "identifier",
            "slug",
            "version",
            "identifier_color",
            "published_at",
            "deprecated_at",
            "name",
            "description",
            "last_sync_at",
            "created_at",
            "updated_at",
            "created_by",
            "is_active",
            "is_centralized",
            "required_tier",
            "search_text",
            "identifier_key",
            "name_key",
            "slug_key",
            "version_key",
            "control_count",
            "applicability_prefix",
        ),
        ("control_count", "is_active", "deprecated_at"),
        "",
    ),
)


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "baseline_control_history",
        sa.Column("id", text(255), nullable=False),
        sa.Column("baseline_id", text(255), nullable=True),
        sa.Column("control_id", text(255), nullable=True),
        sa.Column("retired_at", timestamp(), nullable=True),
        sa.Column("organization_id", text(255), nullable=True),
        sa.Column("was_absent", sa.Boolean(), nullable=False),
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", "valid_from", name=op.f("pk_baseline_control_history")),
    )
    op.create_index(op.f("ix_baseline_control_history_valid_to"), "baseline_control_history", ["valid_to"])

    op.create_table(
        "control_coverage_history",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("control_id", text(255), nullable=False),
        sa.Column("coverage_status", sa.Integer(), nullable=True),
        sa.Column("coverage_gap", text(), nullable=True),
        sa.Column("is_applicable", sa.Boolean(), nullable=True),
        sa.Column("justification", text(), nullable=True),
        sa.Column("reasons", text(1300), nullable=False),
        sa.Column("created_at", timestamp(), nullable=True),
        sa.Column("updated_at", timestamp(), nullable=True),
        sa.Column("owner_id", text(255), nullable=True),
        sa.Column("note", text(), nullable=True),
        sa.Column("review_by", timestamp(), nullable=True),
        sa.Column("assessed_at", timestamp(), nullable=True),
        sa.Column("lapsed_status", sa.Integer(), nullable=True),
        sa.Column("lapsed_at", timestamp(), nullable=True),
        sa.Column("review_due_at", timestamp(), nullable=True),
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint(
            "organization_id", "control_id", "valid_from", name=op.f("pk_control_coverage_history")
        ),
    )
    op.create_table(
        "control_history",
        sa.Column("id", text(255), nullable=False),
        sa.Column("framework_id", text(255), nullable=True),
        sa.Column("parent_id", text(255), nullable=True),
        sa.Column("identifier", text(1000), nullable=True),
        sa.Column("name", text(500), nullable=True),
        sa.Column("slug", text(200), nullable=True),
        sa.Column("purpose", text(), nullable=True),
        sa.Column("type", text(8), nullable=True),
        sa.Column("description", text(), nullable=True),
        sa.Column("is_mandatory", sa.Boolean(), nullable=True),
        sa.Column("is_centralized", sa.Boolean(), nullable=True),
        sa.Column("created_at", timestamp(), nullable=True),
        sa.Column("updated_at", timestamp(), nullable=True),
        sa.Column("organization_id", text(255), nullable=True),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("search_text", text(), nullable=True),
        sa.Column("identifier_key", text(), nullable=True),
        sa.Column("name_key", text(), nullable=True),
        sa.Column("slug_key", text(), nullable=True),
        sa.Column("is_decomposed", sa.Boolean(), nullable=True),
        sa.Column("was_absent", sa.Boolean(), nullable=False),
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", "valid_from", name=op.f("pk_control_history")),
    )
    op.create_index(op.f("ix_control_history_valid_to"), "control_history", ["valid_to"])

    op.create_table(
        "control_match_history",
        sa.Column("id", text(255), nullable=False),
        sa.Column("source_control_id", text(255), nullable=True),
        sa.Column("target_control_id", text(255), nullable=True),
        sa.Column("match_level", sa.Integer(), nullable=True),
        sa.Column("organization_id", text(255), nullable=True),
        sa.Column("justification", text(), nullable=True),
        sa.Column("mapping_document_id", text(255), nullable=True),
        sa.Column("retired_at", timestamp(), nullable=True),
        sa.Column("rationale", text(1000), nullable=True),
        sa.Column("strength", text(1000), nullable=True),
        sa.Column("was_absent", sa.Boolean(), nullable=False),
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", "valid_from", name=op.f("pk_control_match_history")),
    )
    op.create_index(op.f("ix_control_match_history_valid_to"), "control_match_history", ["valid_to"])

    op.create_table(
        "effective_coverage_history",
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("control_id", text(255), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("is_indirect", sa.Boolean(), nullable=False),
        sa.Column("own", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("applies", sa.Boolean(), nullable=False),
        sa.Column("conflict", text(64), nullable=True),
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint(
            "organization_id", "control_id", "valid_from", name=op.f("pk_effective_coverage_history")
        ),
    )
    op.create_table(
        "framework_adoption_history",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("framework_id", text(255), nullable=False),
        sa.Column("adopted_at", timestamp(), nullable=False),
        sa.Column("baseline_id", text(255), nullable=True),
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint(
            "organization_id", "framework_id", "valid_from", name=op.f("pk_framework_adoption_history")
        ),
    )
    op.create_index(op.f("ix_framework_adoption_history_framework_id"), "framework_adoption_history", ["framework_id"])

    op.create_table(
        "framework_history",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=True),
        sa.Column("identifier", text(1000), nullable=True),
        sa.Column("slug", text(200), nullable=True),
        sa.Column("version", text(1000), nullable=True),
        sa.Column("identifier_color", text(1000), nullable=True),
        sa.Column("published_at", timestamp(), nullable=True),
        sa.Column("deprecated_at", timestamp(), nullable=True),
        sa.Column("name", text(500), nullable=True),
        sa.Column("description", text(), nullable=True),
        sa.Column("last_sync_at", timestamp(), nullable=True),
        sa.Column("created_at", timestamp(), nullable=True),
        sa.Column("updated_at", timestamp(), nullable=True),
        sa.Column("created_by", text(1000), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=True),
        sa.Column("is_centralized", sa.Boolean(), nullable=True),
        sa.Column("required_tier", text(1000), nullable=True),
        sa.Column("search_text", text(), nullable=True),
        sa.Column("identifier_key", text(), nullable=True),
        sa.Column("name_key", text(), nullable=True),
        sa.Column("slug_key", text(), nullable=True),
        sa.Column("version_key", text(), nullable=True),
        sa.Column("control_count", sa.Integer(), nullable=True),
        sa.Column("applicability_prefix", text(1000), nullable=True),
        sa.Column("was_absent", sa.Boolean(), nullable=False),
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("id", "valid_from", name=op.f("pk_framework_history")),
    )
    op.create_index(op.f("ix_framework_history_valid_to"), "framework_history", ["valid_to"])

    op.create_table(
        "history_start",
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("since", timestamp(), nullable=False),
        sa.Column("rules_since", timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("organization_id", name=op.f("pk_history_start")),
    )
    op.create_table(
        "set_aside_match_history",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("match_id", text(255), nullable=False),
        sa.Column("justification", text(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("organization_id", "match_id", "valid_from", name=op.f("pk_set_aside_match_history")),
    )

    dialect, moment = op.get_bind().dialect.name, now()
    for history in (*_EVERY_ROW, *_CHANGED_ROWS):
        for trigger in history.triggers():
            _execute(create_statements(trigger, dialect))
    _execute(create_statements(NOTE_START, dialect))
    at = sa.literal(moment, timestamp())
    for history in _EVERY_ROW:
        source = sa.table(history.table, *map(sa.column, history.columns))
        op.execute(
            sa.table(history.history, *map(sa.column, (*history.columns, "valid_from", "valid_to")))
            .insert()
            .from_select(
                [*history.columns, "valid_from", "valid_to"],
                sa.select(*source.c, at, sa.literal(FOREVER, timestamp())),
            )
        )
    # Without statistics SQLite would read all of it for each row of another table.
    for history in _EVERY_ROW:
        op.execute(f"ANALYZE {history.history}")
        if op.get_bind().dialect.name == "sqlite":  # Nor is it to read all of it once: see CALL_IT_LARGE.
            op.execute(sa.text(CALL_IT_LARGE).bindparams(table=history.history))
    op.execute(
        sa.table("history_start", sa.column("organization_id"), sa.column("since"))
        .insert()
        .from_select(["organization_id", "since"], sa.select(sa.table("organization", sa.column("id")).c.id, at))
    )


def _execute(statements: Sequence[str]) -> None:
    """Execute statements in which colons are no parameters."""
    for statement in statements:
        op.get_bind().exec_driver_sql(statement)
