"""the evidence of controls, with the history of links and evidence, and why an assessment has lapsed.

What is linked already counts from this upgrade on: its history begins now. The triggers of the history of assessments
are made anew with the new column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import Document, document, now, passes_at, text, timestamp
from normata.core.schema.history_triggers import FOREVER, EveryRow, create_statements

revision = "20261126_09"
down_revision = "20261126_08"

_ASSESSMENT = (
    *("id", "organization_id", "control_id", "coverage_status", "coverage_gap", "is_applicable", "justification"),
    *("reasons", "created_at", "updated_at", "owner_id", "note", "review_by", "assessed_at", "lapsed_status"),
    *("lapsed_at", "review_due_at", "lapse_reason"),
)


def _evidence() -> list[sa.Column[object]]:
    return [
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("slug", text(200), nullable=False),
        sa.Column("short_id", sa.Integer(), nullable=False),
        sa.Column("name", text(500), nullable=False),
        sa.Column("description", text(), nullable=True),
        sa.Column("type", text(64), nullable=False),
        sa.Column("url", text(1000), nullable=True),
        sa.Column("collected_at", timestamp(), nullable=True),
        sa.Column("collected_by_id", text(255), nullable=True),
        sa.Column("owner_id", text(255), nullable=True),
        sa.Column("valid_until", timestamp(), nullable=True),
        sa.Column("file_ids", document(), nullable=False),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("updated_at", timestamp(), nullable=False),
        sa.Column("archived_at", timestamp(), nullable=True),
        sa.Column("search_text", text(), nullable=False),
        sa.Column("title_key", text(), nullable=False),
    ]


def _link() -> list[sa.Column[object]]:
    return [
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("from_kind", text(64), nullable=False),
        sa.Column("from_id", text(255), nullable=False),
        sa.Column("to_kind", text(64), nullable=False),
        sa.Column("to_id", text(255), nullable=False),
        sa.Column("relation", text(64), nullable=False),
        sa.Column("note", text(1000), nullable=True),
        sa.Column("created_at", timestamp(), nullable=False),
        sa.Column("removed_at", timestamp(), nullable=True),
    ]


def _control_evidence() -> list[sa.Column[object]]:
    return [
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("control_id", text(255), nullable=False),
        sa.Column("pieces", sa.Integer(), nullable=False),
        sa.Column("ends_at", timestamp(), nullable=True),
    ]


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "control_evidence",
        *_control_evidence(),
        *(
            sa.ForeignKeyConstraint(
                [column], [target], name=f"fk_control_evidence_{column}", initially="DEFERRED", deferrable=True
            )
            for column, target in (("organization_id", "organization.id"), ("control_id", "control.id"))
        ),
        sa.PrimaryKeyConstraint("organization_id", "control_id", name="pk_control_evidence"),
    )
    ends = sa.text("ends_at IS NOT NULL")
    op.create_index(
        "ix_control_evidence_ends",
        "control_evidence",
        ["organization_id", "ends_at", "control_id"],
        sqlite_where=ends,
        postgresql_where=ends,
    )
    _fill()
    _keep_history("evidence", _evidence(), ("organization_id", "id"))
    _keep_history("link", _link(), ("organization_id", "id"))
    op.create_index("ix_link_history_organization_id_to_id", "link_history", ["organization_id", "to_id"])
    _keep_history("control_evidence", _control_evidence(), ("organization_id", "control_id"))
    for table in ("control_coverage", "control_coverage_history"):
        op.add_column(table, sa.Column("lapse_reason", text(64), nullable=True))
    assessments = EveryRow("control_coverage", _ASSESSMENT, ("organization_id", "control_id"))
    for trigger in assessments.triggers():
        if op.get_bind().dialect.name == "sqlite":
            op.execute(f"DROP TRIGGER {trigger.name}")
        else:
            op.execute(f"DROP TRIGGER {trigger.name} ON control_coverage")
            op.execute(f"DROP FUNCTION {trigger.name}()")
    _make_triggers(assessments)


def _fill() -> None:
    """Store what the links say that there are already."""
    link = sa.table("link", *(sa.column(one.name, one.type) for one in _link())).c
    evidence = sa.table("evidence", *(sa.column(one.name, one.type) for one in _evidence())).c
    statement = (
        sa.select(link.organization_id, link.to_id, link.created_at, link.removed_at)
        .add_columns(evidence.valid_until, evidence.archived_at)
        .where(
            link.from_kind == "evidence",
            link.to_kind == "controls",
            link.relation == "SUPPORTS",
            evidence.id == link.from_id,
            evidence.organization_id == link.organization_id,
        )
    )
    pieces: defaultdict[tuple[str, str], int] = defaultdict(int)
    all_ends: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for row in op.get_bind().execute(statement).all():
        expires_at = None if row.valid_until is None else passes_at(row.valid_until)
        ends = [at for at in (expires_at, row.archived_at, row.removed_at) if at is not None]
        key = (row.organization_id, row.to_id)
        pieces[key] += row.removed_at is None and row.archived_at is None
        all_ends[key].add(max(row.created_at, min(ends)) if ends else FOREVER)
    rows = [
        {
            "organization_id": key[0],
            "control_id": key[1],
            "pieces": count,
            "ends_at": None if FOREVER in all_ends[key] else max(all_ends[key]),
        }
        for key, count in pieces.items()
    ]
    if rows:
        columns = (sa.column(one.name, one.type) for one in _control_evidence())
        op.bulk_insert(sa.table("control_evidence", *columns), rows)


def _keep_history(table: str, columns: Sequence[sa.Column[object]], key: tuple[str, ...]) -> None:
    """Make the history of a table, which begins now."""
    names = tuple(one.name for one in columns)
    op.create_table(
        f"{table}_history",
        *columns,
        sa.Column("valid_from", timestamp(), nullable=False),
        sa.Column("valid_to", timestamp(), nullable=False),
        sa.PrimaryKeyConstraint(*(name for name in names if name in key), "valid_from", name=f"pk_{table}_history"),
    )
    _make_triggers(EveryRow(table, names, key, tuple(one.name for one in columns if isinstance(one.type, Document))))
    source = sa.table(table, *map(sa.column, names))
    span = (sa.literal(now(), timestamp()), sa.literal(FOREVER, timestamp()))
    op.execute(
        sa.table(f"{table}_history", *map(sa.column, (*names, "valid_from", "valid_to")))
        .insert()
        .from_select([*names, "valid_from", "valid_to"], sa.select(*source.c, *span))
    )


def _make_triggers(history: EveryRow) -> None:
    for trigger in history.triggers():
        for statement in create_statements(trigger, op.get_bind().dialect.name):
            op.get_bind().exec_driver_sql(statement)
