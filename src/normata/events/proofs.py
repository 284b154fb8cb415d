"""Inclusion proofs of events (RFC 9162, section 2.1.3): that an event is in the log that a checkpoint has signed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.merkle import (
    Checkpoint,
    Frontier,
    consistency_path,
    inclusion_path,
    is_consistent,
    node,
    root_by,
    split,
)
from normata.events.model import EventCheckpoint, EventLeaf
from normata.events.sealing import UnsoundLog, last_seal, named, sound_frontier

_WORTH_SEARCHING = 1_024  # leaves; reading fewer takes as long as searching for a checkpoint that has their root


class NoCheckpoint(Exception):
    """The log has no checkpoint of that size."""


class Consistency(NamedTuple):
    """The roots of a log at two sizes, and the proof that the later one begins with the leaves of the earlier one."""

    old_root: str
    new_root: str
    path: Sequence[str]


class Inclusion(NamedTuple):
    """The place of an event in its log, the hash of its leaf, and the proof of that."""

    number: int
    hash: str
    path: Sequence[str]


def checkpoint_at(transaction: Transaction, owner: str, size: int | None) -> tuple[Checkpoint, str | None]:
    """The checkpoint of a log at a size, the last one where that is null, with its time.

    Raises NoCheckpoint and UnsoundLog.
    """
    if size is None:
        return last_seal(transaction, owner)
    row = transaction.row(_AT, {"owner": owner, "size": size})
    if row is None:
        raise NoCheckpoint
    return Checkpoint(owner, size, row.root), row.at


def leaves_of(transaction: Transaction, event_ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    """The number and hash of the leaf of each of these events that is sealed."""
    rows = transaction.rows(_OF_EVENTS, {"ids": event_ids})
    return {row.event_id: (row.number, row.hash) for row in rows}


def size_of(transaction: Transaction, owner: str) -> int:
    """The number of sealed events of a log: the size of its last checkpoint."""
    return transaction.scalar(_SIZE, {"owner": owner}) or 0


def prove(transaction: Transaction, checkpoint: Checkpoint, number: int, leaf: str) -> Inclusion:
    """The proof that a leaf is in the tree of a checkpoint. Raises UnsoundLog if it does not lead to its root."""
    owner = checkpoint.organization_id
    left = {(start, start + size): root for start, size, root in _frontier(transaction, owner, number).subtrees()}

    def root_of(start: int, end: int) -> str:
        return left[start, end] if end <= number else _root(transaction, owner, start, end)

    path = inclusion_path(number, checkpoint.size, root_of)
    if root_by(leaf, number, checkpoint.size, path) != checkpoint.root:
        raise UnsoundLog(
            f"the leaves of the log of {named(owner)} are not those of its checkpoint; run `normata check`"
        )
    return Inclusion(number, leaf, path)


def prove_consistency(transaction: Transaction, owner: str, old: int, new: int) -> Consistency:
    """The proof that the log of ``new`` leaves begins with the first ``old`` ones. Both must be sealed.

    Raises UnsoundLog if it does not lead to the roots.
    """
    before, after = (_frontier(transaction, owner, size) for size in (old, new))
    known = {(start, start + size): root for start, size, root in before.subtrees()}

    def root_of(start: int, end: int) -> str:
        return known[start, end] if end <= old else _root(transaction, owner, start, end)

    path = consistency_path(old, new, root_of)
    if not is_consistent(old, before.root, new, after.root, path):
        raise UnsoundLog(
            f"the leaves of the log of {named(owner)} are not those of its checkpoints; run `normata check`"
        )
    return Consistency(before.root, after.root, path)


def _frontier(transaction: Transaction, owner: str, size: int) -> Frontier:
    """The right edge of a log when it had ``size`` leaves: from the checkpoint before, and the leaves since then."""
    row = transaction.row(_BEFORE, {"owner": owner, "size": size})
    frontier = Frontier() if row is None else _sound(owner, row)
    for leaf in transaction.scalars(_LEAVES, {"owner": owner, "start": frontier.size, "end": size}):
        frontier.append(leaf)
    return frontier


def _root(transaction: Transaction, owner: str, start: int, end: int) -> str:
    """The root of the leaves from ``start`` to before ``end``, which are a right half of a tree."""
    if end - start <= _WORTH_SEARCHING:
        frontier = Frontier()
        for leaf in transaction.scalars(_LEAVES, {"owner": owner, "start": start, "end": end}):
            frontier.append(leaf)
        if frontier.size != end - start:
            raise UnsoundLog(f"the log of {named(owner)} lacks leaves; run `normata check`")
        return frontier.root
    middle = start + split(end - start)
    left = _stored_root(transaction, owner, start, middle)
    return node(left or _root(transaction, owner, start, middle), _root(transaction, owner, middle, end))


def _stored_root(transaction: Transaction, owner: str, start: int, end: int) -> str | None:
    """The root of a left half, from a checkpoint that was made before the right half was full; null without one."""
    row = transaction.row(_BETWEEN, {"owner": owner, "start": end, "end": end + (end - start)})
    if row is None:
        return None
    subtrees = _sound(owner, row).subtrees()
    return next((root for first, size, root in subtrees if (first, first + size) == (start, end)), None)


def _sound(owner: str, checkpoint: EventCheckpoint) -> Frontier:
    frontier = sound_frontier(checkpoint.size, checkpoint.frontier, checkpoint.root)
    if frontier is None:
        raise UnsoundLog(f"a checkpoint of {named(owner)} was changed; run `normata check`")
    return frontier


_LEAF, _CHECKPOINT = sql_table(EventLeaf), sql_table(EventCheckpoint)
_OF_EVENTS = select(_LEAF.c.event_id, _LEAF.c.number, _LEAF.c.hash).where(
    _LEAF.c.event_id.in_(bindparam("ids", expanding=True))
)
_LEAVES = (
    select(_LEAF.c.hash)
    .where(
        _LEAF.c.organization_id == bindparam("owner"),
        _LEAF.c.number >= bindparam("start"),
        _LEAF.c.number < bindparam("end"),
    )
    .order_by(_LEAF.c.number)
)
_of_owner = _CHECKPOINT.c.organization_id == bindparam("owner")
_SIZE = select(func.max(_CHECKPOINT.c.size)).where(_of_owner)
_ANY = select(_CHECKPOINT.c.size, _CHECKPOINT.c.root, _CHECKPOINT.c.frontier, _CHECKPOINT.c.at).where(_of_owner)
_AT = _ANY.where(_CHECKPOINT.c.size == bindparam("size"))
_BEFORE = _ANY.where(_CHECKPOINT.c.size <= bindparam("size")).order_by(_CHECKPOINT.c.size.desc()).limit(1)
_BETWEEN = (
    _ANY.where(_CHECKPOINT.c.size >= bindparam("start"), _CHECKPOINT.c.size < bindparam("end"))
    .order_by(_CHECKPOINT.c.size)
    .limit(1)
)
