"""What an entitlement review is about: who may do what in which system, and whether it stays so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import text
from normata.core.schema.fields import Identifier, Name, Text, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key, refers_to

Decision = Literal["KEEP", "REMOVE", "CHANGE"]
KEEP: Decision = "KEEP"
REMOVE: Decision = "REMOVE"
CHANGE: Decision = "CHANGE"
DECISIONS: tuple[Decision, ...] = (KEEP, REMOVE, CHANGE)

_Decision = Annotated[Decision, mapped_column(text(16), info=CODED)]


class EntitlementReviewItem(Table):
    """An entitlement of a person in a system, which a review looks at, and what was decided."""

    __tablename__ = "entitlement_review_item"
    array = "entitlementReviewItems"
    fixed = ("organization_id", "entitlement_review_id")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    entitlement_review_id: Mapped[Identifier] = refers_to("entitlement_review")
    person: Mapped[Name] = mapped_column(
        info={"names_person": True, "description": "The person or account that has the entitlement."}
    )
    system: Mapped[Name] = mapped_column(info={"description": "The system in which they have it."})
    entitlement: Mapped[Name] = mapped_column(info={"description": "The role, group or right."})
    remark: Mapped[Text | None] = mapped_column(info={"description": "What helps to decide; null for nothing."})
    decision: Mapped[_Decision | None] = mapped_column(
        info={**CODED, "description": "Whether it stays, goes, or becomes another one; null while that is open."}
    )
    change: Mapped[Text | None] = mapped_column(info={"description": "What it becomes; null but for `CHANGE`."})
    decided_at: Mapped[Timestamp | None] = mapped_column(info={"description": "When that was decided."})
    decided_by_id: Mapped[Identifier | None] = refers_to("membership")
    task_id: Mapped[Identifier | None] = refers_to("task")
    created_at: Mapped[Timestamp]

    __table_args__ = (
        Index("ix_entitlement_review_item_list", "organization_id", "entitlement_review_id", "created_at", "id"),
        *(
            ForeignKeyConstraint(
                ["organization_id", column],
                [f"{table}.organization_id", f"{table}.id"],
                deferrable=True,
                initially="DEFERRED",
            )
            for column, table in (
                ("entitlement_review_id", "entitlement_review"),
                ("decided_by_id", "membership"),
                ("task_id", "task"),
            )
        ),
    )

    @classmethod
    def title_column(cls) -> str:
        return "entitlement"

    @classmethod
    def needs(cls, row: Mapping[str, Any]) -> Sequence[str]:
        needed = () if row.get("decision") is None else ("decided_at",)
        return (*needed, "change") if row.get("decision") == CHANGE else needed
