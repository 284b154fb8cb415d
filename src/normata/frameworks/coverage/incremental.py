"""What a change does to stored coverage, at the cost of what it touches: delete and rederive.

What is stored is the least fixpoint of the rules in ``engine.py`` as things were. After a change two steps lead to the
least fixpoint as things are:

1. **Take back.** A control whose own circumstances have changed falls to what is stated of it now. So does every
   control whose level may have rested on one that fell, and so on. What is left rests on nothing that was taken back.
2. **Derive again.** Each control that fell, or whose circumstances have changed, is judged by what stands around it.
   What rises lifts others, until nothing rises any more.

The first step takes back too much, never too little: in a circle of controls that vouch for one another nobody could
tell otherwise. The second returns what has another reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from normata.frameworks.coverage.engine import Computed, Level
from normata.frameworks.coverage.graph import Children, Graph, Node, View

NONE, PARTIAL, FULL = Level


def update(
    graph: Graph,
    *,
    restated: Collection[str] = (),
    moved: Collection[str] = (),
    rematched: Collection[str] = (),
    most: int,
) -> dict[str, Computed | None]:
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
    effective = _Pass(view, lambda node: node.effective, _effective_children, with_matches=True)
    own = _Pass(view, lambda node: node.own, _own_children, with_matches=False)
    effective.settle(said.union(rematched, effective.parents_touched(restated, moved)))
    own.settle(said.union(own.parents_touched(restated, moved)))
    changes: dict[str, Computed | None] = {}
    for control in said | effective.levels.keys() | own.levels.keys():
        node = view.node(control)
        if node is None:
            changes[control] = None
            continue
        stored = None if node.effective is None or node.own is None else Computed.of(node.effective, node.own)
        now = Computed.of(effective.level(control), own.level(control)) if node.is_adopted else None
        if now != stored:
            changes[control] = now
    return changes


def _effective_children(children: Children) -> tuple[int, int]:
    return children.partial, children.full


def _own_children(children: Children) -> tuple[int, int]:
    return children.own_partial, children.own_full


class _Pass:
    """One of the two fixpoints, with matches or without. ``levels`` has what differs from what is stored."""

    def __init__(
        self,
        view: View,
        stored: Callable[[Node], Level | None],
        covered: Callable[[Children], tuple[int, int]],
        *,
        with_matches: bool,
    ) -> None:
        self.levels: dict[str, Level] = {}
        self._view = view
        self._stored = stored
        self._covered = covered
        self._with_matches = with_matches
        # How many more children of a control are PARTIAL or FULL, and FULL, than is stored.
        self._more_partial: dict[str, int] = {}
        self._more_full: dict[str, int] = {}

    def level(self, control: str) -> Level:
        """How far a control is covered, as far as that is known by now."""
        level = self.levels.get(control)
        if level is None:
            node = self._view.node(control)
            level = (node and self._stored(node)) or NONE
        return level

    def settle(self, touched: Collection[str]) -> None:
        """Find the levels that follow. The touched controls have been read."""
        fallen = self._take_back(touched)
        self._derive({*touched, *fallen})

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

    # --- Take back

    def _take_back(self, touched: Iterable[str]) -> set[str]:
        """Let the touched controls fall, and all that may have rested on them. Returns what fell."""
        fallen: set[str] = set()
        falling = {control: was for control in touched if (was := self._fall(control)) is not None}
        while falling:
            fallen |= falling.keys()
            self._open(falling)
            following: dict[str, Level] = {}
            for control, was in falling.items():
                for dependent in self._resting_on(control, was):
                    fell_from = self._fall(dependent)
                    if fell_from is not None:
                        following[dependent] = fell_from
            falling = following
        return fallen

    def _fall(self, control: str) -> Level | None:
        """Let a control fall to what is stated of it, which rests on nothing else. Returns whence; null if it stays."""
        was, stated = self.level(control), self._stated(control)
        if was <= stated:
            return None
        self._put(control, stated)
        return was

    def _resting_on(self, control: str, was: Level) -> Iterable[str]:
        """The controls whose level may have rested on what a control has lost."""
        now = self.level(control)
        for match in self._view.ahead(control) if self._with_matches else ():
            # A FULL target rests on what may have made it FULL. What else makes it PARTIAL is of no account.
            if NONE < self.level(match.target) <= match.gives(was):
                yield match.target
        parent = self._parent(control)
        if parent is not None:
            level = self.level(parent)
            if (level == FULL and was == FULL) or (level == PARTIAL and now == NONE):
                yield parent

    # --- Derive again

    def _derive(self, candidates: Collection[str]) -> None:
        """Lift each candidate as far as follows from what stands around it, and all that rises by that."""
        candidates = [control for control in candidates if self._counts(control)]
        self._open(candidates)
        self._view.read_children(candidates)
        rising = {control for control in candidates if self._rise(control, self._judged(control))}
        while rising:
            self._open(rising)
            parents = {control: parent for control in rising if (parent := self._parent(control)) is not None}
            self._view.read_children(parents.values())
            following: set[str] = set()
            for control in rising:
                level = self.level(control)
                for match in self._view.ahead(control) if self._with_matches else ():
                    if self._rise(match.target, match.gives(level)):
                        following.add(match.target)
            for parent in parents.values():
                if self._rise(parent, self._rolled_up(parent)):
                    following.add(parent)
            rising = following

    def _rise(self, control: str, level: Level) -> bool:
        """Lift a control to a level; whether it was below."""
        if level <= self.level(control) or not self._counts(control):
            return False
        self._put(control, level)
        return True

    def _judged(self, control: str) -> Level:
        """What follows for a control from its statement, its matches and its children."""
        level = max(self._stated(control), self._rolled_up(control))
        if self._with_matches:
            found = (match.gives(self.level(match.source)) for match in self._view.behind(control))
            level = max(level, *found, NONE)
        return level

    def _rolled_up(self, control: str) -> Level:
        children = self._view.children(control)
        partial, full = self._covered(children)
        if children.number and full + self._more_full.get(control, 0) == children.number:
            return FULL
        return PARTIAL if partial + self._more_partial.get(control, 0) else NONE

    # --- The graph

    def _open(self, controls: Collection[str]) -> None:
        """Read all that controls rest on and that rests on them, but for their children."""
        if self._with_matches:
            self._view.read_matches(controls)
        self._view.read_parents(controls)

    def _put(self, control: str, level: Level) -> None:
        was = self.level(control)
        self.levels[control] = level
        parent = self._parent(control)
        if parent is not None and self._counts(control):
            self._more_partial[parent] = self._more_partial.get(parent, 0) + (level >= PARTIAL) - (was >= PARTIAL)
            self._more_full[parent] = self._more_full.get(parent, 0) + (level >= FULL) - (was >= FULL)

    def _parent(self, control: str) -> str | None:
        node = self._view.node(control)
        return node.parent if node else None

    def _counts(self, control: str) -> bool:
        node = self._view.node(control)
        return node is not None and node.counts

    def _stated(self, control: str) -> Level:
        node = self._view.node(control)
        return node.stated if node and node.counts else NONE
