"""an assessment without a status is null, and one that only said that a control applies leaves that to the framework.

This step runs after the upgrade, because the previous version cannot read either as null. The coverage that it has
stored meanwhile is computed again, and controls that are not assessed are in no conflict. Only the previous version's
lists need the indexes that it drops. Put further steps of the same release in front of this one, which names the last
of them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import now, text, timestamp
from normata.coverage.upgrading import MATCHES_THAT_COUNT, compute_anew

revision = "20261126_90"
down_revision = "20261126_27"

_KINDS = (
    *("acronym", "asset", "audit", "entitlement_review", "finding", "incident", "integration_check", "label", "policy"),
    *("record", "record_category", "risk_review", "task", "variable", "vendor", "vulnerability_class"),
)

_RULE = "NOT_ASSESSED"  # of `normata.coverage.upgrades`

_ASSESSMENT = sa.table(
    "control_coverage",
    sa.column("organization_id", text(255)),
    sa.column("control_id", text(255)),
    sa.column("coverage_status", sa.Integer()),
    sa.column("coverage_gap", text()),
    sa.column("is_applicable", sa.Boolean()),
    sa.column("justification", text()),
    sa.column("reasons", text()),
)
_CONTROL = sa.table("control", sa.column("id", text(255)), sa.column("framework_id", text(255)))
_ADOPTION = sa.table(
    "framework_adoption", *(sa.column(name, text(255)) for name in ("organization_id", "framework_id", "baseline_id"))
)
_CHANGE = sa.table(
    "upgrade_change",
    sa.column("organization_id", text(255)),
    sa.column("control_id", text(255)),
    sa.column("rule", text(64)),
    sa.column("status_before", text(64)),
    sa.column("changed_at", timestamp()),
)


def upgrade() -> None:
    """Apply the change."""
    columns = _ASSESSMENT.c
    says_nothing_of_status = sa.and_(
        columns.coverage_status == 0,
        sa.func.trim(sa.func.coalesce(columns.coverage_gap, "")) == "",
        sa.or_(
            sa.func.trim(sa.func.coalesce(columns.justification, "")) != "",
            columns.reasons != "",
            columns.is_applicable.is_(False),
        ),
    )
    op.execute(
        _CHANGE.insert().from_select(
            ["organization_id", "control_id", "rule", "status_before", "changed_at"],
            sa.select(
                columns.organization_id,
                columns.control_id,
                sa.literal(_RULE),
                sa.literal("NONE"),
                sa.literal(now(), timestamp()),
            ).where(says_nothing_of_status),
        )
    )
    op.execute(_ASSESSMENT.update().where(says_nothing_of_status).values(coverage_status=None))
    # In an adoption with a baseline, which the previous version does not know, it may be intended.
    with_baseline = (
        sa.select(sa.literal(1))
        .where(
            _CONTROL.c.id == columns.control_id,
            _ADOPTION.c.framework_id == _CONTROL.c.framework_id,
            _ADOPTION.c.organization_id == columns.organization_id,
            _ADOPTION.c.baseline_id.is_not(None),
        )
        .correlate(_ASSESSMENT)
        .exists()
    )
    applied = sa.and_(columns.is_applicable.is_(True), ~with_baseline)
    op.execute(_ASSESSMENT.update().where(applied).values(is_applicable=None))
    compute_anew(op.get_bind(), MATCHES_THAT_COUNT, with_baselines=True)
    for kind in _KINDS:  # of the previous version's lists; this version's have an index of live records
        op.drop_index(f"ix_{kind}_list", kind)
    op.drop_index("ix_file_organization_id_size", "file")  # the previous version's quota counts erased files as well
