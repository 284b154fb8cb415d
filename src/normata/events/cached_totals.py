"""Cached totals of record lists, because counting a million records takes longer than everything else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

from sqlalchemy import bindparam, cast, literal, null, select, union_all

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.content import ERASE
from normata.events.model import AuditEvent, EventCheckpoint, EventLeaf, UnsealedEvent
from normata.records.base import Restorable
from normata.records.listing import Totals

_WORTH_CACHING = 2_000  # records; counting fewer is faster than checking a cached count
_MOST_CACHED = 1_000
_MAX_UNSEALED = 1_000  # events of all organizations; with more, do not wait
_MAX_SINCE = 100  # events; looking at many more takes as long as counting


class _LogState(NamedTuple):
    """The state of an organization's log: the last checkpoint, and the events that have no leaf yet."""

    size: int
    root: str
    unsealed: frozenset[str]


class _Cached(NamedTuple):
    total: int
    state: _LogState


class CachedTotals(Totals):
    """Caches the number of records of a kind in an organization, by filters, as long as none of them changes.

    Every change writes an event in its own transaction, and events are never deleted. So the log shows whether a kind
    has changed, without further writes or waits. ``least`` is the smallest total that is cached.
    """

    def __init__(self, least: int = _WORTH_CACHING) -> None:
        self._least = least
        self._cached: OrderedDict[tuple[str, str, str], _Cached] = OrderedDict()
        self._lock = Lock()  # long reads run on threads

    def total(
        self,
        transaction: Transaction,
        kind: type[Restorable],
        organization_id: str,
        filters: str,
        count: Callable[[], int],
    ) -> int:
        """The total as ``transaction`` sees it: a cached one if it is still valid, else the result of ``count``.

        ``filters`` has everything that decides which records of the kind are counted.
        """
        key = organization_id, kind.path, filters
        cached = self._cached.get(key)
        state = None if cached is None else _state(transaction, organization_id)
        if cached is not None and state is not None and _holds(transaction, kind, organization_id, cached.state, state):
            self._store(key, _Cached(cached.total, state))
            return cached.total
        total = count()
        if total < self._least:
            self._drop(key)
            return total
        state = state or _state(transaction, organization_id)  # from the same snapshot, so it may be read late
        if state is not None:
            self._store(key, _Cached(total, state))
        return total

    def _store(self, key: tuple[str, str, str], cached: _Cached) -> None:
        with self._lock:
            self._cached[key] = cached
            self._cached.move_to_end(key)
            if len(self._cached) > _MOST_CACHED:
                self._cached.popitem(last=False)

    def _drop(self, key: tuple[str, str, str]) -> None:
        with self._lock:
            self._cached.pop(key, None)


def _state(transaction: Transaction, organization_id: str) -> _LogState | None:
    """The state of an organization's log; null if too many events are not sealed."""
    rows = transaction.rows(_STATE, {"organization": organization_id})
    if len(rows) > _MAX_UNSEALED:
        return None
    sealed = next((row for row in rows if row.size is not None), None)
    unsealed = frozenset(row.event_id for row in rows if row.size is None and row.owner == organization_id)
    return _LogState(0, "", unsealed) if sealed is None else _LogState(sealed.size, sealed.root, unsealed)


def _holds(
    transaction: Transaction, kind: type[Restorable], organization_id: str, before: _LogState, now: _LogState
) -> bool:
    """Whether no record of a kind has changed between two states."""
    if now == before:
        return True
    if not _has_come_from(transaction, organization_id, before, now):
        return False
    place = {"organization": organization_id, "size": before.size}
    sealed = transaction.rows(_SEALED_SINCE, place) if now.size > before.size else []
    if len(sealed) > _MAX_SINCE:
        return False
    others = sorted(now.unsealed - before.unsealed)
    if len(others) > _MAX_SINCE:
        return False
    if not before.unsealed <= now.unsealed | {event.id for event in sealed}:
        return False
    unsealed = transaction.rows(_UNSEALED_SINCE, {"ids": others}) if others else []
    return not any(
        # An erasure changes texts of any kind.
        event.entity_type == kind.__name__ or event.action == ERASE
        for event in (*sealed, *unsealed)
        if event.id not in before.unsealed
    )


def _has_come_from(transaction: Transaction, organization_id: str, before: _LogState, now: _LogState) -> bool:
    """Whether the log was in a state before, which is false after a backup was restored."""
    if before.size in (0, now.size):
        return before.size == 0 or before.root == now.root
    place = {"organization": organization_id, "size": before.size}
    return bool(transaction.scalar(_ROOT, place) == before.root)


_EVENT, _UNSEALED = sql_table(AuditEvent), sql_table(UnsealedEvent)
_LEAF, _CHECKPOINT = sql_table(EventLeaf), sql_table(EventCheckpoint)
_is_of_organization = _CHECKPOINT.c.organization_id == bindparam("organization")

_last: Any = (
    select(literal("").label("event_id"), literal("").label("owner"), _CHECKPOINT.c.size, _CHECKPOINT.c.root)
    .where(_is_of_organization)
    .order_by(_CHECKPOINT.c.size.desc())
    .limit(1)
    .subquery()
)
# Of all organizations, since no index has one alone, and there are few.
_noted: Any = (
    select(
        _UNSEALED.c.event_id,
        _UNSEALED.c.owner,
        cast(null(), _CHECKPOINT.c.size.type).label("size"),
        cast(null(), _CHECKPOINT.c.root.type).label("root"),
    )
    .limit(_MAX_UNSEALED + 1)
    .subquery()
)
_STATE = union_all(select(_last), select(_noted))
_ROOT = select(_CHECKPOINT.c.root).where(_is_of_organization, _CHECKPOINT.c.size == bindparam("size"))
_ABOUT = select(_EVENT.c.id, _EVENT.c.entity_type, _EVENT.c.action)
_SEALED_SINCE = (
    _ABOUT.join(_LEAF, _LEAF.c.event_id == _EVENT.c.id)
    .where(_LEAF.c.organization_id == bindparam("organization"), _LEAF.c.number >= bindparam("size"))
    .limit(_MAX_SINCE + 1)
)
_UNSEALED_SINCE = _ABOUT.where(_EVENT.c.id.in_(bindparam("ids", expanding=True)))
