"""The log of an organization by number: only what is sealed, so that whoever follows it misses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import bindparam, func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire, encode
from normata.events.content import sealed_text
from normata.events.model import AuditEvent, EventCheckpoint, EventLeaf

MOST = 1_000  # events at a time
LAST_NUMBER = 2**53 - 1  # that JSON has in every language


class SealedEvent(Wire):
    """An event as it was sealed."""

    number: int = Field(description="Its number in the log, from 0, without a hole. It never changes.")
    id: str = Field(description="The id of the event.")
    leaf_hash: str = Field(
        description="The hash of its leaf: SHA-256 of a zero byte and `body`, in hexadecimal digits."
    )
    body: str = Field(
        description="The exact text that was sealed: JSON with the fields of an event, and a salt. Empty if the content"
        " was erased; number and hash stay."
    )


class SealedEvents(Wire):
    """Some sealed events of a log, in order."""

    items: list[SealedEvent]
    next: int | None = Field(
        description="What `after` is in the request for what follows, also if that is not there yet: the number of the"
        " last item, or the `after` of the request; null if the log is empty."
    )
    size: int = Field(description="The number of sealed events: the `size` of the last checkpoint.")


class LogQuery(OrganizationQuery):
    """The query of the log by number."""

    after: Annotated[
        int | None,
        Field(
            ge=0,
            le=LAST_NUMBER,
            description="Only events with larger numbers. Left out: from the beginning.",
        ),
    ] = None


def read_log(transaction: Transaction, organization_id: str, after: int | None, limit: int) -> dict[str, Any]:
    """The events after a number, in wire form, in two statements. Each takes as long wherever in the log it begins."""
    items = _items(transaction, organization_id, after, limit)
    return {
        "items": items,
        "next": items[-1]["number"] if items else after,
        "size": transaction.scalar(_SIZE, {"owner": organization_id}) or 0,
    }


def read_lines(
    transaction: Transaction, organization_id: str, after: int | None, limit: int | None
) -> tuple[bytes, int, int | None]:
    """The lines of at most :data:`MOST` events after a number, their count, and the number of the last one.

    ``limit`` is the number of events that are still wanted, null for all.
    """
    items = _items(transaction, organization_id, after, MOST if limit is None else min(limit, MOST))
    lines = b"".join(encode(item) + b"\n" for item in items)
    return lines, len(items), items[-1]["number"] if items else after


def _items(transaction: Transaction, organization_id: str, after: int | None, limit: int) -> Sequence[dict[str, Any]]:
    first = 0 if after is None else after + 1
    rows = transaction.rows(_LEAVES, {"owner": organization_id, "first": first, "limit": limit})
    # Whoever follows the log must not take a missing event for an erased one; `normata check` finds it.
    return [
        {"number": row.number, "id": row.event_id, "leafHash": row.hash, "body": sealed_text(row)}
        for row in rows
        if row.id is not None
    ]


_EVENT, _LEAF, _CHECKPOINT = sql_table(AuditEvent), sql_table(EventLeaf), sql_table(EventCheckpoint)
_SIZE = select(func.max(_CHECKPOINT.c.size)).where(_CHECKPOINT.c.organization_id == bindparam("owner"))
_LEAVES = (
    select(_LEAF.c.number, _LEAF.c.event_id, _LEAF.c.hash, *_EVENT.c)
    .outerjoin(_EVENT, _EVENT.c.id == _LEAF.c.event_id)
    .where(_LEAF.c.organization_id == bindparam("owner"), _LEAF.c.number >= bindparam("first"))
    .order_by(_LEAF.c.number)
    .limit(bindparam("limit"))
)
