"""Moments of an organization's past, to be checked."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

from sqlalchemy import bindparam, func, select

from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import sql_table
from normata.history.model import EffectiveHistory
from normata.history.start import start_of

_AT_RANDOM = 2  # of each sort


def random_moments(transaction: Transaction, organization_id: str) -> Iterator[str]:
    """Some moments: of changes, at which a history is most likely to be wrong, and at any other time."""
    key = {"organization": organization_id}
    now = transaction.time_of_reading()
    known = start_of(transaction, organization_id)
    since = now if known is None else max(known.since, known.rules_since or known.since)
    changes = [moment for moment in transaction.scalars(_CHANGES, key) if since <= moment <= now]
    if since >= now:
        return
    yield from random.sample(changes, min(_AT_RANDOM, len(changes)))
    first, last = datetime.fromisoformat(since), datetime.fromisoformat(now)
    for _ in range(_AT_RANDOM):
        yield format_timestamp(first + timedelta(seconds=(last - first).total_seconds() * random.random()))  # noqa: S311


_HISTORY = sql_table(EffectiveHistory)
_CHANGES = (
    select(_HISTORY.c.valid_from)
    .where(_HISTORY.c.organization_id == bindparam("organization"))
    .group_by(_HISTORY.c.valid_from)
    .order_by(func.random())
    .limit(100)
)
