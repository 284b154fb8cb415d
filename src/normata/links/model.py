"""A link between two rows of an organization: records of any kind, controls and members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.schema.fields import Identifier, ShortName, ShortText, Timestamp, Token
from normata.core.schema.table import CODED, Table, foreign_key, known, refers_to_kind

OWNS, RELATES = "OWNS", "RELATES"
RELATIONS = (OWNS, "SUPPORTS", "IMPLEMENTS", "TREATS", "AFFECTS", "IN_SCOPE", "FOLLOWS", RELATES)


class End(NamedTuple):
    """What a link leads from or to: the kind, as on the wire, and the id."""

    kind: str
    id: str


class Link(Table):
    """A link: what it leads from, in which relation that is to what it leads to, and a note.

    A link that was removed stays, with the time: the history of both ends has it. Making it again makes another one.
    """

    __tablename__ = "link"
    array = "links"
    fixed = ("organization_id", "from_kind", "from_id", "to_kind", "to_id", "relation")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    from_kind: Mapped[ShortName] = mapped_column(info=CODED)
    from_id: Mapped[Identifier] = refers_to_kind("from_kind")
    to_kind: Mapped[ShortName] = mapped_column(info=CODED)
    to_id: Mapped[Identifier] = refers_to_kind("to_kind")
    relation: Mapped[Token] = known(*RELATIONS, default=RELATES)
    note: Mapped[ShortText | None] = mapped_column(info={"description": "A note on the link; null if there is none."})
    created_at: Mapped[Timestamp]
    removed_at: Mapped[Timestamp | None]

    __table_args__ = (
        Index(
            "uq_link_live",
            *("organization_id", "from_kind", "from_id", "to_kind", "to_id", "relation"),
            unique=True,
            sqlite_where=text("removed_at IS NULL"),
            postgresql_where=text("removed_at IS NULL"),
        ),
        # From either end, also of removed links. Ids of different kinds are rarely the same.
        Index(None, "organization_id", "from_id"),
        Index(None, "organization_id", "to_id"),
        Index(None, "organization_id", "created_at", "id"),
    )


def oriented(start: End, end: End, relation: str) -> tuple[End, End]:
    """The ends of a link in the order in which they are stored: a relation without direction has one order only."""
    return (min(start, end), max(start, end)) if relation == RELATES else (start, end)


def ends_of(row: Mapping[str, Any]) -> tuple[End, End]:
    """The ends of a link, from its columns."""
    return End(row["from_kind"], row["from_id"]), End(row["to_kind"], row["to_id"])
