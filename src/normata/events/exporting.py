"""The file of a log that ``normata events verify`` takes: lines of JSON, with the bytes that were sealed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import bindparam, or_, select

from normata.core.changes.difference import canonical
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.checking import a_minute_ago
from normata.events.content import sealed_text
from normata.events.keys import origin_of
from normata.events.model import AuditEvent, EventCheckpoint, EventLeaf, UnsealedEvent

FORMAT = "normata-events-1"


def export(transaction: Transaction, owner: str) -> Iterator[str]:
    """The lines of an organization's log, or of the operator's.

    A head, the checkpoints in the database, the leaves in order, and the events without a leaf. The text of a leaf is
    null if its event is missing, and empty if the content was erased. The checkpoints prove nothing, but narrow down
    changes.
    """
    yield canonical({"format": FORMAT, "origin": origin_of(owner)})
    for row in transaction.stream(_CHECKPOINTS_OF, {"owner": owner}):
        yield canonical({"checkpoint": row.size, "root": row.root})
    for row in transaction.stream(_LEAVES_OF, {"owner": owner}):
        yield canonical(
            {
                "leaf": row.number,
                "id": row.event_id,
                "hash": row.hash,
                "event": None if row.id is None else sealed_text(row),
            }
        )
    # A young event with a note is going to get its leaf.
    for row in transaction.stream(_without_leaf(owner), {"owner": owner, "moment": a_minute_ago()}):
        yield canonical({"leaf": None, "id": row.id, "hash": None, "event": sealed_text(row)})


_EVENT, _LEAF = sql_table(AuditEvent), sql_table(EventLeaf)
_CHECKPOINT, _UNSEALED = sql_table(EventCheckpoint), sql_table(UnsealedEvent)
_CHECKPOINTS_OF = (
    select(_CHECKPOINT.c.size, _CHECKPOINT.c.root)
    .where(_CHECKPOINT.c.organization_id == bindparam("owner"))
    .order_by(_CHECKPOINT.c.size)
)
_LEAVES_OF = (
    select(_LEAF.c.number, _LEAF.c.event_id, _LEAF.c.hash, *_EVENT.c)
    .outerjoin(_EVENT, _EVENT.c.id == _LEAF.c.event_id)
    .where(_LEAF.c.organization_id == bindparam("owner"))
    .order_by(_LEAF.c.number)
)


def _without_leaf(owner: str) -> Any:
    column = _EVENT.c.organization_id
    return (
        select(*_EVENT.c)
        .outerjoin(_LEAF, _LEAF.c.event_id == _EVENT.c.id)
        .outerjoin(_UNSEALED, _UNSEALED.c.event_id == _EVENT.c.id)
        .where(
            _LEAF.c.event_id.is_(None),
            column == bindparam("owner") if owner else column.is_(None),
            or_(_UNSEALED.c.event_id.is_(None), _EVENT.c.at < bindparam("moment", type_=_EVENT.c.at.type)),
        )
        .order_by(_EVENT.c.at, _EVENT.c.id)
    )
