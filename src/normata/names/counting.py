"""How many records there are of each kind."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import Field
from sqlalchemy import CompoundSelect, bindparam, func, literal, select, union_all

from normata.core.db.transaction import Transaction
from normata.core.schema.wire import Wire
from normata.records.archive.queries import KINDS


class KindCount(Wire):
    """A kind of records."""

    kind: str = Field(description="The kind, as in its path: `record-categories`.")
    name: str = Field(description="What people call records of this kind: `record categories`.")
    live: int = Field(description="How many live records there are.")
    archived: int = Field(description="How many archived ones there are.")


class Kinds(Wire):
    """The kinds of records."""

    items: list[KindCount] = Field(description="Every kind, in the order of the documentation.")


def count_kinds(transaction: Transaction, organization_id: str) -> dict[str, Any]:
    """How many records an organization has of each kind, live and archived; in one statement."""
    rows = transaction.rows(_counts(), {"organization": organization_id})
    found = {row.kind: row for row in rows}
    return {
        "items": [
            {"kind": path, "name": kind.plural(), "live": found[path].live, "archived": found[path].archived}
            for path, kind in KINDS.items()
        ]
    }


@cache
def _counts() -> CompoundSelect[Any]:
    parts = []
    for path, kind in KINDS.items():
        table = kind.sql().c
        archived = func.count(table.archived_at)
        parts.append(
            select(literal(path).label("kind"), (func.count() - archived).label("live"), archived.label("archived"))
            .select_from(kind.sql())
            .where(table.organization_id == bindparam("organization"))
        )
    return union_all(*parts)
