"""The levels of an organization's risk matrix, and the products that order its risks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import RISK_LEVELS, RiskLevel
from normata.core.schema.table import sql_table
from normata.identity.model import Organization

State = Literal["inherent", "residual", "target"]
STATES: tuple[State, ...] = get_args(State)

RATINGS = range(1, 6)
Levels = Sequence[Sequence[RiskLevel]]  # a list for each impact, with a level for each probability
# The usual level of a cell is the highest one whose product of probability and impact it reaches.
_LEAST: dict[RiskLevel, int] = {"LOW": 1, "MEDIUM": 5, "HIGH": 10, "CRITICAL": 15}


def usual_levels() -> list[list[RiskLevel]]:
    """The levels of an organization that has set none."""
    return [
        [
            max((level for level in RISK_LEVELS if _LEAST[level] <= impact * probability), key=RISK_LEVELS.index)
            for probability in RATINGS
        ]
        for impact in RATINGS
    ]


def levels_of(transaction: Transaction, organization_id: str) -> Levels:
    """The levels of an organization: its own, or the usual ones."""
    own: Levels | None = transaction.scalar(_LEVELS, {"organization": organization_id})
    return own or usual_levels()


def level_at(levels: Levels, probability: int | None, impact: int | None) -> RiskLevel | None:
    """The level of a probability and an impact; null if one of them is not rated."""
    return None if probability is None or impact is None else levels[impact - 1][probability - 1]


_ORGANIZATION = sql_table(Organization)
_LEVELS = select(_ORGANIZATION.c.risk_levels).where(_ORGANIZATION.c.id == bindparam("organization"))
