"""Reviews of risks: which risks a review lists, recording the outcome for each, and finishing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, case, insert, or_, select, true, update

from normata.core.changes.source import Fault, FaultyInput, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.changes.writing import BODY
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.descriptions import known_values
from normata.core.schema.fields import RISK_LEVELS, Identifier, Rating, RiskLevel, Text, Timestamp, Token
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import Input, Wire, columns
from normata.errors import Archived, NotFound, WrongState
from normata.identity.authority import own_membership
from normata.records.assurance import Risk
from normata.records.kinds import RiskReview
from normata.records.lookup import find, found_for_change
from normata.records.writing import change, change_writes
from normata.risks.levels import Levels, level_at, levels_of
from normata.risks.register import is_open, of_level
from normata.risks.review_model import ACCEPTED, NOT_REVIEWED, OUTCOMES, RiskReviewOutcome

RUNNING, FINISHED = "RUNNING", "FINISHED"
# What an outcome has of the risk itself, as it was.
_VALUES = (
    *("name", "status", "treatment_strategy", "inherent_probability", "inherent_impact", "residual_probability"),
    *("residual_impact", "target_probability", "target_impact", "accepted_at", "next_review_at"),
)
_CHANGED = ("outcome", "note", "recorded_at", "recorded_by_id", "level", *_VALUES)


class RiskReviewQuery(PageQuery):
    """The query of the risks of a review."""

    is_open: Annotated[
        Literal["true", "false"] | None, Field(description="Whether the outcome has to be still open.")
    ] = None


class ReviewedRisk(Wire):
    """A risk of a review: as it is now, or as it was when its outcome was recorded."""

    id: str = Field(description="The id of the risk.")
    short_id: int
    name: str
    is_live: bool = Field(description="False if the risk is archived now.")
    status: Token
    treatment_strategy: Token
    inherent_probability: Rating | None
    inherent_impact: Rating | None
    residual_probability: Rating | None
    residual_impact: Rating | None
    target_probability: Rating | None
    target_impact: Rating | None
    level: RiskLevel | None = Field(description="The level of the residual risk; null if it is not rated.")
    accepted_at: Timestamp | None
    next_review_at: Timestamp | None
    outcome: Token | None = Field(
        description="What came of the review; null while that is open." + known_values((*OUTCOMES, NOT_REVIEWED)),
        json_schema_extra={"x-extensible-enum": [*OUTCOMES, NOT_REVIEWED]},
    )
    note: str | None = Field(description="What there is to say about it; null for nothing.")
    recorded_at: Timestamp | None
    recorded_by_id: str | None


class OutcomeInput(Input):
    """The outcome of a review for a risk."""

    risk_id: Identifier = Field(description="The id of the risk.")
    outcome: Token = Field(
        description="What the review says. `CONFIRMED`: the ratings are right. `REASSESSED`: they have been changed."
        " `ACCEPTED`: the owner has accepted the residual risk. `ESCALATED`: others have to decide."
        + known_values(OUTCOMES),
        json_schema_extra={"x-extensible-enum": list(OUTCOMES)},
    )
    note: Text | None = Field(default=None, description="What there is to say about it.")
    next_review_at: Timestamp | None = Field(
        default=None, description="The risk's next review; left out or null, that date stays as it is."
    )


OUTCOME_WRITES = (
    insert_of(RiskReviewOutcome),
    update_of(RiskReviewOutcome, *_CHANGED),
    *change_writes(Risk),
)
FINISH_WRITES = (insert_of(RiskReviewOutcome), update_of(RiskReview, "finished_at"))


def list_risks(transaction: Transaction, query: RiskReviewQuery, review_id: str) -> dict[str, Any]:
    """A page of the risks of a review, those with the largest residual product first. Raises NotFound, UnfitCursor.

    A finished review has those whose outcomes it recorded, as they were then. A running one has the open risks that its
    filter selects, and those that have an outcome.
    """
    review = transaction.row(_REVIEW, {"organization": query.organization_id, "review": review_id})
    if review is None:
        raise NotFound
    levels = levels_of(transaction, query.organization_id)
    key = {"organization": query.organization_id, "review": review_id}
    statement = _ITEMS.where(_is_listed(review, levels))
    if query.is_open is not None:
        is_null = _OUTCOME.c.id.is_(None)
        statement = statement.where(is_null if query.is_open == "true" else ~is_null)
    order = [_PRODUCT.desc().nulls_last(), _RISK.c.short_id.asc(), _RISK.c.id.asc()]
    found = fetch_page(transaction, statement, order, query, key)
    return envelope([_item(row, levels) for row in found.rows], found, query)


def _item(row: Any, levels: Levels) -> dict[str, Any]:
    is_recorded = row.outcome_id is not None
    level = row.level if is_recorded else level_at(levels, row.residual_probability, row.residual_impact)
    return {
        "id": row.risk_id,
        "shortId": row.short_id,
        "name": row.name,
        "isLive": bool(row.is_live),
        "status": row.status,
        "treatmentStrategy": row.treatment_strategy,
        "inherentProbability": row.inherent_probability,
        "inherentImpact": row.inherent_impact,
        "residualProbability": row.residual_probability,
        "residualImpact": row.residual_impact,
        "targetProbability": row.target_probability,
        "targetImpact": row.target_impact,
        "level": level,
        "acceptedAt": row.accepted_at,
        "nextReviewAt": row.next_review_at,
        "outcome": row.outcome,
        "note": row.note,
        "recordedAt": row.recorded_at,
        "recordedById": row.recorded_by_id,
    }


def record_outcome(unit: UnitOfWork, review_id: str, body: OutcomeInput) -> dict[str, Any]:
    """Record the outcome for a risk, in place of an earlier one, and return the members of :class:`ReviewedRisk`.

    Raises NotFound, InsufficientRole, Archived, WrongState if the review is finished, and FaultyInput.
    """
    review = _running(unit, review_id)
    levels = levels_of(unit, review.organization_id)
    key = {"organization": review.organization_id, "review": review_id}
    risk = unit.row(find(Risk), {"record": body.risk_id})
    listed = _ITEMS.where(_is_listed(review, levels), _RISK.c.id == bindparam("risk"))
    if risk is None or not unit.rows(listed, key | {"risk": body.risk_id}):
        raise _fault("riskId", "names no risk that this review lists", "invalid")
    if body.outcome == NOT_REVIEWED:
        raise _fault("outcome", "follows from finishing the review", "read_only")
    if body.outcome == ACCEPTED and risk.accepted_at is None:
        raise _fault("outcome", "takes that the owner has accepted the residual risk, with `/accept/`", "not_accepted")
    if body.next_review_at is not None:
        risk = change(unit, Risk, risk.id, {"nextReviewAt": body.next_review_at})
    outcome = {"outcome": body.outcome, "note": body.note, "by": own_membership(unit, review.organization_id)}
    before = unit.row(_STORED, key | {"risk": risk.id})
    row: Any
    if before is None:
        row = unit.row(_INSERT_ONE, _recorded(unit, review, risk, levels, outcome))
        unit.publish(Change("record", RiskReviewOutcome, row.organization_id, row.id, row._asdict()))
    else:
        values = {f"new_{name}": value for name, value in _recorded(unit, review, risk, levels, outcome).items()}
        row = unit.row(_UPDATE, values | {"of": before.id})
        unit.publish(Change("record", RiskReviewOutcome, row.organization_id, row.id, row._asdict(), before._asdict()))
    [item] = unit.rows(_ITEMS.where(_RISK.c.id == risk.id), key)
    return _item(item, levels)


def finish(unit: UnitOfWork, review_id: str) -> Any:
    """Finish a review, and return its row. Risks whose outcome is open are recorded as not reviewed.

    Raises NotFound, InsufficientRole, Archived, and WrongState if it is finished.
    """
    review = _running(unit, review_id)
    levels = levels_of(unit, review.organization_id)
    outcome = {"outcome": NOT_REVIEWED, "note": None, "by": own_membership(unit, review.organization_id)}
    is_left = and_(_RISK.c.organization_id == _ORGANIZATION, is_open(), _selected(review, levels), ~_has_outcome)
    key = {"organization": review.organization_id, "review": review_id}
    left = [
        _recorded(unit, review, risk, levels, outcome)
        for risk in unit.rows(select(*columns(Risk)).where(is_left).order_by(_RISK.c.id), key)
    ]
    for batch in batches(left):
        unit.execute_many(_INSERT, batch)
    for values in left:
        unit.publish(Change("record", RiskReviewOutcome, review.organization_id, values["id"], values))
    row: Any = unit.row(_FINISH, {"of": review_id, "moment": unit.moment})
    unit.publish(
        Change(
            *("finish", RiskReview, row.organization_id, row.id, row._asdict(), review._asdict()),
            changed=("finished_at",),
        )
    )
    return row


def _running(unit: UnitOfWork, review_id: str) -> Any:
    """The row of a review that is live and not finished; nobody else changes it meanwhile."""
    review = found_for_change(unit, RiskReview, review_id)
    if review.archived_at is not None:
        raise Archived
    if review.finished_at is not None:
        raise WrongState(FINISHED, [RUNNING])
    return review


def _recorded(
    unit: UnitOfWork, review: Any, risk: Any, levels: Levels, outcome: Mapping[str, str | None]
) -> dict[str, Any]:
    """A row of an outcome, with the values of the risk as they are."""
    return {
        "id": new_id(),
        "organization_id": review.organization_id,
        "risk_review_id": review.id,
        "risk_id": risk.id,
        "outcome": outcome["outcome"],
        "note": outcome["note"],
        "recorded_at": unit.moment,
        "recorded_by_id": outcome["by"],
        "level": level_at(levels, risk.residual_probability, risk.residual_impact),
        **{name: getattr(risk, name) for name in _VALUES},
    }


def _fault(name: str, reason: str, code: str) -> FaultyInput:
    return FaultyInput([Fault(BODY, pointer(name), reason, code)])


# --- Statements

_RISK, _TABLE = Risk.sql(), sql_table(RiskReviewOutcome)
_REVIEWS, _OUTCOME = RiskReview.sql(), _TABLE
_ORGANIZATION: BindParameter[str] = bindparam("organization", type_=_RISK.c.organization_id.type)
_OF_REVIEW: BindParameter[str] = bindparam("review", type_=_TABLE.c.risk_review_id.type)


def _selected(review: Any, levels: Levels) -> ColumnElement[bool]:
    """Whether the filter of a review selects a risk. A filter that is no level selects all."""
    wanted = review.priority_filter
    return of_level(levels, "residual", [wanted]) if wanted in RISK_LEVELS else true()


def _is_listed(review: Any, levels: Levels) -> ColumnElement[bool]:
    is_recorded = _OUTCOME.c.id.is_not(None)
    if review.finished_at is not None:
        return is_recorded
    return or_(is_recorded, and_(is_open(), _selected(review, levels)))


def _of_then(name: str) -> ColumnElement[Any]:
    """A value of the risk: as it was when the outcome was recorded, else as it is."""
    return case((_OUTCOME.c.id.is_not(None), _OUTCOME.c[name]), else_=_RISK.c[name])


_REVIEW = select(_REVIEWS.c.priority_filter, _REVIEWS.c.finished_at).where(
    _REVIEWS.c.organization_id == _ORGANIZATION, _REVIEWS.c.id == _OF_REVIEW
)
_PRODUCT = _of_then("residual_probability") * _of_then("residual_impact")
_of_review = and_(
    _OUTCOME.c.organization_id == _ORGANIZATION,
    _OUTCOME.c.risk_review_id == _OF_REVIEW,
    _OUTCOME.c.risk_id == _RISK.c.id,
)
_has_outcome = select(_OUTCOME.c.id).where(_of_review).exists()
_ITEMS = (
    select(
        _RISK.c.id.label("risk_id"),
        _RISK.c.short_id,
        _RISK.c.archived_at.is_(None).label("is_live"),
        *(_of_then(name).label(name) for name in _VALUES),
        _OUTCOME.c.id.label("outcome_id"),
        *(_OUTCOME.c[name] for name in ("outcome", "note", "level", "recorded_at", "recorded_by_id")),
    )
    .select_from(_RISK.outerjoin(_OUTCOME, _of_review))
    .where(_RISK.c.organization_id == _ORGANIZATION)
)
_STORED = select(*_TABLE.c).where(
    _TABLE.c.organization_id == _ORGANIZATION,
    _TABLE.c.risk_review_id == _OF_REVIEW,
    _TABLE.c.risk_id == bindparam("risk"),
)
_INSERT = insert(_TABLE).values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
_INSERT_ONE = _INSERT.returning(*_TABLE.c)
_UPDATE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("of"))
    .values({name: bindparam(f"new_{name}", type_=_TABLE.c[name].type) for name in _CHANGED})
    .returning(*_TABLE.c)
)
_FINISH = (
    update(_REVIEWS)
    .where(_REVIEWS.c.id == bindparam("of"))
    .values(finished_at=bindparam("moment", type_=_REVIEWS.c.finished_at.type))
    .returning(*columns(RiskReview))
)
