"""What a control's own statement does for others, and what would lift the control."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from normata.coverage.engine import Level
from normata.coverage.graph import NO_CHILDREN, Children, Graph, GraphTooLarge, Node, View
from normata.coverage.incremental import update

NONE, PARTIAL, FULL = Level

_FOLLOWED = 300  # controls; what hangs on a statement is not followed any further


class Effect(NamedTuple):
    """What a statement does for another control: how far that is covered, and how far it would be without it."""

    control: str
    level: Level
    without: Level


class Lift(NamedTuple):
    """A control that is not covered, and would lift another.

    Were the first control of ``path`` as far covered as ``needs`` says, the last one would be ``gives``. From each of
    them a match leads to the next.
    """

    path: Sequence[str]
    needs: Level
    gives: Level


# --- What it does for others


class _Without:
    """A graph as it would be without what is stated of one control. It remembers how far each control is covered."""

    def __init__(self, graph: Graph, control: str) -> None:
        self.levels: dict[str, Level] = {}
        self._graph = graph
        self._control = control
        self._joined: str | None = None  # the parent that would have the control as a child again

    def nodes(self, controls: Collection[str]) -> Mapping[str, Node]:
        found = {**self._graph.nodes(controls)}
        self.levels.update((control, node.effective or NONE) for control, node in found.items())
        node = found.get(self._control)
        if node is not None:
            self._joined = node.parent if node.is_adopted and not node.is_applicable else None
            found[self._control] = node._replace(assessed=NONE, is_applicable=True)  # unsaid, it applies
        return found

    def matches(self, controls: Collection[str]) -> Iterable[tuple[str, str, Level]]:
        return self._graph.matches(controls)

    def children(self, controls: Collection[str]) -> Mapping[str, Children]:
        found = {**self._graph.children(controls)}
        if self._joined in controls and self._joined is not None:
            joined = found.get(self._joined, NO_CHILDREN)
            found[self._joined] = joined._replace(number=joined.number + 1)
        return found

    def below(self, controls: Collection[str]) -> Mapping[str, Sequence[str]]:
        found = {**self._graph.below(controls)}
        if self._joined in controls and self._joined is not None:
            found[self._joined] = [*found.get(self._joined, ()), self._control]
        return found

    def foremost(self, controls: Collection[str], most: int) -> Mapping[str, Sequence[str]]:
        return self._graph.foremost(controls, most)


def effects(graph: Graph, control: str) -> list[Effect] | None:
    """The other controls that would be less covered without what is stated of this one.

    Null where it takes a look at too many to tell.
    """
    without = _Without(graph, control)
    try:
        changes = update(without, reassessed=[control], most=_FOLLOWED)
    except GraphTooLarge:
        return None
    return [
        Effect(name, without.levels[name], found.computed.effective)
        for name, found in changes.items()
        if name != control and found is not None and found.computed.effective != without.levels[name]
    ]


# --- What would lift it


def lifts(view: View, control: str, most: int, deepest: int = 3) -> tuple[list[Lift], bool]:
    """What would lift a control that is below FULL, nearest first, and whether that is all.

    All are those that would lift it through matches alone. Lifts of up to ``deepest`` matches are looked for; where
    something has not been looked at, they may not be all. The control has been read. Among what is as near, what would
    make it FULL comes first.
    """
    node = view.node(control)
    if node is None or not node.counts or node.effective == FULL:
        return [], True
    wanted = [FULL] if node.effective == PARTIAL else [FULL, PARTIAL]
    frontier = [Lift((control,), level, level) for level in wanted]
    found: dict[str, Lift] = {}
    seen: set[tuple[str, Level, Level]] = set()  # a control may have more before it where less is needed of it
    for _ in range(deepest):
        try:
            view.read_matches({lift.path[0] for lift in frontier})
        except GraphTooLarge:
            break
        following: list[Lift] = []
        for lift in frontier:
            for nearer in _before(view, lift):
                source = nearer.path[0]
                if source != control and (source, nearer.needs, nearer.gives) not in seen:
                    seen.add((source, nearer.needs, nearer.gives))
                    found.setdefault(source, nearer)
                    following.append(nearer)
        frontier = following
        if len(found) > most:
            break
    # A stable sort: what is as near and gives as much stays in the order in which it was found.
    ordered = sorted(found.values(), key=lambda lift: (len(lift.path), -lift.gives))
    return ordered[:most], not frontier and len(ordered) <= most


def _before(view: View, lift: Lift) -> Iterator[Lift]:
    """What would lift the first control of a lift: the sources of its matches, as far as they are not covered."""
    for match in sorted(view.behind(lift.path[0]), key=lambda match: (-match.level, match.source)):
        node = view.node(match.source)
        if node is None or not node.counts:
            continue
        level = node.effective or NONE
        path = (match.source, *lift.path)
        if lift.needs == FULL:
            if match.level == FULL and level < FULL:
                yield Lift(path, FULL, lift.gives)
        elif match.within and level < PARTIAL:
            yield Lift(path, PARTIAL, lift.gives)
        elif level < FULL:
            yield Lift(path, FULL, lift.gives)
