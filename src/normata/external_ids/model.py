"""External ids: the ids that records have in other systems."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import StringConstraints
from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import text
from normata.core.schema.fields import VISIBLE, Identifier, ShortName, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key, refers_to_kind

_LONGEST_SOURCE = 100  # characters: all columns of a unique key together fit an index entry of PostgreSQL

Source = Annotated[
    str,
    StringConstraints(min_length=1, max_length=_LONGEST_SOURCE, pattern=VISIBLE),
    mapped_column(text(_LONGEST_SOURCE)),
]
ForeignId = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=VISIBLE), mapped_column(text(255))]


class External(NamedTuple):
    """An id of another system: the name of the system, and the id there."""

    source: str
    id: str


class ExternalId(Table):
    """The id that a record has in another system. It is no field of the record, whose state does not depend on it.

    An archived record keeps its external ids, so that no other record gets them.
    """

    __tablename__ = "external_id"
    array = "externalIds"
    fixed = ("organization_id", "kind", "record_id", "source", "external_id")
    published = False  # it is part of the record, whose events have what changes
    transient = True  # without a part of it, it would be the id of something else

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    kind: Mapped[ShortName] = mapped_column(info=CODED | {"description": "The kind of the record, as in its path."})
    record_id: Mapped[Identifier] = refers_to_kind("kind")
    source: Mapped[Source] = mapped_column(info={"description": "The other system, as the organization calls it."})
    external_id: Mapped[ForeignId] = mapped_column(info={"description": "The id of the record in the other system."})
    created_at: Mapped[Timestamp]

    __table_args__ = (
        UniqueConstraint("organization_id", "kind", "source", "external_id"),
        Index(None, "organization_id", "record_id"),  # ids of different kinds are rarely the same
    )
