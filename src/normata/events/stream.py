"""Streams of events in order, with new ones as they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from normata.core.changes.difference import canonical
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.history import event_wire
from normata.events.model import AuditEvent, EventLeaf, UnsealedEvent


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a reader: the number of leaves of each log, and the events without a leaf at that time.

    The time of an event does not show whether it is new, because transactions become visible in another order than they
    began.
    """

    owner: str | None
    leaves: dict[str, int]
    unsealed: frozenset[str]


def all_events(transaction: Transaction, owner: str | None) -> Iterator[str]:
    """All events of an organization, or of all and of none, oldest first, each as JSON."""
    statement = _EVERY if owner is None else _EVERY.where(_EVENT.c.organization_id == owner)
    for row in transaction.stream(statement):
        yield canonical(event_wire(row))


def beginning(transaction: Transaction, owner: str | None) -> Place:
    """The position after all existing events."""
    leaves = {row.organization_id: row.size for row in transaction.rows(_SIZES)}
    return Place(owner, leaves, frozenset(transaction.scalars(_UNSEALED_IDS)))


def new_events(transaction: Transaction, place: Place) -> tuple[list[str], Place]:
    """The events since a position, and the position after them."""
    after = beginning(transaction, place.owner)
    found: dict[str, Any] = {}
    for owner, size in after.leaves.items():
        known = place.leaves.get(owner, 0)
        if size > known:
            found |= {row.id: row for row in transaction.rows(_SEALED, {"owner": owner, "known": known})}
    if after.unsealed - place.unsealed:
        found |= {row.id: row for row in transaction.rows(_NOT_SEALED)}
    rows = [
        row
        for row in found.values()
        if row.id not in place.unsealed and (place.owner is None or row.organization_id == place.owner)
    ]
    return [canonical(event_wire(row)) for row in sorted(rows, key=lambda row: (row.at, row.id))], after


_EVENT, _LEAF, _UNSEALED = sql_table(AuditEvent), sql_table(EventLeaf), sql_table(UnsealedEvent)
_EVERY: Select[Any] = select(*_EVENT.c).order_by(_EVENT.c.at, _EVENT.c.id)
_SIZES = select(_LEAF.c.organization_id, func.max(_LEAF.c.number + 1).label("size")).group_by(_LEAF.c.organization_id)
_UNSEALED_IDS = select(_UNSEALED.c.event_id)
_SEALED = (
    select(*_EVENT.c)
    .join(_LEAF, _LEAF.c.event_id == _EVENT.c.id)
    .where(_LEAF.c.organization_id == bindparam("owner"), _LEAF.c.number >= bindparam("known"))
)
_NOT_SEALED = select(*_EVENT.c).join(_UNSEALED, _UNSEALED.c.event_id == _EVENT.c.id)
