"""What the service knows of work that recurs: how often, on which day of the month, and what its next one is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from sqlalchemy import Integer, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import text
from normata.core.schema.fields import Identifier, ShortName, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key, refers_to_kind

_Day = Annotated[int, Field(ge=1, le=31), mapped_column(Integer)]


class Recurrence(Table):
    """The recurrence of a task or a review. One that has a ``next_id`` has had its next one, and gets no other."""

    __tablename__ = "recurrence"
    array = "recurrences"
    fixed = ("organization_id", "kind", "record_id")
    published = False  # it is part of the record, whose events have what changes

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    kind: Mapped[ShortName] = mapped_column(info=CODED | {"description": "The kind of the record, as in its path."})
    record_id: Mapped[Identifier] = refers_to_kind("kind")
    frequency: Mapped[ShortName | None] = mapped_column(
        text(64), info=CODED | {"description": "How often a review recurs; null for a task, which says so itself."}
    )
    day: Mapped[_Day | None] = mapped_column(
        info={"description": "The day of the month of the first deadline; null if that is this one's."}
    )
    next_id: Mapped[Identifier | None] = refers_to_kind("kind")
    made_at: Mapped[Timestamp | None] = mapped_column(info={"description": "When the next one was made."})

    __table_args__ = (UniqueConstraint("organization_id", "kind", "record_id"),)
