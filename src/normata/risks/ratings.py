"""The ratings that a risk has had, and from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Rating, Timestamp
from normata.core.schema.history_triggers import FOREVER
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.history.model import RiskHistory
from normata.records.assurance import Risk
from normata.records.listing import one_record
from normata.risks.levels import STATES, level_at, levels_of
from normata.risks.register import RiskStateLevels

_RATINGS = tuple(f"{of}_{what}" for of in STATES for what in ("probability", "impact"))


class RiskRatings(Wire):
    """The ratings of a risk, while they were the same."""

    since: Timestamp = Field(description="When they were given.")
    until: Timestamp | None = Field(description="When they were changed; null if they are those of now.")
    inherent_probability: Rating | None
    inherent_impact: Rating | None
    residual_probability: Rating | None
    residual_impact: Rating | None
    target_probability: Rating | None
    target_impact: Rating | None
    levels: RiskStateLevels = Field(description="The levels that the organization gives to them today.")


class RiskRatingsHistory(Wire):
    """The ratings that a risk has had."""

    items: list[RiskRatings] = Field(description="The newest first.")


def ratings_of(transaction: Transaction, organization_id: str, risk_id: str) -> dict[str, Any]:
    """The members of :class:`RiskRatingsHistory`, of a risk that is live or archived. Raises NotFound."""
    one_record(transaction, Risk, organization_id, risk_id)
    levels = levels_of(transaction, organization_id)
    rows = transaction.rows(_HISTORY, {"organization": organization_id, "risk": risk_id})
    spans: list[tuple[Any, Sequence[int | None], str]] = []  # since, ratings, until
    for row in rows:
        ratings = tuple(getattr(row, name) for name in _RATINGS)
        if spans and spans[-1][1] == ratings:
            spans[-1] = (spans[-1][0], ratings, row.valid_to)
        else:
            spans.append((row.valid_from, ratings, row.valid_to))
    names = [f"{of}{what}" for of in STATES for what in ("Probability", "Impact")]
    return {
        "items": [
            {
                "since": since,
                "until": None if until == FOREVER else until,
                **dict(zip(names, ratings, strict=True)),
                "levels": {
                    of: level_at(levels, *ratings[2 * place : 2 * place + 2]) for place, of in enumerate(STATES)
                },
            }
            for since, ratings, until in reversed(spans)
        ]
    }


_TABLE = sql_table(RiskHistory)
_HISTORY = (
    select(_TABLE.c.valid_from, _TABLE.c.valid_to, *(_TABLE.c[name] for name in _RATINGS))
    .where(_TABLE.c.organization_id == bindparam("organization"), _TABLE.c.id == bindparam("risk"))
    .order_by(_TABLE.c.valid_from)
)
