"""declarations of publishers: decomposed and mandatory controls, and the table of applicability."""

from __future__ import annotations

import json
import re
from uuid import UUID, uuid5

import sqlalchemy as sa
from alembic import op

from normata.core.db.types import text

revision = "20261124_31"
down_revision = "20261124_30"

# The table of known frameworks of this version. A later import declares what it has by then.
_ANNEX_A = "A."
_CLAUSES = r"(?:[4-9]|10)(?:\.[0-9]+)*"
_KNOWN = (
    # id, decomposed, mandatory, prefix of the table of applicability
    ("urn:intuitem:risk:framework:iso27001-2013", None, _CLAUSES, _ANNEX_A),
    ("urn:intuitem:risk:framework:iso27001-2022", None, _CLAUSES, _ANNEX_A),
    ("urn:intuitem:risk:framework:iso42001-2023", None, None, _ANNEX_A),
    ("urn:intuitem:risk:framework:pcidss-4_0", r"A?[0-9]+\.[0-9]+", None, None),
    ("urn:intuitem:risk:framework:iso22301-2019", r"4\.2", None, None),
    ("urn:bassou:risk:framework:qualification_services_cloud_iiv", r"3\.7", None, None),
    ("urn:intuitem:risk:framework:pqc-migration-roadmap", r"-[a-z-]+", None, None),
)
_OWN = UUID("0a1c7a4e-93f5-5d0a-8a7e-6f1b0d8b7c55")  # what uploads make their ids of, see catalogs/uploads.py

_CONTROLS = sa.text("SELECT id, identifier, type, parent_id FROM control WHERE framework_id = :framework")
_DECOMPOSED = sa.text("UPDATE control SET is_decomposed = :yes WHERE id = :control")
_MANDATORY = sa.text("UPDATE control SET is_mandatory = :yes WHERE id = :control")
_PREFIX = sa.text("UPDATE framework SET applicability_prefix = :prefix WHERE id = :framework")


def upgrade() -> None:
    """Apply the change."""
    op.add_column("framework", sa.Column("applicability_prefix", text(1000), nullable=True))
    connection = op.get_bind()
    owners = [None, *connection.scalars(sa.text("SELECT id FROM organization ORDER BY id")).all()]
    stored = set(connection.scalars(sa.text("SELECT id FROM framework")).all())
    for published, decomposed, mandatory, prefix in _KNOWN:
        for owner in owners:
            framework = published if owner is None else str(uuid5(_OWN, json.dumps([owner, published])))
            if framework in stored:
                _declare(connection, framework, decomposed, mandatory)
                connection.execute(_PREFIX, {"prefix": prefix, "framework": framework})


def _declare(connection: sa.Connection, framework: str, decomposed: str | None, mandatory: str | None) -> None:
    controls = connection.execute(_CONTROLS, {"framework": framework}).all()
    parents = {row.parent_id for row in controls}
    requirements = [row for row in controls if row.type == "CONTROL"]
    groups = [row for row in requirements if row.id in parents]
    for statement, pattern, rows in ((_DECOMPOSED, decomposed, groups), (_MANDATORY, mandatory, requirements)):
        declared = [{"control": row.id, "yes": True} for row in rows if _is_one(pattern, row.identifier)]
        if declared:
            connection.execute(statement, declared)


def _is_one(pattern: str | None, identifier: str) -> bool:
    return pattern is not None and re.fullmatch(pattern, identifier) is not None
