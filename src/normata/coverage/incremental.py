"""What a change does to stored coverage, at the cost of what it touches: delete and rederive.

What is stored is the least fixpoint of the rules in ``engine.py`` as things were. After a change two steps lead to the
least fixpoint as things are:

1. **Take back.** A control whose own circumstances have changed falls to its own assessment, unless its level
   still stands. So does every control that a match or a roll-up joins to one that fell, and so on. What is left
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
    """What is stored of a control: its coverage, its rank, 0 where it is NONE, and whether it applies."""

    computed: Computed
    rank: int
    applies: bool = True


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

    ``reassessed`` has the controls whose assessed status has changed. ``moved`` has those that count for other groups
    than they did: those that are new, that are gone or have left with their framework, that have begun or stopped to
    apply or to be a group, or that have another parent, and their former parents. ``rematched`` has both ends
    of every match that is new, changed or gone, as they were and as they are. ``graph`` tells how things are now, with
    the coverage that is stored. Raises GraphTooLarge where the change touches more than ``most`` controls.
    """
    view = View(graph, most)
    changed_controls = {*reassessed, *moved}
    view.read(changed_controls.union(rematched))
    view.read_above(changed_controls)
    regrouped = {group for control in moved for group in view.above(control)}
    effective, own = _Effective(view), _Own(view)
    effective.settle(changed_controls.union(rematched, regrouped))
    own.settle(changed_controls.union(regrouped))
    changes: dict[str, Ranked | None] = {}
    for control in changed_controls | effective.changed.keys() | own.changed.keys():
        node = view.node(control)
        if node is None:
            changes[control] = None
            continue
        stored = None
        if node.effective is not None and node.own is not None:
            stored = Ranked(Computed.of(node.effective, node.own), node.rank or 0, node.is_applicable)
        level, rank = effective.ranked_level(control)
        now = Ranked(Computed.of(level, own.level(control)), rank, node.is_applicable) if node.is_adopted else None
        if now != stored:
            changes[control] = now
    return changes


