"""A comment of a member on a record or a control."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.schema.fields import Identifier, ShortName, Text, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key, refers_to_kind


class Comment(Table):
    """What a member says about a record or a control. One that was removed is in its events only."""

    __tablename__ = "comment"
    array = "comments"
    fixed = ("organization_id", "about_kind", "about_id", "author_id")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    about_kind: Mapped[ShortName] = mapped_column(info=CODED)
    about_id: Mapped[Identifier] = refers_to_kind("about_kind")
    author_id: Mapped[Identifier] = mapped_column(
        foreign_key("membership.id"), info={"refers_to": "membership", "description": "The member who has written it."}
    )
    text: Mapped[Text] = mapped_column(info={"description": "What it says, in Markdown."})
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]

    __table_args__ = (
        # Ids of different kinds are rarely the same.
        Index(None, "organization_id", "about_id", "created_at", "id"),
        Index(None, "organization_id", "created_at", "id"),
    )
