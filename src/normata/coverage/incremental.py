"""Updating stored coverage after a change, at the cost of what it touches: delete and rederive.

Stored coverage is the least fixpoint of the rules in ``engine.py`` before the change. Two steps lead to the least
fixpoint after it:

1. **Take back.** A changed control falls to its own assessment, unless a rule still supports its level. So does every
   control that a match or a roll-up connects to one that fell, and so on. The remaining levels depend on nothing that
   was taken back.
2. **Derive again.** Each control that fell or changed gets the level that follows from its neighbours. A control that
   rises lifts others, until nothing rises any more.

A level is supported if a rule gives it from controls of lower rank (see ``engine.py``). The ranks distinguish controls
that support one another in a circle from those with another reason, by reading only their neighbours. The first step
may take back too much, but never too little. The second step restores levels that have another reason, with a higher
rank.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from normata.coverage.engine import Computed, Level
from normata.coverage.graph import View

NONE, PARTIAL, FULL = Level


class Ranked(NamedTuple):
    """The stored data of a control: its coverage, its rank (0 if it is NONE), and whether it applies."""

    computed: Computed
    rank: int
    applies: bool = True


class RankedLevel(NamedTuple):
    """The level of a control, and its rank. Of two equal levels, the one with the lower rank is lower."""

    level: Level
    rank: int


_NOTHING = RankedLevel(NONE, 0)


def update(
    view: View,
    *,
    reassessed: Collection[str] = (),
    moved: Collection[str] = (),
    rematched: Collection[str] = (),
) -> dict[str, Ranked | None]:
    """The new coverage of every control whose stored coverage must change; null if it must be removed.

    ``reassessed`` has the controls whose assessed status has changed. ``moved`` has those that count for other groups
    than before: new ones, deleted ones and those of a framework that was left, those that began or stopped to apply or
    to be a group, those with another parent, and their former parents. ``rematched`` has both ends of every match that
    is new, changed or gone, as they were and as they are. ``view`` is of the graph after the change, with the stored
    coverage. Raises GraphTooLarge if the change touches more controls than it may read.
    """
    changed_controls = {*reassessed, *moved}
    view.read_above(changed_controls)  # the stored graph reads the controls themselves with the groups above them
    view.read(changed_controls.union(rematched))
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
    """One of the two fixpoints. ``changed`` has the levels that differ from the stored ones."""

    def __init__(self, view: View) -> None:
        self.changed: dict[str, RankedLevel] = {}
        self._view = view
        # How many more requirements below a group than stored are PARTIAL or FULL, and how many more are FULL.
        self._more_partial: dict[str, int] = {}
        self._more_full: dict[str, int] = {}
        # Changes of these counts by controls whose ancestors have not been read yet.
        self._uncounted: list[tuple[str, int, int]] = []

    # --- Differences from the stored state

    def _stored(self, control: str) -> RankedLevel:
        raise NotImplementedError

    def _stored_below(self, control: str) -> tuple[int, int]:
        """The numbers of requirements below a control that are stored as PARTIAL or FULL, and as FULL."""
        raise NotImplementedError

    def _open(self, controls: Collection[str]) -> None:
        """Read the neighbours of controls by matches, and the groups above, but not the controls below them."""
        self._view.read_above(controls)
        uncounted, self._uncounted = self._uncounted, []
        for changed in uncounted:
            self._count(*changed)

    def _ahead(self, _control: str) -> Iterator[tuple[str, RankedLevel]]:
        """The targets of the matches from a control, each with the level that it gets."""
        return iter(())

    def _behind(self, _control: str) -> Iterator[RankedLevel]:
        """The level that each match to a control gives it."""
        return iter(())

    def _lost(self, _control: str, _was: RankedLevel) -> Iterator[str]:
        """The controls to whose level a match from a control may have led, before it fell."""
        return iter(())

    # --- The algorithm

    def ranked_level(self, control: str) -> RankedLevel:
        """The ranked level of a control in the current state of the pass."""
        found = self.changed.get(control)
        return self._stored(control) if found is None else found

    def level(self, control: str) -> Level:
        """The level without the rank."""
        return self.ranked_level(control).level

    def settle(self, touched: Collection[str]) -> None:
        """Find the new levels. The touched controls have been read."""
        fallen = self._take_back(touched)
        self._derive({*touched, *fallen})

    def _take_back(self, touched: Iterable[str]) -> set[str]:
        """Take back the levels of the touched controls, and of those that depended on them.

        Returns the controls that fell.
        """
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
        """Whether a rule gives a control its level from lower ranks, so that it does not depend on itself."""
        if not self._counts(control):
            return False
        candidate = max((found.level for found in self._reasons(control) if found.rank <= was.rank), default=NONE)
        return candidate >= was.level

    def _reasons(self, control: str) -> Iterator[RankedLevel]:
        """The levels that the rules other than assessment give a control."""
        yield from self._behind(control)
        yield from self._rolled_up(control)

    def _resting_on(self, control: str, was: RankedLevel) -> Iterator[str]:
        """The controls whose level may have depended on the level that a control has lost."""
        now = self.level(control)
        yield from self._lost(control, was)
        for group in self._view.counts_for(control):
            level = self.level(group)
            if (level == FULL and was.level == FULL) or (level == PARTIAL and (now == NONE or was.level == FULL)):
                yield group

    def _derive(self, candidates: Collection[str]) -> None:
        """Lift each candidate to the level that follows from its neighbours, and the controls that rise by that."""
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
        """Lift a control to a level; returns whether it was below. If it has the level, it keeps its rank."""
        if candidate.level <= self.level(control) or not self._counts(control):
            return False
        self._put(control, candidate)
        return True

    def _judged(self, control: str) -> RankedLevel:
        """The level that follows from a control's assessment, matches and children, with the lowest rank."""
        assessed = self._assessed(control)
        if assessed and assessed == self.level(control):
            self._put(control, RankedLevel(assessed, 0))
        found = (RankedLevel(assessed, 0), *self._reasons(control))
        return max(found, key=lambda one: (one.level, -one.rank))

    def _rolled_up(self, control: str) -> Iterator[RankedLevel]:
        """The level that a group gets from the requirements below it."""
        number, partial, full = self._numbers(control)
        if not number:
            return
        if full == number:
            yield RankedLevel(FULL, 1 + max(one.rank for one in self._below(control)))
        if full:
            yield RankedLevel(PARTIAL, 1)
        elif partial:
            # Those that have just changed may not be counted yet. The group is then checked again when they are.
            ranks = [one.rank for one in self._below(control) if one.level == PARTIAL]
            if ranks:
                yield RankedLevel(PARTIAL, 1 + min(ranks))

    # --- The graph

    def _numbers(self, control: str) -> tuple[int, int, int]:
        """The numbers of requirements below a control: all, those that are PARTIAL or FULL, and those that are FULL."""
        partial, full = self._stored_below(control)
        more_partial, more_full = self._more_partial.get(control, 0), self._more_full.get(control, 0)
        return self._view.counts(control).number, partial + more_partial, full + more_full

    def _below(self, control: str) -> list[RankedLevel]:
        """The levels of the requirements below a control."""
        self._view.read_below([control])  # a new one may have risen since the last check
        return [self.ranked_level(one) for one in self._view.below(control)]

    def _read_around(self, controls: Iterable[str]) -> None:
        """Read the counts of requirements below controls, and the requirements themselves if ranks decide."""
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
            # A FULL target only depends on what may have made it FULL. Other sources, which make it PARTIAL, do not
            # matter.
            if NONE < self.level(match.target) <= match.gives(was.level):
                yield match.target


class _Own(_Pass):
    """The fixpoint without matches. It needs no ranks: in a hierarchy nothing depends on itself."""

    def _stored(self, control: str) -> RankedLevel:
        node = self._view.node(control)
        return RankedLevel(node.own, 0) if node and node.own else _NOTHING

    def _stored_below(self, control: str) -> tuple[int, int]:
        below = self._view.counts(control)
        return below.own_partial, below.own_full

    def _is_supported(self, _control: str, _was: RankedLevel) -> bool:
        return False  # it falls now, and rises again if there is another reason


def _propagated(source: RankedLevel, level: Level) -> RankedLevel:
    """The ranked level that a match gives its target; PARTIAL from a FULL source has the rank next to an assessment."""
    return RankedLevel(level, 1 if level < source.level else 1 + source.rank)
