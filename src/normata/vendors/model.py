"""Questionnaires for vendors, and what was answered to them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints
from sqlalchemy import ForeignKeyConstraint, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import Document, text
from normata.core.schema.fields import Flag, Identifier, Name, Text, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key, refers_to
from normata.vendors.questions import KEY, MAX_PARTS, Part, unambiguous

Parts = Annotated[
    list[Part], Field(min_length=1, max_length=MAX_PARTS), AfterValidator(unambiguous), mapped_column(Document())
]
QuestionKey = Annotated[str, StringConstraints(pattern=KEY), mapped_column(text(64), info=CODED)]
_Edition = Annotated[str, StringConstraints(pattern=KEY), mapped_column(text(64), info=CODED)]


class Questionnaire(Table):
    """The questions that an organization asks vendors. They stay as they are once an assessment has been sent."""

    __tablename__ = "questionnaire"
    array = "questionnaires"
    fixed = ("organization_id", "edition")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    name: Mapped[Name]
    edition: Mapped[_Edition | None] = mapped_column(
        info={"description": "Which edition of the questionnaire of the service it is; null for one of one's own."}
    )
    parts: Mapped[Parts] = mapped_column(info={"description": "Its parts, each with its questions."})
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]

    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        UniqueConstraint("organization_id", "edition"),  # nulls differ
    )


class VendorAnswer(Table):
    """What was answered to a question of an assessment, by whom and when."""

    __tablename__ = "vendor_answer"
    array = "vendorAnswers"
    fixed = ("organization_id", "assessment_id", "question")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    assessment_id: Mapped[Identifier] = refers_to("vendor_assessment")
    question: Mapped[QuestionKey] = mapped_column(info={"description": "The id of the question in its questionnaire."})
    value: Mapped[Text | None] = mapped_column(
        info={
            "description": "The answer: `YES`, `PARTLY`, `NO` or `NOT_APPLICABLE`, the text of a choice, or a text;"
            " null if there is only a remark."
        }
    )
    remark: Mapped[Text | None] = mapped_column(info={"description": "What else there is to say."})
    answered_at: Mapped[Timestamp] = mapped_column(info={"description": "When it was answered last."})
    answered_by_id: Mapped[Identifier | None] = mapped_column(
        text(255),
        info={"refers_to": "membership", "description": "The member who answered last; null if that was no member."},
    )
    is_by_link: Mapped[Flag] = mapped_column(
        info={"default": False, "description": "Whether the vendor answered last, by a link."}
    )

    __table_args__ = (
        UniqueConstraint("organization_id", "assessment_id", "question"),
        *(
            ForeignKeyConstraint(
                ["organization_id", column],
                [f"{table}.organization_id", f"{table}.id"],
                deferrable=True,
                initially="DEFERRED",
            )
            for column, table in (("assessment_id", "vendor_assessment"), ("answered_by_id", "membership"))
        ),
    )
