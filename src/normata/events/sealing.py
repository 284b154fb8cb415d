"""Sealing: each event gets a leaf in the log of its organization, and each log that has grown gets a checkpoint.

Events are sealed after their transactions, so no writer waits for another. Triggers note each event that has no leaf
yet. A round reads the noted events, and computes leaves and roots before it takes the sealers' lock. So several
processes may seal at the same time: one of them wins, and the others find that the logs have grown meanwhile, and stop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select

from normata.core.changes.unit_of_work import delete_of, insert_of
from normata.core.db.database import Database
from normata.core.db.security import Write
from normata.core.db.transaction import TenantScope, Transaction, batches
from normata.core.db.types import now
from normata.core.schema.table import sql_table
from normata.errors import CommandError
from normata.events.content import sealed_text
from normata.events.merkle import Checkpoint, Frontier, leaf_hash
from normata.events.model import AuditEvent, EventCheckpoint, EventLeaf, UnsealedEvent

SEALING_WRITES: tuple[Write, ...] = (insert_of(EventLeaf), insert_of(EventCheckpoint), delete_of(UnsealedEvent))

_NOBODY = "\x01"  # no id is equal to it; a list in SQL needs an item
_MOST = 1_000  # events in one round, during which nobody else can write to SQLite


class UnsoundLog(CommandError):
    """The end of a log is not as it was sealed, so nothing more is sealed or signed."""


@dataclass(slots=True)
class Round:
    """The writes of a round. ``sizes`` are those that the logs have before.

    ``is_full`` is true if there may be more than one round seals. ``unsound`` has a sentence for each unsound log.
    """

    is_full: bool = False
    unsound: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    leaves: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: list[dict[str, Any]] = field(default_factory=list)


async def seal(database: Database, unsound: dict[str, str] | None = None) -> tuple[list[Checkpoint], bool]:
    """Seal some noted events.

    Returns the checkpoints of the logs that have grown, and whether there may be more to seal.

    If another process has sealed meanwhile, nothing is done. ``unsound`` gets a sentence for each unsound log.
    """
    planned = await database.read(plan)
    if unsound is not None:
        unsound.update(planned.unsound)
    if not planned.leaves or not await database.write(_store_of(planned), _scope(planned.sizes)):
        return [], False
    return _checkpoints(planned), planned.is_full


def seal_all_now(database: Database) -> Collection[str]:
    """Seal all events noted so far, for callers without an event loop.

    Returns a sentence for each unsound log. Events noted meanwhile are left to others, because next to a busy service
    there would be no end.
    """
    last = database.read_now(_last_noted)
    unsound: dict[str, str] = {}
    while last is not None:
        planned = database.read_now(plan)
        unsound.update(planned.unsound)
        if all(leaf["event_id"] > last for leaf in planned.leaves):
            break
        # Another process may have sealed some of them. The next round finds the rest.
        database.write_now(_store_of(planned))
    return unsound.values()


def _last_noted(transaction: Transaction) -> str | None:
    """The newest of the events that are noted; null if there is none."""
    found: str | None = transaction.scalar(_LAST_NOTED)
    return found


def _scope(owners: Iterable[str]) -> TenantScope:
    every = tuple(sorted(owners))
    return TenantScope(readable=every, writable=every)


def _store_of(planned: Round) -> Callable[[Transaction], bool]:
    return lambda transaction: store(transaction, planned)


def _checkpoints(planned: Round) -> list[Checkpoint]:
    return [Checkpoint(row["organization_id"], row["size"], row["root"]) for row in planned.checkpoints]


def plan(transaction: Transaction) -> Round:
    """The next leaves and checkpoints; none if no event is noted.

    Everything is read in one transaction, in which noted events have no leaf, unless somebody has added rows by hand.
    Rows without an event, or with an event of another log, are skipped; `normata check` reports them.
    """
    planned = Round()
    frontiers: dict[str, Frontier] = {}
    after = ""
    while True:
        noted = transaction.rows(_NOTED, {"unsound": [_NOBODY, *planned.unsound], "after": after})
        if _find_frontiers(transaction, {row.owner for row in noted}, frontiers, planned):
            continue  # an unsound log keeps its notes
        events = _noted_events(transaction, {row.event_id: row.owner for row in noted})
        planned.is_full = len(noted) == _MOST
        if events or not planned.is_full:
            break
        after = noted[-1].event_id
    moment = now()
    for owner, found in sorted(events.items()):
        frontier = frontiers[owner]
        planned.sizes[owner] = frontier.size
        for event in sorted(found, key=lambda event: (event.at, event.id)):
            leaf_of = leaf_hash(sealed_text(event))
            leaf = {"organization_id": owner, "number": frontier.size, "event_id": event.id, "hash": leaf_of}
            planned.leaves.append(leaf)
            frontier.append(leaf_of)
        planned.checkpoints.append(
            {
                "organization_id": owner,
                "size": frontier.size,
                "root": frontier.root,
                "frontier": frontier.text,
                "at": moment,
            }
        )
    return planned


def _find_frontiers(transaction: Transaction, owners: set[str], frontiers: dict[str, Frontier], planned: Round) -> bool:
    """Find the right edges of logs; returns whether one of them is unsound."""
    new = owners - frontiers.keys()
    transaction.extend(_scope({*new, *frontiers}))
    for owner in sorted(new):
        try:
            frontiers[owner] = frontier_of(transaction, owner)
        except UnsoundLog as error:
            planned.unsound[owner] = str(error)
    return bool(new & planned.unsound.keys())


def _noted_events(transaction: Transaction, owners: Mapping[str, str]) -> Mapping[str, Sequence[Any]]:
    """The events that are noted and have no leaf, by their logs; ``owners`` has the log that each is noted for."""
    by_owner: defaultdict[str, list[Any]] = defaultdict(list)
    for batch in batches(list(owners)):
        events = transaction.rows(_EVENTS, {"ids": batch})
        old = [event.id for event in events if event.body is None]  # their content is in their other columns
        whole = {event.id: event for event in transaction.rows(_WHOLE, {"ids": old})} if old else {}
        for event in events:
            owner = event.organization_id or ""
            if owner == owners[event.id]:
                by_owner[owner].append(whole.get(event.id, event))
    return by_owner


def frontier_of(transaction: Transaction, owner: str) -> Frontier:
    """The right edge of a log from its last checkpoint. Raises UnsoundLog."""
    return _end_of(transaction, owner)[0]


def last_checkpoint(transaction: Transaction, owner: str) -> Checkpoint:
    """The last checkpoint of a log, or that of the empty log if nothing was sealed. Raises UnsoundLog."""
    return last_seal(transaction, owner)[0]


def last_seal(transaction: Transaction, owner: str) -> tuple[Checkpoint, str | None]:
    """The last checkpoint of a log and its time, or that of the empty log and null. Raises UnsoundLog."""
    frontier, at = _end_of(transaction, owner)
    return Checkpoint(owner, frontier.size, frontier.root), at


def _end_of(transaction: Transaction, owner: str) -> tuple[Frontier, str | None]:
    """The right edge of a log, and when it was made. Raises UnsoundLog if it is not that of root and leaves."""
    last = transaction.row(_LAST, {"owner": owner})
    leaves = transaction.scalar(_LAST_LEAF, {"owner": owner})
    frontier = Frontier() if last is None else sound_frontier(last.size, last.frontier, last.root)
    if frontier is None:
        raise UnsoundLog(f"the last checkpoint of {named(owner)} was changed; run `normata check`")
    if frontier.size != (0 if leaves is None else leaves + 1):
        raise UnsoundLog(f"the log of {named(owner)} has other leaves than its last checkpoint; run `normata check`")
    return frontier, None if last is None else last.at


def sound_frontier(size: int, text: str, root: str) -> Frontier | None:
    """The right edge in a checkpoint; null if it does not fit the size and root."""
    try:
        frontier = Frontier.of_text(size, text)
        is_sound = frontier.root == root
    except ValueError:
        return None
    return frontier if is_sound else None


def named(owner: str) -> str:
    """A log, in a sentence."""
    return f"organization {owner}" if owner else "the operator"


def store(transaction: Transaction, planned: Round) -> bool:
    """Write a round. Returns false, without writing, if another process has sealed meanwhile."""
    transaction.lock("sealing")
    for owner, size in planned.sizes.items():
        if (transaction.scalar(_SIZE, {"owner": owner}) or 0) != size:
            return False
    for batch in batches(planned.leaves):
        transaction.execute_many(_LEAF, batch)
        transaction.rows(_DONE, {"ids": [leaf["event_id"] for leaf in batch]})
    transaction.execute_many(_CHECKPOINT, planned.checkpoints)
    return True


_EVENT, _UNSEALED = sql_table(AuditEvent), sql_table(UnsealedEvent)
_LEAVES, _CHECKPOINTS = sql_table(EventLeaf), sql_table(EventCheckpoint)

_NOTED = (
    select(_UNSEALED.c.event_id, _UNSEALED.c.owner)
    .where(_UNSEALED.c.owner.not_in(bindparam("unsound", expanding=True)), _UNSEALED.c.event_id > bindparam("after"))
    .order_by(_UNSEALED.c.event_id)
    .limit(_MOST)
)
_LAST_NOTED = select(func.max(_UNSEALED.c.event_id))
# The limit keeps PostgreSQL from making this a join, which would read all leaves for each event as long as there are no
# statistics.
_LEAF_OF_EVENT = select(_LEAVES.c.number).where(_LEAVES.c.event_id == _EVENT.c.id).limit(1).scalar_subquery()
_EVENTS = select(_EVENT.c.id, _EVENT.c.organization_id, _EVENT.c.at, _EVENT.c.body).where(
    _EVENT.c.id.in_(bindparam("ids", expanding=True)), _LEAF_OF_EVENT.is_(None)
)
_WHOLE = select(*_EVENT.c).where(_EVENT.c.id.in_(bindparam("ids", expanding=True)))
_LAST = (
    select(_CHECKPOINTS.c.size, _CHECKPOINTS.c.frontier, _CHECKPOINTS.c.root, _CHECKPOINTS.c.at)
    .where(_CHECKPOINTS.c.organization_id == bindparam("owner"))
    .order_by(_CHECKPOINTS.c.size.desc())
    .limit(1)
)
_LAST_LEAF = select(func.max(_LEAVES.c.number)).where(_LEAVES.c.organization_id == bindparam("owner"))
_SIZE = select(func.max(_CHECKPOINTS.c.size)).where(_CHECKPOINTS.c.organization_id == bindparam("owner"))
_LEAF = insert(_LEAVES).values({column.name: bindparam(column.name, type_=column.type) for column in _LEAVES.c})
_CHECKPOINT = insert(_CHECKPOINTS).values(
    {column.name: bindparam(column.name, type_=column.type) for column in _CHECKPOINTS.c}
)
_DONE = delete(_UNSEALED).where(_UNSEALED.c.event_id.in_(bindparam("ids", expanding=True)))
