"""A list as somebody wants to see it again: its filters, order and columns, under a name."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from pydantic import AfterValidator, Field, StringConstraints
from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import Document
from normata.core.schema.fields import Flag, Identifier, Name, ShortName, Timestamp, VisibleName
from normata.core.schema.table import CODED, Table, defaults_to, foreign_key, written_as

_LONGEST = 4_000  # characters of a query: proxies do not take much longer addresses

_Parameter = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9.]*$")]
_Value = Annotated[str, StringConstraints(min_length=1, max_length=1_000, pattern=r"^[^\x00]*$")]


def _fits_an_address(query: dict[str, list[str]]) -> dict[str, list[str]]:
    """``query``, where an address can have it. Raises ValueError."""
    if len(urlencode(query, doseq=True, errors="replace")) > _LONGEST:
        raise ValueError(f"must have at most {_LONGEST:,} characters as the query of an address")
    return query


ListQuery = Annotated[
    dict[_Parameter, Annotated[list[_Value], Field(min_length=1, max_length=100)]],
    Field(max_length=50),
    AfterValidator(_fits_an_address),
    mapped_column(Document()),
]


class SavedView(Table):
    """A view of a list: its state under a name, for one member, or for all of the organization."""

    __tablename__ = "saved_view"
    array = "savedViews"

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    user_id: Mapped[Identifier] = mapped_column(
        foreign_key("user_account.id"),
        info={"refers_to": "user_account", "description": "The id of the user who has saved it."},
    )
    is_shared: Mapped[Flag] = defaults_to(False)
    kind: Mapped[ShortName] = mapped_column(info=CODED)
    name: Mapped[Name] = written_as(VisibleName)
    query: Mapped[ListQuery] = defaults_to({})
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]

    __table_args__ = (Index(None, "organization_id", "user_id"),)
