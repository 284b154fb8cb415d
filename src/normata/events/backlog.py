"""The backlog of events that are not sealed yet."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.model import UnsealedEvent


def unsealed(transaction: Transaction) -> tuple[int, float]:
    """The number of events that are not sealed, and the age of the oldest in seconds, from its id (RFC 9562, 5.7)."""
    row = transaction.row(_UNSEALED)
    if row is None or not row.events:
        return 0, 0.0
    try:
        moment = (UUID(row.oldest).int >> 80) / 1_000
    except ValueError:  # the id of a loaded event may have any form
        return row.events, 0.0
    return row.events, max(0.0, datetime.now(UTC).timestamp() - moment)


_TABLE = sql_table(UnsealedEvent)
_UNSEALED = select(func.count().label("events"), func.min(_TABLE.c.event_id).label("oldest")).select_from(_TABLE)
