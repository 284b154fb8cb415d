"""Checks the roots of a log's checkpoints against its leaves, along the log in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BindParameter, bindparam, func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.log_walk import Walk
from normata.events.merkle import Frontier
from normata.events.model import EventCheckpoint, EventLeaf
from normata.events.sealing import named, sound_frontier

_REPORTED = 10_000  # leaves between two reports of progress


@dataclass(slots=True)
class Seals:
    """The findings about leaves and checkpoints of a log, from the leaf ``start`` to before ``end``.

    The last checkpoint has ``size`` and ``root``. ``checkpoints`` has a sentence for each wrong one, ``faults`` the
    number of a leaf with a sentence, ``broken`` the leaves that do not fit the checkpoints.
    """

    owner: str
    start: int
    end: int
    size: int
    root: str
    checkpoints: list[str] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)
    broken: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """The last checkpoint of a log that was verified before, whose leaves need not be read again."""

    size: int
    root: str


def owners(transaction: Transaction) -> list[str]:
    """The owners of logs, in order. Each is found by the index, without reading all leaves."""
    found: list[str] = []
    for first, after in ((_FIRST_LEAF, _LEAF_AFTER), (_FIRST_CHECKPOINT, _CHECKPOINT_AFTER)):
        owner = transaction.scalar(first)
        while owner is not None:
            found.append(owner)
            owner = transaction.scalar(after, {"owner": owner})
    return sorted(set(found))


def end_of(transaction: Transaction, owner: str) -> int:
    """The number after that of the last leaf of a log."""
    last = transaction.scalar(_LAST_LEAF, {"owner": owner})
    return 0 if last is None else int(last) + 1


def seals_of(
    transaction: Transaction, owner: str, known: Known | None = None, report: Callable[[int], None] = lambda _: None
) -> Seals:
    """Check a log, from its beginning or from a known checkpoint. ``report`` gets the number of checked leaves."""
    last = transaction.row(_LAST_CHECKPOINT, {"owner": owner})
    size, root = (0, Frontier().root) if last is None else (last.size, last.root)
    found = Seals(owner, 0, end_of(transaction, owner), size, root)
    frontier = Frontier() if known is None else _start(transaction, known, found)
    if frontier is None:
        return found
    key = {"owner": owner, "start": found.start}
    # A checkpoint before the first leaf must be a forged one, so a complete check includes them.
    checkpoints = _Checkpoints(transaction.stream(_CHECKPOINTS_OF, key | ({} if known else {"start": -1})), frontier)
    walk = Walk(checkpoints, frontier)
    for row in transaction.stream(_LEAVES_OF, key):
        found.faults += ((row.number, fault) for fault in walk.up_to(row.number))
        if row.number >= size:
            name = f"the event {row.event_id} (leaf {row.number})"
            found.faults.append((row.number, f"{name} was inserted: no checkpoint has it"))
        if not walk.add(row.event_id, row.hash):
            found.faults.append((row.number, f"leaf {row.number} (of the event {row.event_id}) has no hash"))
        if not row.number % _REPORTED:
            report(row.number)
    found.faults += ((size, fault) for fault in walk.up_to(size))
    found.checkpoints += (
        f"the checkpoint of size {changed} was changed: its frontier is not that of its root"
        for changed in checkpoints.changed_ones()
    )
    found.broken = walk.broken
    return found


class _Checkpoints:
    """The roots of a log's checkpoints by their sizes, for one walk along it, which makes ``frontier`` grow.

    They are read along with the leaves, because there may be as many.
    """

    def __init__(self, rows: Iterator[Any], frontier: Frontier) -> None:
        self._rows = rows
        self._frontier = frontier
        self._changed: list[int] = []
        self._next = next(rows, None)

    def get(self, size: int) -> str | None:
        """The root of the checkpoint of a size; null if there is none. Sizes must be requested in ascending order."""
        while self._next is not None and self._next.size < size:
            self._pass(self._next)
        if self._next is None or self._next.size != size:
            return None
        root: str = self._next.root
        # Size and root determine the right edge, and mostly it is the one just computed.
        if self._next.frontier == self._frontier.text and root == self._frontier.root:
            self._next = next(self._rows, None)
        else:
            self._pass(self._next)
        return root

    def changed_ones(self) -> list[int]:
        """The sizes of those whose right edge is not that of their root, the rest included."""
        while self._next is not None:
            self._pass(self._next)
        return self._changed

    def _pass(self, checkpoint: Any) -> None:
        if sound_frontier(checkpoint.size, checkpoint.frontier, checkpoint.root) is None:
            self._changed.append(checkpoint.size)
        self._next = next(self._rows, None)


def _start(transaction: Transaction, known: Known, found: Seals) -> Frontier | None:
    """The right edge of the known checkpoint; null, with a fault, if the log differs from it."""
    found.start = min(known.size, found.end)
    if known.size == 0:
        return Frontier()
    row: Any = transaction.row(_CHECKPOINT_AT, {"owner": found.owner, "size": known.size})
    frontier = None if row is None else sound_frontier(known.size, row.frontier, row.root)
    if row is None or found.end < known.size:
        found.checkpoints.append(
            f"{known.size} events were verified before, and the log has {found.end}, or no checkpoint at that size: it"
            " was cut off, or the database is an older one"
        )
    elif frontier is None or row.root != known.root:
        found.checkpoints.append(f"the checkpoint of size {known.size} is not the one that was verified before")
    else:
        return frontier
    return None


def sentences(seals: Seals, more: Collection[tuple[int, str]]) -> list[str]:
    """The faults of a log, a sentence each, in the order of its leaves; ``more`` are those of its events."""
    within = f"in the log of {named(seals.owner)}"
    by_place = sorted([*seals.faults, *more], key=lambda fault: fault[0])
    faults = [*seals.checkpoints, *(fault for _, fault in by_place)]
    if not by_place and seals.broken is not None:
        faults.append(f"{seals.broken} was changed along with its seal: the checkpoints were made of something else")
    return [f"{within}, {fault}" for fault in faults]


_LEAF, _CHECKPOINT = sql_table(EventLeaf), sql_table(EventCheckpoint)
_OWNER: BindParameter[str] = bindparam("owner", type_=_LEAF.c.organization_id.type)
_START: BindParameter[int] = bindparam("start")
_FIRST_LEAF = select(func.min(_LEAF.c.organization_id))
_LEAF_AFTER = _FIRST_LEAF.where(_LEAF.c.organization_id > _OWNER)
_FIRST_CHECKPOINT = select(func.min(_CHECKPOINT.c.organization_id))
_CHECKPOINT_AFTER = _FIRST_CHECKPOINT.where(_CHECKPOINT.c.organization_id > _OWNER)
_LAST_LEAF = select(func.max(_LEAF.c.number)).where(_LEAF.c.organization_id == _OWNER)
_CHECKPOINTS_OF = (
    select(_CHECKPOINT.c.size, _CHECKPOINT.c.root, _CHECKPOINT.c.frontier)
    .where(_CHECKPOINT.c.organization_id == _OWNER, _CHECKPOINT.c.size >= _START)
    .order_by(_CHECKPOINT.c.size)
)
_LAST_CHECKPOINT = (
    select(_CHECKPOINT.c.size, _CHECKPOINT.c.root)
    .where(_CHECKPOINT.c.organization_id == _OWNER)
    .order_by(_CHECKPOINT.c.size.desc())
    .limit(1)
)
_CHECKPOINT_AT = select(_CHECKPOINT.c.root, _CHECKPOINT.c.frontier).where(
    _CHECKPOINT.c.organization_id == _OWNER, _CHECKPOINT.c.size == bindparam("size")
)
_LEAVES_OF = (
    select(_LEAF.c.number, _LEAF.c.event_id, _LEAF.c.hash)
    .where(_LEAF.c.organization_id == _OWNER, _LEAF.c.number >= _START)
    .order_by(_LEAF.c.number)
)
