"""What a risk review says of a risk: its outcome, and the risk as it was when that was recorded."""

from __future__ import annotations

from typing import Annotated

from sqlalchemy import ForeignKeyConstraint, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import text
from normata.core.schema.fields import Identifier, Name, Rating, RiskLevel, Text, Timestamp, Token
from normata.core.schema.table import CODED, Table, foreign_key, known, refers_to

CONFIRMED, REASSESSED, ACCEPTED, ESCALATED = "CONFIRMED", "REASSESSED", "ACCEPTED", "ESCALATED"
NOT_REVIEWED = "NOT_REVIEWED"  # recorded by finishing a review alone
OUTCOMES = (CONFIRMED, REASSESSED, ACCEPTED, ESCALATED)

_Level = Annotated[RiskLevel, mapped_column(text(16), info=CODED)]


class RiskReviewOutcome(Table):
    """The outcome of a review for one risk, with the values of the risk when it was recorded."""

    __tablename__ = "risk_review_outcome"
    array = "riskReviewOutcomes"
    fixed = ("organization_id", "risk_review_id", "risk_id")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    risk_review_id: Mapped[Identifier] = refers_to("risk_review")
    risk_id: Mapped[Identifier] = refers_to("risk")
    outcome: Mapped[Token] = known(*OUTCOMES, NOT_REVIEWED)
    note: Mapped[Text | None] = mapped_column(info={"description": "What there is to say about it; null for nothing."})
    recorded_at: Mapped[Timestamp]
    recorded_by_id: Mapped[Identifier | None] = refers_to("membership")
    name: Mapped[Name]
    status: Mapped[Token] = known("OPEN", "IN_TREATMENT", "MONITORED", "CLOSED")
    treatment_strategy: Mapped[Token] = known("UNKNOWN", "AVOID", "MITIGATE", "TRANSFER", "ACCEPT")
    inherent_probability: Mapped[Rating | None]
    inherent_impact: Mapped[Rating | None]
    residual_probability: Mapped[Rating | None]
    residual_impact: Mapped[Rating | None]
    target_probability: Mapped[Rating | None]
    target_impact: Mapped[Rating | None]
    level: Mapped[_Level | None] = mapped_column(
        info={**CODED, "description": "The level of the residual risk then; null if it was not rated."}
    )
    accepted_at: Mapped[Timestamp | None]
    next_review_at: Mapped[Timestamp | None]

    __table_args__ = (
        UniqueConstraint("organization_id", "risk_review_id", "risk_id"),
        *(
            ForeignKeyConstraint(
                ["organization_id", column],
                [f"{table}.organization_id", f"{table}.id"],
                deferrable=True,
                initially="DEFERRED",
            )
            for column, table in (
                ("risk_review_id", "risk_review"),
                ("risk_id", "risk"),
                ("recorded_by_id", "membership"),
            )
        ),
    )
