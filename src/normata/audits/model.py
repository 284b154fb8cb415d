"""A row of the checklist of an audit: what is checked, with what result, and the findings that came of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import Document, text
from normata.core.schema.fields import Count, Identifier, Name, ShortName, ShortText, Text, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key, lists, refers_to, refers_to_kind, set_by

NOT_CHECKED, CONFORMING, NONCONFORMING = "NOT_CHECKED", "CONFORMING", "NONCONFORMING"
OBSERVATION, NOT_APPLICABLE = "OBSERVATION", "NOT_APPLICABLE"
# What is wrong comes first, as in a report.
STATUSES = (NONCONFORMING, OBSERVATION, CONFORMING, NOT_APPLICABLE, NOT_CHECKED)
ChecklistStatus = Literal["NOT_CHECKED", "CONFORMING", "NONCONFORMING", "OBSERVATION", "NOT_APPLICABLE"]

MAX_FINDINGS = 50  # of a row
_FindingIds = Annotated[
    list[Identifier],
    Field(max_length=MAX_FINDINGS),
    AfterValidator(lambda ids: list(dict.fromkeys(ids))),
    mapped_column(Document()),
]
_Status = Annotated[ChecklistStatus, mapped_column(text(16))]


class ChecklistRow(Table):
    """A control or a policy that an audit checks, as it was named when the checklist was made."""

    __tablename__ = "checklist_row"
    array = "checklistRows"
    fixed = ("organization_id", "audit_id", "about_kind", "about_id")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    audit_id: Mapped[Identifier] = refers_to("audit")
    about_kind: Mapped[ShortName] = mapped_column(info=CODED)
    about_id: Mapped[Identifier] = refers_to_kind("about_kind")
    identifier: Mapped[ShortText | None] = mapped_column(
        info={"description": "What the publisher calls the control when the row is made; null for a policy."}
    )
    label: Mapped[Name] = mapped_column(
        info={"description": "The name of the control or the title of the policy when the row is made."}
    )
    position: Mapped[Count] = mapped_column(info={"default": 0, "description": "Its place in the checklist."})
    status: Mapped[_Status] = mapped_column(
        info={**CODED, "default": NOT_CHECKED, "description": "What came of checking it."}
    )
    note: Mapped[Text | None] = mapped_column(
        info={"description": "What was seen, and whom or what it was seen at; null for nothing."}
    )
    checked_at: Mapped[Timestamp | None] = set_by("/checklist/")
    checked_by_id: Mapped[Identifier | None] = set_by("/checklist/", refers_to="membership")
    finding_ids: Mapped[_FindingIds] = lists("finding")

    __table_args__ = (
        UniqueConstraint("organization_id", "audit_id", "about_kind", "about_id"),
        Index(None, "organization_id", "audit_id", "position", "id"),
        *(
            ForeignKeyConstraint(
                ["organization_id", column],
                [f"{table}.organization_id", f"{table}.id"],
                deferrable=True,
                initially="DEFERRED",
            )
            for column, table in (("audit_id", "audit"), ("checked_by_id", "membership"))
        ),
    )
