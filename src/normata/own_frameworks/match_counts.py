"""How many matches there are between the frameworks that an organization has adopted."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from sqlalchemy import String, bindparam, func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.frameworks.counting import match_counts
from normata.frameworks.model import Control, ControlMatch, FrameworkAdoption


class MatchCount(Wire):
    """How many matches lead from the controls of one framework to those of another."""

    source_framework_id: str = Field(description="The framework of the controls that the matches lead from.")
    target_framework_id: str = Field(description="The framework of the controls that they lead to.")
    matches: int = Field(description="How many matches count for the organization.")


class MatchCounts(Wire):
    """The numbers of matches between adopted frameworks."""

    items: list[MatchCount] = Field(description="One for each pair and direction with a match, the most matches first.")


def count_matches(transaction: Transaction, organization_id: str) -> dict[str, Any]:
    """The matches that count, by the adopted frameworks that they lead from and to; in one statement."""
    found = transaction.rows(_COUNTS, {"organization": organization_id})
    return {
        "items": [
            {"sourceFrameworkId": source, "targetFrameworkId": target, "matches": count}
            for source, target, count in found
        ]
    }


_SOURCE, _TARGET = (sql_table(Control).alias(name) for name in ("source", "target"))
_ORGANIZATION = bindparam("organization", type_=String())
_ADOPTED = select(FrameworkAdoption.framework_id).where(FrameworkAdoption.organization_id == _ORGANIZATION)
_COUNTS = (
    select(_SOURCE.c.framework_id, _TARGET.c.framework_id, func.count().label("matches"))
    .select_from(ControlMatch)
    .join(_SOURCE, _SOURCE.c.id == ControlMatch.source_control_id)
    .join(_TARGET, _TARGET.c.id == ControlMatch.target_control_id)
    .where(
        _SOURCE.c.framework_id.in_(_ADOPTED),
        _TARGET.c.framework_id.in_(_ADOPTED),
        _SOURCE.c.framework_id != _TARGET.c.framework_id,
        match_counts(_ORGANIZATION),
    )
    .group_by(_SOURCE.c.framework_id, _TARGET.c.framework_id)
    .order_by(func.count().desc(), _SOURCE.c.framework_id, _TARGET.c.framework_id)
)
