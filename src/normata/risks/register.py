"""The register of open risks: the highest first, with their levels, and with what treats them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field, create_model
from sqlalchemy import ColumnElement, and_, false, not_, or_, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Identifier, RiskLevel
from normata.core.schema.paging import Page, PastPageQuery, PastQuery, QueryFlag, digits_only, envelope, fetch_page
from normata.core.schema.wire import Wire, as_wire, columns, wire
from normata.errors import NotFound
from normata.records.assurance import Risk
from normata.risks.levels import RATINGS, STATES, Levels, State, level_at, levels_of
from normata.risks.treatment import Treatment, rests_on_gap, treatments

Of = Annotated[
    State,
    Field(description="The ratings: before treatment (`inherent`), as it is now, or as it shall become (`target`)."),
]
_Rating = Annotated[int | None, Field(ge=1, le=5, description="Only risks with this rating."), digits_only]


class RiskRegisterQuery(PastPageQuery):
    """The query of the register of risks."""

    repeated: ClassVar[tuple[str, ...]] = ("id", "level")

    of: Of = "residual"
    id: Annotated[
        list[Identifier] | None,
        Field(max_length=100, description="Only the risk with this id, or one of these where it is repeated."),
    ] = None
    level: Annotated[
        list[RiskLevel] | None,
        Field(description="Only risks of this level, or one of these where it is repeated."),
    ] = None
    probability: _Rating = None
    impact: _Rating = None
    rests_on_gap: Annotated[
        QueryFlag | None, Field(description="Whether something has to be claimed that rests on a gap.")
    ] = None


class RiskStateLevels(Wire):
    """The levels of a risk, null where it is not rated."""

    inherent: RiskLevel | None = Field(description="Before treatment.")
    residual: RiskLevel | None = Field(description="As it is now.")
    target: RiskLevel | None = Field(description="As it shall become.")


class TreatedRisk(Treatment):
    """The levels of a risk, what treats it, and what is claimed of it."""

    levels: RiskStateLevels = Field(description="The levels that the organization gives to its ratings.")


RegisteredRisk: type[BaseModel] = create_model(
    "RegisteredRisk",
    __base__=(wire(Risk), TreatedRisk),
    __doc__="An open risk, with its levels and what treats it.",
)


class RiskRegisterPage(Page[RegisteredRisk]):
    """A page of the register of risks."""


def risk_register(transaction: Transaction, query: RiskRegisterQuery) -> dict[str, Any]:
    """A page of open risks, those with the largest product first, in five statements. Raises UnfitCursor."""
    levels = levels_of(transaction, query.organization_id)
    key = {"organization": query.organization_id, "moment": transaction.time_of_reading()}
    product = _RISK[f"{query.of}_probability"] * _RISK[f"{query.of}_impact"]
    order = [product.desc().nulls_last(), _RISK.short_id.asc(), _RISK.id.asc()]
    statement = select(*columns(Risk)).where(*_conditions(query, levels))
    found = fetch_page(transaction, statement, order, query, key)
    of_risks = treatments(transaction, query.organization_id, found.rows, query.as_of)
    items = [{**as_wire(Risk, row), "levels": _levels(row, levels), **of_risks[row.id]} for row in found.rows]
    return envelope(items, found, query)


def treated_risk(transaction: Transaction, query: PastQuery, risk_id: str) -> dict[str, Any]:
    """The members of :class:`TreatedRisk`, of a risk that is live or archived. Raises NotFound."""
    statement = select(*columns(Risk)).where(_RISK.organization_id == query.organization_id, _RISK.id == risk_id)
    row = transaction.row(statement)
    if row is None:
        raise NotFound
    levels = levels_of(transaction, query.organization_id)
    treatment = treatments(transaction, query.organization_id, [row], query.as_of)[risk_id]
    return {"levels": _levels(row, levels), **treatment}


def of_level(levels: Levels, of: State, wanted: Sequence[RiskLevel]) -> ColumnElement[bool]:
    """Whether a risk is rated with one of these levels."""
    probability, impact = _RISK[f"{of}_probability"], _RISK[f"{of}_impact"]
    rows = (
        and_(impact == number, probability.in_([one for one in RATINGS if levels[number - 1][one - 1] in wanted]))
        for number in RATINGS
        if any(level in wanted for level in levels[number - 1])
    )
    return or_(false(), *rows)


def is_open() -> ColumnElement[bool]:
    """Whether a risk is live, and not ``CLOSED``."""
    return and_(_RISK.archived_at.is_(None), _RISK.status != "CLOSED")


def _conditions(query: RiskRegisterQuery, levels: Levels) -> Iterator[ColumnElement[bool]]:
    yield _RISK.organization_id == query.organization_id
    yield is_open()
    if query.id is not None:
        yield _RISK.id.in_(query.id)
    if query.level:
        yield of_level(levels, query.of, query.level)
    for name in ("probability", "impact"):
        if (rating := getattr(query, name)) is not None:
            yield _RISK[f"{query.of}_{name}"] == rating
    if query.rests_on_gap is not None:
        condition = rests_on_gap(query.as_of)
        yield condition if query.rests_on_gap else not_(condition)


def _levels(row: Any, levels: Levels) -> dict[str, RiskLevel | None]:
    return {of: level_at(levels, getattr(row, f"{of}_probability"), getattr(row, f"{of}_impact")) for of in STATES}


_RISK = Risk.sql().c
