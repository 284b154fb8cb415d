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


class Standing(NamedTuple):
    """How far a control is covered, and the rank of that. Of two equal levels, the one with the lower rank is lower."""

    level: Level
    rank: int


_NOTHING = Standing(NONE, 0)


def update(
    graph: Graph,
    *,
    restated: Collection[str] = (),
    moved: Collection[str] = (),
    rematched: Collection[str] = (),
    most: int,
) -> dict[str, Ranked | None]:
    """The coverage of every control for which something else must be stored; null where nothing may be any more.

    ``restated`` has the controls of which something else is stated. ``moved`` has those that are new, that are gone or
    have left with their framework, or that have another parent, and their former parents. ``rematched`` has both ends
    of every match that is new, changed or gone, as they were and as they are. ``graph`` tells how things are now, with
    the coverage that is stored. Raises TooMuch where the change touches more than ``most`` controls.
    """
    view = View(graph, most)
    said = {*restated, *moved}
    view.read(said.union(rematched))
    view.read_parents(said)
    effective, own = _Effective(view), _Own(view)
    effective.settle(said.union(rematched, effective.parents_touched(restated, moved)))
    own.settle(said.union(own.parents_touched(restated, moved)))
    changes: dict[str, Ranked | None] = {}
    for control in said | effective.changed.keys() | own.changed.keys():
        node = view.node(control)
        if node is None:
            changes[control] = None
            continue
        stored = None
        if node.effective is not None and node.own is not None:
            stored = Ranked(Computed.of(node.effective, node.own), node.rank or 0)
        level, rank = effective.standing(control)
        now = Ranked(Computed.of(level, own.level(control)), rank) if node.is_adopted else None
        if now != stored:
            changes[control] = now
    return changes


class _Pass:
    """One of the two fixpoints. ``changed`` has what differs from what is stored."""

    def __init__(self, view: View) -> None:
        self.changed: dict[str, Standing] = {}
        self._view = view
        # How many more children of a control are PARTIAL or FULL, and FULL, than is stored.
        self._more_partial: dict[str, int] = {}
        self._more_full: dict[str, int] = {}

    # --- What differs between the two

    def _stored(self, control: str) -> Standing:
        raise NotImplementedError

    def _children(self, control: str) -> tuple[int, int]:
        """How many children are stored as PARTIAL or FULL, and as FULL."""
        raise NotImplementedError

    def _open(self, controls: Collection[str]) -> None:
        """Read what controls rest on and what rests on them, but for their children."""
        self._view.read_parents(controls)

    def _ahead(self, _control: str) -> Iterator[tuple[str, Standing]]:
        """The targets of the matches from a control, and what each match gives its target."""
        return iter(())

    def _behind(self, _control: str) -> Iterator[Standing]:
        """What each match that leads to a control gives it."""
        return iter(())

    def _lost(self, _control: str, _was: Standing) -> Iterator[str]:
        """The controls to whose level a match from a control may have led, before it fell."""
        return iter(())

    # --- The algorithm

    def standing(self, control: str) -> Standing:
        """How far a control is covered, as far as that is known by now."""
        found = self.changed.get(control)
        return self._stored(control) if found is None else found

    def level(self, control: str) -> Level:
        """See :meth:`standing`."""
        return self.standing(control).level

    def parents_touched(self, restated: Iterable[str], moved: Iterable[str]) -> Iterator[str]:
        """The parents that have other children than they had, as far as that can make a difference."""
        for control in moved:
            parent = self._parent(control)
            if parent is not None:
                yield parent
        for control in restated:
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
            doubtful = {control for control in doubtful if self.level(control) > self._stated(control)}
            self._open(doubtful)
            self._read_around(doubtful)
            falling = {}
            for control in doubtful:
                was = self.standing(control)
                if not self._stands(control, was):
                    self._put(control, Standing(self._stated(control), 0))
                    falling[control] = was
            fallen |= falling.keys()
            doubtful = {name for control, was in falling.items() for name in self._resting_on(control, was)}
        return fallen

    def _stands(self, control: str, was: Standing) -> bool:
        """Whether a rule gives a control its level from what is lower, so that it does not rest on itself."""
        if not self._counts(control):
            return False
        given = max((found.level for found in self._reasons(control) if found.rank <= was.rank), default=NONE)
        return given >= was.level

    def _reasons(self, control: str) -> Iterator[Standing]:
        """What each rule but the statement gives a control."""
        yield from self._behind(control)
        yield from self._rolled_up(control)

    def _resting_on(self, control: str, was: Standing) -> Iterator[str]:
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
                for target, given in self._ahead(control):
                    if self._rise(target, given):
                        following.add(target)
            for parent in parents:
                for given in self._rolled_up(parent):
                    if self._rise(parent, given):
                        following.add(parent)
            rising = following

    def _rise(self, control: str, given: Standing) -> bool:
        """Lift a control to a level; whether it was below. Where it has the level, it keeps its rank."""
        if given.level <= self.level(control) or not self._counts(control):
            return False
        self._put(control, given)
        return True

    def _judged(self, control: str) -> Standing:
        """What follows for a control from its statement, its matches and its children, with the lowest rank."""
        stated = self._stated(control)
        if stated and stated == self.level(control):
            self._put(control, Standing(stated, 0))
        found = (Standing(stated, 0), *self._reasons(control))
        return max(found, key=lambda one: (one.level, -one.rank))

    def _rolled_up(self, control: str) -> Iterator[Standing]:
        """What the children of a control give it."""
        number = self._view.children(control).number
        if not number:
            return
        partial, full = self._children(control)
        full += self._more_full.get(control, 0)
        if full == number:
            yield Standing(FULL, 1 + max(child.rank for child in self._below(control)))
        if full:
            yield Standing(PARTIAL, 1)
        elif partial + self._more_partial.get(control, 0):
            yield Standing(PARTIAL, 1 + min(child.rank for child in self._below(control) if child.level == PARTIAL))

    # --- The graph

    def _below(self, control: str) -> list[Standing]:
        """How far the children of a control are covered, each by itself."""
        self._view.read_below([control])  # where a child has risen since it was last asked whether they matter
        return [self.standing(child) for child in self._view.below(control)]

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

    def _put(self, control: str, new: Standing) -> None:
        was = self.standing(control)
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

    def _stated(self, control: str) -> Level:
        node = self._view.node(control)
        return node.stated if node and node.counts else NONE