class _Pass:
    """One of the two fixpoints. ``changed`` has what differs from what is stored."""

    def __init__(self, view: View) -> None:
        self.changed: dict[str, RankedLevel] = {}
        self._view = view
        # How many more requirements below a group are PARTIAL or FULL, and FULL, than is stored.
        self._more_partial: dict[str, int] = {}
        self._more_full: dict[str, int] = {}
        # By how much that changes by controls above which nothing has been read yet.
        self._uncounted: list[tuple[str, int, int]] = []

    # --- What differs between the two

    def _stored(self, control: str) -> RankedLevel:
        raise NotImplementedError

    def _stored_below(self, control: str) -> tuple[int, int]:
        """How many requirements below a control are stored as PARTIAL or FULL, and as FULL."""
        raise NotImplementedError

    def _open(self, controls: Collection[str]) -> None:
        """Read what controls rest on and what rests on them, but for what is below them."""
        self._view.read_above(controls)
        uncounted, self._uncounted = self._uncounted, []
        for changed in uncounted:
            self._count(*changed)

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
        """The same without the rank."""
        return self.ranked_level(control).level

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
        """What each rule but the assessment gives a control."""
        yield from self._behind(control)
        yield from self._rolled_up(control)

    def _resting_on(self, control: str, was: RankedLevel) -> Iterator[str]:
        """The controls whose level may have rested on what a control has lost."""
        now = self.level(control)
        yield from self._lost(control, was)
        for group in self._view.counts_for(control):
            level = self.level(group)
            if (level == FULL and was.level == FULL) or (level == PARTIAL and (now == NONE or was.level == FULL)):
                yield group

    def _derive(self, candidates: Collection[str]) -> None:
        """Lift each candidate as far as follows from what stands around it, and all that rises by that."""
        candidates = [control for control in candidates if self._counts(control)]
        self._open(candidates)
        self._read_around(candidates)
        rising = {control for control in candidates if self._rise(control, self._judged(control))}
        while rising:
            self._open(rising)
            groups = {group for control in rising for group in self._view.counts_for(control)}
            self._read_around(groups)
            following: set[str] = set()
            for control in rising:
                for target, candidate in self._ahead(control):
                    if self._rise(target, candidate):
                        following.add(target)
            for group in groups:
                for candidate in self._rolled_up(group):
                    if self._rise(group, candidate):
                        following.add(group)
            rising = following

    def _rise(self, control: str, candidate: RankedLevel) -> bool:
        """Lift a control to a level; whether it was below. Where it has the level, it keeps its rank."""
        if candidate.level <= self.level(control) or not self._counts(control):
            return False
        self._put(control, candidate)
        return True

    def _judged(self, control: str) -> RankedLevel:
        """What follows for a control from its assessment, its matches and what is below it, with the lowest rank."""
        assessed = self._assessed(control)
        if assessed and assessed == self.level(control):
            self._put(control, RankedLevel(assessed, 0))
        found = (RankedLevel(assessed, 0), *self._reasons(control))
        return max(found, key=lambda one: (one.level, -one.rank))

    def _rolled_up(self, control: str) -> Iterator[RankedLevel]:
        """What the requirements below a control give it, if it is a group."""
        number, partial, full = self._numbers(control)
        if not number:
            return
        if full == number:
            yield RankedLevel(FULL, 1 + max(one.rank for one in self._below(control)))
        if full:
            yield RankedLevel(PARTIAL, 1)
        elif partial:
            # Those that have just changed may not be counted yet: then the group is looked at once more when they are.
            ranks = [one.rank for one in self._below(control) if one.level == PARTIAL]
            if ranks:
                yield RankedLevel(PARTIAL, 1 + min(ranks))

    # --- The graph

    def _numbers(self, control: str) -> tuple[int, int, int]:
        """How many requirements are below a control, and how many of them are PARTIAL or FULL, and FULL."""
        partial, full = self._stored_below(control)
        more_partial, more_full = self._more_partial.get(control, 0), self._more_full.get(control, 0)
        return self._view.counts(control).number, partial + more_partial, full + more_full

    def _below(self, control: str) -> list[RankedLevel]:
        """How far the requirements below a control are covered, each by itself."""
        self._view.read_below([control])  # where one has risen since it was last asked whether they matter
        return [self.ranked_level(one) for one in self._view.below(control)]

    def _read_around(self, controls: Iterable[str]) -> None:
        """Read what is below controls in numbers, and by itself where ranks decide."""
        controls = list(controls)
        self._view.read_counts(controls)
        decided_by_ranks = []
        for control in controls:
            number, partial, full = self._numbers(control)
            if number and (full == number or (not full and partial)):
                decided_by_ranks.append(control)
        self._view.read_below(decided_by_ranks)

    def _put(self, control: str, new: RankedLevel) -> None:
        was = self.ranked_level(control)
        self.changed[control] = new
        more_partial = (new.level > NONE) - (was.level > NONE)
        more_full = (new.level == FULL) - (was.level == FULL)
        if (more_partial or more_full) and self._counts(control):
            self._uncounted.append((control, more_partial, more_full))

    def _count(self, control: str, more_partial: int, more_full: int) -> None:
        for group in self._view.counts_for(control):
            self._more_partial[group] = self._more_partial.get(group, 0) + more_partial
            self._more_full[group] = self._more_full.get(group, 0) + more_full

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

    def _stored_below(self, control: str) -> tuple[int, int]:
        below = self._view.counts(control)
        return below.partial, below.full

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

    def _stored_below(self, control: str) -> tuple[int, int]:
        below = self._view.counts(control)
        return below.own_partial, below.own_full

    def _is_supported(self, _control: str, _was: RankedLevel) -> bool:
        return False  # it falls at once, and rises again if there is a reason


def _propagated(source: RankedLevel, level: Level) -> RankedLevel:
    """What a match gives that makes its target this ``level``: PARTIAL from what is FULL is next to a statement."""
    return RankedLevel(level, 1 if level < source.level else 1 + source.rank)
