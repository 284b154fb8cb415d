"""The risk matrix: how many open risks have each combination of probability and impact."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Select, bindparam, func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import RISK_LEVELS, RiskLevel
from normata.core.schema.paging import PastQuery
from normata.core.schema.wire import Wire
from normata.records.assurance import Risk
from normata.risks.levels import RATINGS, Levels, State, levels_of


class RiskMatrixQuery(PastQuery):
    """The query of the risk matrix."""

    of: Annotated[
        State,
        Field(
            description="The ratings: before treatment (`inherent`), as it is now, or as it shall become (`target`)."
        ),
    ] = "residual"


class RiskCell(Wire):
    """A combination of probability and impact."""

    probability: int = Field(description="From 1, the lowest, to 5.")
    impact: int = Field(description="From 1, the lowest, to 5.")
    level: RiskLevel = Field(description="The level that the organization gives it.")
    count: int = Field(description="The number of risks.")


class RiskMatrix(Wire):
    """The open risks of an organization by probability and impact."""

    of: State = Field(description="The ratings that are counted.")
    cells: list[RiskCell] = Field(description="All 25, by impact, then by probability.")
    levels: dict[RiskLevel, int] = Field(description="The number of risks of each level.")
    unrated: int = Field(description="The number of risks without a probability or an impact.")
    total: int = Field(description="The number of risks: all live ones that are not `CLOSED`.")


def risk_matrix(transaction: Transaction, organization_id: str, query: RiskMatrixQuery) -> dict[str, Any]:
    """The members of :class:`RiskMatrix`, in two statements."""
    key = {"organization": organization_id}
    levels = levels_of(transaction, organization_id)
    counts: Counter[tuple[int | None, int | None]] = Counter()
    for probability, impact, count in transaction.rows(_counts(query.of), key):
        counts[probability, impact] += count
    return matrix_of(query.of, levels, counts)


def matrix_of(of: State, levels: Levels, counts: Counter[tuple[int | None, int | None]]) -> dict[str, Any]:
    """The members of :class:`RiskMatrix`, from the number of risks of each probability and impact, null if unrated."""
    cells: list[dict[str, Any]] = [
        {
            "probability": probability,
            "impact": impact,
            "level": levels[impact - 1][probability - 1],
            "count": counts[probability, impact],
        }
        for impact in RATINGS
        for probability in RATINGS
    ]
    of_levels: Counter[str] = Counter()
    for cell in cells:
        of_levels[cell["level"]] += cell["count"]
    return {
        "of": of,
        "cells": cells,
        "levels": {level: of_levels[level] for level in RISK_LEVELS},
        "unrated": counts.total() - of_levels.total(),
        "total": counts.total(),
    }


_RISK = Risk.sql()


@cache
def _counts(of: State) -> Select[Any]:
    probability, impact = _RISK.c[f"{of}_probability"], _RISK.c[f"{of}_impact"]
    return (
        select(probability, impact, func.count())
        .where(
            _RISK.c.organization_id == bindparam("organization"),
            _RISK.c.archived_at.is_(None),
            _RISK.c.status != "CLOSED",
        )
        .group_by(probability, impact)
    )
