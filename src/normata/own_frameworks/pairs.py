"""Pairs of own matches: people can make one match for a pair of controls and a direction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from sqlalchemy import bindparam, select

from normata.core.changes.source import Row
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import batches
from normata.core.schema.table import sql_table
from normata.frameworks.model import ControlMatch

Pair = tuple[str, str]  # source and target


def pair_of(row: Row) -> Pair:
    """The source and target of a row of ``controlMatches``."""
    return row.values["sourceControlId"], row.values["targetControlId"]


def own_between(unit: UnitOfWork, organization_id: str, pairs: Collection[Pair]) -> dict[Pair, list[str]]:
    """The ids of the matches that people have made between these controls, by pair; pairs without any are left out."""
    found: defaultdict[Pair, list[str]] = defaultdict(list)
    for batch in batches(sorted({source for source, _ in pairs})):
        for row in unit.rows(_OWN, {"organization": organization_id, "sources": batch}):
            pair = (row.source_control_id, row.target_control_id)
            if pair in pairs:
                found[pair].append(row.id)
    return dict(found)


_MATCH = sql_table(ControlMatch)
_OWN = select(_MATCH.c.id, _MATCH.c.source_control_id, _MATCH.c.target_control_id).where(
    _MATCH.c.organization_id == bindparam("organization"),
    _MATCH.c.mapping_document_id.is_(None),
    _MATCH.c.source_control_id.in_(bindparam("sources", expanding=True)),
)
