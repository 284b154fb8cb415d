"""What records are called."""

from __future__ import annotations

from sqlalchemy import null, select

from normata.core.schema.naming import Naming
from normata.records.base import Restorable


def record_names(kind: type[Restorable], organization_id: str) -> Naming:
    """How the records of a kind are named: by title, in its natural order; their short ids tell them apart."""
    table = kind.sql().c
    identifier = table.short_id if "short_id" in table else null()
    rows = select(
        table.id, table[kind.title_column()].label("label"), identifier.label("identifier"), null().label("control_id")
    ).where(table.organization_id == organization_id)
    return Naming(
        rows, table.id, table.archived_at.is_(None), table.search_text, [table.title_key.asc(), table.id.asc()]
    )