class _Effective(_Pass):
    """The fixpoint of all rules."""

    def _stored(self, control: str) -> Standing:
        node = self._view.node(control)
        return Standing(node.effective, node.rank or 0) if node and node.effective else _NOTHING

    def _children(self, control: str) -> tuple[int, int]:
        children = self._view.children(control)
        return children.partial, children.full

    def _open(self, controls: Collection[str]) -> None:
        self._view.read_matches(controls)
        super()._open(controls)

    def _ahead(self, control: str) -> Iterator[tuple[str, Standing]]:
        source = self.standing(control)
        for match in self._view.ahead(control):
            yield match.target, _given(source, match.gives(source.level))

    def _behind(self, control: str) -> Iterator[Standing]:
        for match in self._view.behind(control):
            if self._counts(match.source):
                source = self.standing(match.source)
                yield _given(source, match.gives(source.level))

    def _lost(self, control: str, was: Standing) -> Iterator[str]:
        for match in self._view.ahead(control):
            # A FULL target rests on what may have made it FULL. What else makes it PARTIAL is of no account.
            if NONE < self.level(match.target) <= match.gives(was.level):
                yield match.target


class _Own(_Pass):
    """The fixpoint without matches. There is nothing but the hierarchy, in which nothing rests on itself: no ranks."""

    def _stored(self, control: str) -> Standing:
        node = self._view.node(control)
        return Standing(node.own, 0) if node and node.own else _NOTHING

    def _children(self, control: str) -> tuple[int, int]:
        children = self._view.children(control)
        return children.own_partial, children.own_full

    def _stands(self, _control: str, _was: Standing) -> bool:
        return False  # it falls at once, and rises again if there is a reason


def _given(source: Standing, level: Level) -> Standing:
    """What a match gives that makes its target this ``level``: PARTIAL from what is FULL is next to a statement."""
    return Standing(level, 1 if level < source.level else 1 + source.rank)
