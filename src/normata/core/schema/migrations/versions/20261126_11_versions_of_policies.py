"""versions of policies, and whether an organization allows approvals of one's own text.

A policy that is approved, or in review, begins with a version that says it was imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from alembic import op

from normata.core.changes.difference import canonical
from normata.core.db.types import document, text, timestamp

revision = "20261126_11"
down_revision = "20261126_10"

_AT_ONCE = 500


def upgrade() -> None:
    """Apply the change."""
    op.add_column(
        "organization", sa.Column("allows_self_approval", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    table = op.create_table(
        "policy_version",
        sa.Column("id", text(255), nullable=False),
        sa.Column("organization_id", text(255), nullable=False),
        sa.Column("policy_id", text(255), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("state", text(16), nullable=False),
        sa.Column("is_imported", sa.Boolean(), nullable=False),
        sa.Column("title", text(500), nullable=False),
        sa.Column("content", document(), nullable=True),
        sa.Column("content_sha256", text(64), nullable=True),
        *(sa.Column(name, text(255), nullable=True) for name in ("edited_by_id", "submitted_by_id", "approved_by_id")),
        sa.Column("reason", text(), nullable=True),
        sa.Column("created_at", timestamp(), nullable=False),
        *(
            sa.Column(name, timestamp(), nullable=True)
            for name in ("submitted_at", "approved_at", "published_at", "superseded_at", "erased_at")
        ),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name=op.f("fk_policy_version_organization_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policy_version")),
        sa.UniqueConstraint(
            "organization_id", "policy_id", "number", name=op.f("uq_policy_version_organization_id_policy_id_number")
        ),
    )
    rows: list[dict[str, Any]] = []
    for row in _imported():
        rows.append(row)
        if len(rows) == _AT_ONCE:
            op.bulk_insert(table, rows)
            rows = []
    op.bulk_insert(table, rows)


def _imported() -> Iterator[dict[str, Any]]:
    names = ("id", "organization_id", "title", "status", "current_version")
    policy = sa.table(
        "policy",
        *(sa.column(name, text()) for name in names),
        sa.column("content", document()),
        *(sa.column(name, timestamp()) for name in ("last_approved_at", "updated_at")),
    )
    found = op.get_bind().execute(sa.select(*policy.c).where(policy.c.status != "DRAFT").order_by(policy.c.id))
    for one in found.all():
        written = one.content if isinstance(one.content, str) else canonical(one.content)
        number = re.match(r"\d{1,9}", one.current_version or "", re.ASCII)
        yield {
            "id": f"imported-{sha256(one.id.encode()).hexdigest()[:32]}",
            "organization_id": one.organization_id,
            "policy_id": one.id,
            "number": max(int(number[0]), 1) if number else 1,
            "state": one.status if one.status in ("IN_REVIEW", "PUBLISHED", "RETIRED") else "APPROVED",
            "is_imported": True,
            "title": one.title,
            "content": one.content,
            "content_sha256": sha256(written.encode()).hexdigest(),
            "created_at": one.updated_at,
            "approved_at": None if one.status == "IN_REVIEW" else one.last_approved_at,
        }
