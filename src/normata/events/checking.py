"""What ``normata check`` finds of events: changed, missing, inserted, or not sealed for long."""

from __future__ import annotations

from collections.abc import Iterator, Set
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import sql_table
from normata.events.content import ERASE, erased_by, sealed_text, values_of
from normata.events.history import kind_of
from normata.events.log_walk import Walk, content_faults
from normata.events.model import AuditEvent, EventCheckpoint, EventLeaf, UnsealedEvent

_PATIENCE = timedelta(minutes=1)  # until an event that has no leaf is worth a word


def event_faults(transaction: Transaction) -> Iterator[str]:
    """What is wrong with the events and their logs, a sentence each.

    It finds whatever was changed by hand, but for who writes events, leaves and checkpoints anew, all that fit each
    other. That is what a checkpoint that was kept elsewhere is for.
    """
    for owner in transaction.scalars(_OWNERS):
        yield from _log_faults(transaction, owner)
    yield from _unsealed(transaction)


def a_minute_ago() -> str:
    """Until when what is not sealed should have been."""
    return format_timestamp(datetime.now(UTC) - _PATIENCE)


def named(owner: str) -> str:
    """A log, in a sentence."""
    return f"organization {owner}" if owner else "the operator"


def _log_faults(transaction: Transaction, owner: str) -> Iterator[str]:
    within = f"in the log of {named(owner)}"
    roots = {row.size: row.root for row in transaction.stream(_CHECKPOINTS_OF, {"owner": owner})}
    largest = max(roots, default=0)
    walk = Walk(roots)
    erased = _erased(transaction, owner)
    is_sound = True
    for row in transaction.stream(_LEAVES_OF, {"owner": owner}):
        for fault in (*walk.up_to(row.number), *_event_faults(row, owner, largest, erased)):
            is_sound = False
            yield f"{within}, {fault}"
        walk.add(row.event_id, row.hash)
    for fault in walk.up_to(largest):
        is_sound = False
        yield f"{within}, {fault}"
    if is_sound and walk.broken is not None:
        yield f"{within}, {walk.broken} was changed along with its seal: the checkpoints were made of something else"


def _event_faults(row: Any, owner: str, largest: int, erased: Set[str]) -> Iterator[str]:
    name = f"the event {row.event_id} (leaf {row.number})"
    if row.number >= largest:
        yield f"{name} was inserted: no checkpoint has it"
    text = None if row.id is None else sealed_text(row)
    found = list(content_faults(row.event_id, row.number, row.hash, text))
    yield from found
    if text == "" and row.event_id not in erased:
        yield f"{name} has lost its content, and no event tells that it was erased"
    elif text and not found and (changed := _columns_that_differ(row, owner)):
        yield f"{name} was changed: its columns {', '.join(changed)} are not what was sealed"


def _erased(transaction: Transaction, owner: str) -> set[str]:
    """The events whose content was erased, as later ones in their log tell. What is wrong with those is told anyway."""
    bodies = [row.body for row in transaction.stream(_ERASURES) if (row.organization_id or "") == owner]
    return {event_id for body in bodies if body for event_id in erased_by(values_of(body))}


_COLUMNS = {
    "id": "id",
    "organization_id": "organizationId",
    "at": "at",
    "action": "action",
    "entity_type": "kind",
    "entity_id": "recordId",
    "user_id": "userId",
    "token_id": "tokenId",
    "request_id": "requestId",
}


def _columns_that_differ(row: Any, owner: str) -> list[str]:
    if (row.organization_id or "") != owner:
        return ["organization_id"]
    if row.body is None:  # then the columns are what was sealed
        return []
    body = values_of(row.body)
    found = {column: getattr(row, column) for column in _COLUMNS}
    found |= {"entity_type": kind_of(row), "request_id": row.request_id or None}
    return [column for column, name in _COLUMNS.items() if found[column] != body.get(name)]


def _unsealed(transaction: Transaction) -> Iterator[str]:
    for row in transaction.stream(_WITHOUT_LEAF, {"moment": a_minute_ago()}):
        yield (
            f"the event {row.id} of {named(row.organization_id or '')} has not been sealed since {row.at}: it was"
            " inserted by hand, or nothing seals (the service does, and commands that change something)"
        )
    for event_id in transaction.scalars(_GONE):
        yield f"the event {event_id} is missing: it was removed before it was sealed"


_EVENT, _LEAF = sql_table(AuditEvent), sql_table(EventLeaf)
_CHECKPOINT, _UNSEALED = sql_table(EventCheckpoint), sql_table(UnsealedEvent)

_OWNERS = select(_LEAF.c.organization_id).union(select(_CHECKPOINT.c.organization_id)).order_by("organization_id")
_OF_OWNER = bindparam("owner", type_=_LEAF.c.organization_id.type)
_CHECKPOINTS_OF = select(_CHECKPOINT.c.size, _CHECKPOINT.c.root).where(_CHECKPOINT.c.organization_id == _OF_OWNER)
_LEAVES_OF = (
    select(_LEAF.c.number, _LEAF.c.event_id, _LEAF.c.hash, *_EVENT.c)
    .outerjoin(_EVENT, _EVENT.c.id == _LEAF.c.event_id)
    .where(_LEAF.c.organization_id == _OF_OWNER)
    .order_by(_LEAF.c.number)
)
_ERASURES = select(_EVENT.c.organization_id, _EVENT.c.body).where(_EVENT.c.action == ERASE)
_WITHOUT_LEAF = (
    select(_EVENT.c.id, _EVENT.c.organization_id, _EVENT.c.at)
    .outerjoin(_LEAF, _LEAF.c.event_id == _EVENT.c.id)
    .where(_LEAF.c.event_id.is_(None), _EVENT.c.at < bindparam("moment", type_=_EVENT.c.at.type))
    .order_by(_EVENT.c.at, _EVENT.c.id)
)
_GONE = (
    select(_UNSEALED.c.event_id)
    .outerjoin(_EVENT, _EVENT.c.id == _UNSEALED.c.event_id)
    .where(_EVENT.c.id.is_(None))
    .order_by(_UNSEALED.c.event_id)
)
