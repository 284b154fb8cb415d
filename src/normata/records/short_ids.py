"""Short ids: numbers that people can say, counted by kind and organization, and never given out twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.orm import Mapped, mapped_column

from normata.vocabulary import Count, Identifier, Table, foreign_key


class ShortIdCounter(Table):
    """The last short id of an organization for a kind. It never goes back, so that no number is used twice."""

    __tablename__ = "short_id_counter"

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), primary_key=True)
    kind: Mapped[Identifier] = mapped_column(primary_key=True)
    last: Mapped[Count]


def last_short_id(connection: Connection, table: type[Table], organization_id: str) -> int:
    """The last short id given out; 0 before the first."""
    return connection.scalar(select(ShortIdCounter.last).where(_key(table, organization_id))) or 0


def keep_short_ids(connection: Connection, table: type[Table], rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise the counters to the highest short id among ``rows`` that are now stored."""
    highest: dict[str, int] = {}
    for row in rows:
        if "short_id" in row:
            highest[row["organization_id"]] = max(row["short_id"], highest.get(row["organization_id"], 0))
    for organization_id, last in highest.items():
        stored = last_short_id(connection, table, organization_id)
        if stored == 0:
            connection.execute(
                insert(ShortIdCounter).values(organization_id=organization_id, kind=table.__tablename__, last=last)
            )
        elif last > stored:
            connection.execute(update(ShortIdCounter).where(_key(table, organization_id)).values(last=last))


def _key(table: type[Table], organization_id: str) -> Any:
    return (ShortIdCounter.organization_id == organization_id) & (ShortIdCounter.kind == table.__tablename__)
