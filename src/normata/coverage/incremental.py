"""What a change does to stored coverage, at the cost of what it touches: delete and rederive.

What is stored is the least fixpoint of the rules in ``engine.py`` as things were. After a change two steps lead to the
least fixpoint as things are:

1. **Take back.** A control whose own circumstances have changed falls to what is stated of it now, unless its level
   still stands. So does every control that a match or the hierarchy joins to one that fell, and so on. What is left
   rests on nothing that was taken back.
2. **Derive again.** Each control that fell, or whose circumstances have changed, is judged by what stands around it.
   What rises lifts others, until nothing rises any more.

A level stands where a rule gives it from controls of lower rank (see ``engine.py``). By the ranks, controls that vouch
for one another in a circle are told from those that have another reason, at a look around each. The first step may take
back too much, never too little. The second returns what has a reason after all, with a higher rank.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from normata.coverage.engine import Computed, Level
from normata.coverage.graph import Graph, View

NONE, PARTIAL, FULL = Level


class Ranked(NamedTuple):
    """What is stored of a control: its coverage and its rank, 0 where it is NONE."""

    computed: Computed
    rank: int


class RankedLevel(NamedTuple):
    """How far a control is covered, and the rank of that. Of two equal levels, the one with the lower rank is lower."""

    level: Level
    rank: int


_NOTHING = RankedLevel(NONE, 0)


def update(
    graph: Graph,
    *,
    reassessed: Collection[str] = (),
    moved: Collection[str] = (),
    rematched: Collection[str] = (),
    most: int,
) -> dict[str, Ranked | None]:
    """The coverage of every control for which something else must be stored; null where nothing may be any more.

    ``reassessed`` has the controls whose assessment has changed. ``moved`` has those that are new, that are gone or
    have left with their framework, or that have another parent, and their former parents. ``rematched`` has both ends
    of every match that is new, changed or gone, as they were and as they are. ``graph`` tells how things are now, with
    the coverage that is stored. Raises GraphTooLarge where the change touches more than ``most`` controls.
    """
    view = View(graph, most)
    changed_controls = {*reassessed, *moved}
    view.read(changed_controls.union(rematched))
    view.read_parents(changed_controls)
    effective, own = _Effective(view), _Own(view)
    effective.settle(changed_controls.union(rematched, effective.parents_touched(reassessed, moved)))
    own.settle(changed_controls.union(own.parents_touched(reassessed, moved)))
    changes: dict[str, Ranked | None] = {}
    for control in changed_controls | effective.changed.keys() | own.changed.keys():
        node = view.node(control)
        if node is None:
            changes[control] = None
            continue
        stored = None
        if node.effective is not None and node.own is not None:
            stored = Ranked(Computed.of(node.effective, node.own), node.rank or 0)
        level, rank = effective.ranked_level(control)
        now = Ranked(Computed.of(level, own.level(control)), rank) if node.is_adopted else None
        if now != stored:
            changes[control] = now
    return changes


class _Pass:
    """One of the two fixpoints. ``changed`` has what differs from what is stored."""

    def __init__(self, view: View) -> None:
        self.changed: dict[str, RankedLevel] = {}
        self._view = view
        # How many more children of a control are PARTIAL or FULL, and FULL, than is stored.
        self._more_partial: dict[str, int] = {}
        self._more_full: dict[str, int] = {}

    # --- What differs between the two

    def _stored(self, control: str) -> RankedLevel:
        raise NotImplementedError

    def _children(self, control: str) -> tuple[int, int]:
        """How many children are stored as PARTIAL or FULL, and as FULL."""
        raise NotImplementedError

    def _open(self, controls: Collection[str]) -> None:
        """Read what controls rest on and what rests on them, but for their children."""
        self._view.read_parents(controls)

    def _ahead(self, _control: str) -> Iterator[tuple[str, RankedLevel]]:
        """The targets of the matches from a control, and what each match gives its target."""
        return iter(())

    def _behind(self, _control: str) -> Iterator[RankedLevel]:
        """What each match that leads to a control gives it."""
        return iter(())

    def _lost(self, _control: str, _was: RankedLevel) -> Iterator[str]:
        """The controls to whose level a match from a control may have led, before it fell."""
        return iter(())

    # --- The algorithm

    def ranked_level(self, control: str) -> RankedLevel:
        """How far a control is covered, as far as that is known by now."""
        found = self.changed.get(control)
        return self._stored(control) if found is None else found

    def level(self, control: str) -> Level:
        """See :meth:`ranked_level`."""
        return self.ranked_level(control).level

    def parents_touched(self, reassessed: Iterable[str], moved: Iterable[str]) -> Iterator[str]:
        """The parents that have other children than they had, as far as that can make a difference."""
        for control in moved:
            parent = self._parent(control)
            if parent is not None:
                yield parent
        for control in reassessed:
            parent = self._parent(control)
            if parent is None:
                continue
            # One that does not apply may have stopped to. One that does may have begun to, under a parent that is FULL.
            if not self._counts(control) or (self.level(control) < FULL and self.level(parent) == FULL):
                yield parent

    def settle(self, touched: Collection[str]) -> None:
        """Find the levels that follow. The touched controls have been read."""
        fallen = self._take_back(touched)
        self._derive({*touched, *fallen})

    def _take_back(self, touched: Iterable[str]) -> set[str]:
        """Let the touched controls fall, and all that rested on them. Returns what fell."""
        fallen: set[str] = set()
        doubtful = set(touched)
        while doubtful:
            doubtful = {control for control in doubtful if self.level(control) > self._assessed(control)}
            self._open(doubtful)
            self._read_around(doubtful)
            falling = {}
            for control in doubtful:
                was = self.ranked_level(control)
                if not self._is_supported(control, was):
                    self._put(control, RankedLevel(self._assessed(control), 0))
                    falling[control] = was
            fallen |= falling.keys()
            doubtful = {name for control, was in falling.items() for name in self._resting_on(control, was)}
        return fallen

    def _is_supported(self, control: str, was: RankedLevel) -> bool:
        """Whether a rule gives a control its level from what is lower, so that it does not rest on itself."""
        if not self._counts(control):
            return False
        candidate = max((found.level for found in self._reasons(control) if found.rank <= was.rank), default=NONE)
        return candidate >= was.level

    def _reasons(self, control: str) -> Iterator[RankedLevel]:
        """What each rule but the statement gives a control."""
        yield from self._behind(control)
        yield from self._rolled_up(control)

    def _resting_on(self, control: str, was: RankedLevel) -> Iterator[str]:
        """The controls whose level may have rested on what a control has lost."""
        now = self.level(control)
        yield from self._lost(control, was)
        parent = self._parent(control)
        if parent is not None:
            level = self.level(parent)
            if (level == FULL and was.level == FULL) or (level == PARTIAL and (now == NONE or was.level == FULL)):
                yield parent

    def _derive(self, candidates: Collection[str]) -> None:
        """Lift each candidate as far as follows from what stands around it, and all that rises by that."""
        candidates = [control for control in candidates if self._counts(control)]
        self._open(candidates)
        self._read_around(candidates)
        rising = {control for control in candidates if self._rise(control, self._judged(control))}
        while rising:
            self._open(rising)
            parents = {parent for control in rising if (parent := self._parent(control)) is not None}
            self._read_around(parents)
            following: set[str] = set()
            for control in rising:
                for target, candidate in self._ahead(control):
                    if self._rise(target, candidate):
                        following.add(target)
            for parent in parents:
                for candidate in self._rolled_up(parent):
                    if self._rise(parent, candidate):
                        following.add(parent)
            rising = following

    def _rise(self, control: str, candidate: RankedLevel) -> bool:
        """Lift a control to a level; whether it was below. Where it has the level, it keeps its rank."""
        if candidate.level <= self.level(control) or not self._counts(control):
            return False
        self._put(control, candidate)
        return True

    def _judged(self, control: str) -> RankedLevel:
        """What follows for a control from its statement, its matches and its children, with the lowest rank."""
        assessed = self._assessed(control)
        if assessed and assessed == self.level(control):
            self._put(control, RankedLevel(assessed, 0))
        found = (RankedLevel(assessed, 0), *self._reasons(control))
        return max(found, key=lambda one: (one.level, -one.rank))

    def _rolled_up(self, control: str) -> Iterator[RankedLevel]:
        """What the children of a control give it."""
        number = self._view.children(control).number
        if not number:
            return
        partial, full = self._children(control)
        full += self._more_full.get(control, 0)
        if full == number:
            yield RankedLevel(FULL, 1 + max(child.rank for child in self._below(control)))
        if full:
            yield RankedLevel(PARTIAL, 1)
        elif partial + self._more_partial.get(control, 0):
            yield RankedLevel(PARTIAL, 1 + min(child.rank for child in self._below(control) if child.level == PARTIAL))

    # --- The graph

    def _below(self, control: str) -> list[RankedLevel]:
        """How far the children of a control are covered, each by itself."""
        self._view.read_below([control])  # where a child has risen since it was last asked whether they matter
        return [self.ranked_level(child) for child in self._view.below(control)]

    def _read_around(self, controls: Iterable[str]) -> None:
        """Read the children of controls in numbers, and by themselves where their ranks decide."""
        controls = list(controls)
        self._view.read_children(controls)
        decided_by_ranks = []
        for control in controls:
            number = self._view.children(control).number
            partial, full = self._children(control)
            full += self._more_full.get(control, 0)
            if number and (full == number or (not full and partial + self._more_partial.get(control, 0))):
                decided_by_ranks.append(control)
        self._view.read_below(decided_by_ranks)

    def _put(self, control: str, new: RankedLevel) -> None:
        was = self.ranked_level(control)
        self.changed[control] = new
        parent = self._parent(control)
        if parent is not None and self._counts(control):
            self._more_partial[parent] = self._more_partial.get(parent, 0) + (new.level > NONE) - (was.level > NONE)
            self._more_full[parent] = self._more_full.get(parent, 0) + (new.level == FULL) - (was.level == FULL)

    def _parent(self, control: str) -> str | None:
        node = self._view.node(control)
        return node.parent if node else None

    def _counts(self, control: str) -> bool:
        node = self._view.node(control)
        return node is not None and node.counts

    def _assessed(self, control: str) -> Level:
        node = self._view.node(control)
        return node.assessed if node and node.counts else NONE


class _Effective(_Pass):
    """The fixpoint of all rules."""

    def _stored(self, control: str) -> RankedLevel:
        node = self._view.node(control)
        return RankedLevel(node.effective, node.rank or 0) if node and node.effective else _NOTHING

    def _children(self, control: str) -> tuple[int, int]:
        children = self._view.children(control)
        return children.partial, children.full

    def _open(self, controls: Collection[str]) -> None:
        self._view.read_matches(controls)
        super()._open(controls)

    def _ahead(self, control: str) -> Iterator[tuple[str, RankedLevel]]:
        source = self.ranked_level(control)
        for match in self._view.ahead(control):
            yield match.target, _propagated(source, match.gives(source.level))

    def _behind(self, control: str) -> Iterator[RankedLevel]:
        for match in self._view.behind(control):
            if self._counts(match.source):
                source = self.ranked_level(match.source)
                yield _propagated(source, match.gives(source.level))

    def _lost(self, control: str, was: RankedLevel) -> Iterator[str]:
        for match in self._view.ahead(control):
            # A FULL target rests on what may have made it FULL. What else makes it PARTIAL is of no account.
            if NONE < self.level(match.target) <= match.gives(was.level):
                yield match.target


class _Own(_Pass):
    """The fixpoint without matches. There is nothing but the hierarchy, in which nothing rests on itself: no ranks."""

    def _stored(self, control: str) -> RankedLevel:
        node = self._view.node(control)
        return RankedLevel(node.own, 0) if node and node.own else _NOTHING

    def _children(self, control: str) -> tuple[int, int]:
        children = self._view.children(control)
        return children.own_partial, children.own_full

    def _is_supported(self, _control: str, _was: RankedLevel) -> bool:
        return False  # it falls at once, and rises again if there is a reason


def _propagated(source: RankedLevel, level: Level) -> RankedLevel:
    """What a match gives that makes its target this ``level``: PARTIAL from what is FULL is next to a statement."""
    return RankedLevel(level, 1 if level < source.level else 1 + source.rank)
