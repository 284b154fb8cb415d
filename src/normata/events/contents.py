"""Checks each event against its leaf, a part of a log at a time, so that several processes can do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.content import sealed_text, values_of
from normata.events.history import kind_of
from normata.events.log_walk import content_faults
from normata.events.merkle import leaf_hash
from normata.events.model import AuditEvent, EventLeaf

_AT_ONCE = 10_000  # leaves in one query


@dataclass(frozen=True, slots=True)
class Part:
    """Some leaves of a log: from ``start`` to before ``end``."""

    owner: str
    start: int
    end: int


@dataclass(slots=True)
class Contents:
    """The findings in a part: the number of a leaf with a sentence for each fault, and events without content.

    These may have been erased, which events show. ``empty`` has numbers of leaves and ids of events.
    """

    part: Part
    faults: list[tuple[int, str]] = field(default_factory=list)
    empty: list[tuple[int, str]] = field(default_factory=list)


def parts_of(owner: str, start: int, end: int) -> Iterator[Part]:
    """The parts of a log from one leaf to before another."""
    for first in range(start, end, _AT_ONCE):
        yield Part(owner, first, min(first + _AT_ONCE, end))


def contents_of(transaction: Transaction, part: Part) -> Contents:
    """Check each event of a part."""
    found = Contents(part)
    for row in transaction.stream(_LEAVES_OF, {"owner": part.owner, "start": part.start, "end": part.end}):
        if not _is_sound(row, part.owner):
            _describe(row, part.owner, found)
    return found


def _is_sound(row: Any, owner: str) -> bool:
    """Whether an event with content is as it was sealed. It is fast, because there may be millions."""
    body = row.body
    if not body or leaf_hash(body) != row.hash or (row.organization_id or "") != owner:
        return False
    try:
        values = orjson.loads(body)
        return bool(
            values["id"] == row.event_id == row.id
            and values["organizationId"] == row.organization_id
            and values["at"] == row.at
            and values["action"] == row.action
            and values["kind"] == kind_of(row)
            and values["recordId"] == row.entity_id
            and values["userId"] == row.user_id
            and values["tokenId"] == row.token_id
            and values["requestId"] == (row.request_id or None)
        )
    except (ValueError, TypeError, KeyError):
        return False


def _describe(row: Any, owner: str, found: Contents) -> None:
    """Add the fault of an event, if it has one."""
    text = None if row.id is None else sealed_text(row)
    faults = list(content_faults(row.event_id, row.number, row.hash, text))
    if text == "":
        found.empty.append((row.number, row.event_id))
    elif text and not faults and (changed := _columns_that_differ(row, owner)):
        name = f"the event {row.event_id} (leaf {row.number})"
        faults.append(f"{name} was changed: its columns {', '.join(changed)} are not what was sealed")
    found.faults += ((row.number, fault) for fault in faults)


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
    if row.body is None:  # an older event: its columns are what was sealed
        return []
    body = values_of(row.body)
    found = {column: getattr(row, column) for column in _COLUMNS}
    found |= {"entity_type": kind_of(row), "request_id": row.request_id or None}
    return [column for column, name in _COLUMNS.items() if found[column] != body.get(name)]


_EVENT, _LEAF = sql_table(AuditEvent), sql_table(EventLeaf)
_LEAVES_OF = (
    select(_LEAF.c.number, _LEAF.c.event_id, _LEAF.c.hash, *_EVENT.c)
    .outerjoin(_EVENT, _EVENT.c.id == _LEAF.c.event_id)
    .where(
        _LEAF.c.organization_id == bindparam("owner"),
        _LEAF.c.number >= bindparam("start"),
        _LEAF.c.number < bindparam("end"),
    )
    .order_by(_LEAF.c.number)
)
