"""Since when the past of an organization is known, and the part of it that a query is about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.history_triggers import FOREVER
from normata.core.schema.table import sql_table
from normata.errors import PastUnknown
from normata.history.model import HistoryStart

_MONTH = timedelta(days=30)


class SpanQuery(Protocol):
    """A query about the time between two moments of an organization, either of which may be missing."""

    organization_id: str
    from_: str | None
    to: str | None


def start_of(transaction: Transaction, organization_id: str) -> Any | None:
    """The beginning of the history of an organization, a row of :class:`HistoryStart`."""
    return transaction.row(_START, {"organization": organization_id})


def known_span(
    transaction: Transaction, query: SpanQuery, latest: str, usual: Callable[[str], str]
) -> tuple[str, str, str]:
    """Since when the past is known, and the first and the last moment that a query is about.

    The last one is ``latest`` unless the query says, and the first one then ``usual`` of it. Raises PastUnknown.
    """
    start = start_of(transaction, query.organization_id)
    since = FOREVER if start is None else str(start.since)
    last = query.to or max(since, latest)
    first = query.from_ or max(since, usual(last))
    if not since <= first <= last <= transaction.time_of_reading():
        raise PastUnknown(f"must be from {since}, since when the past is known, to now, and not before `from`")
    return since, first, last


def thirty_days_before(moment: str) -> str:
    """The moment thirty days before another one."""
    return format_timestamp(datetime.fromisoformat(moment) - _MONTH)


_HISTORY_START = sql_table(HistoryStart)
_START = select(_HISTORY_START.c.since, _HISTORY_START.c.rules_since).where(
    _HISTORY_START.c.organization_id == bindparam("organization")
)
