"""The effects of a control's own assessment on others, and the controls that would lift it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from normata.coverage.engine import Level
from normata.coverage.graph import NOTHING_BELOW, Below, Graph, GraphTooLarge, Node, View
from normata.coverage.incremental import update

NONE, PARTIAL, FULL = Level

MOST_FOLLOWED = 300  # controls; further effects of an assessment are not followed


class Effect(NamedTuple):
    """The effect of an assessment on another control: its level, and its level without the assessment."""

    control: str
    level: Level
    without: Level


class Lift(NamedTuple):
    """A control that is not covered, and would lift another.

    If the first control of ``path`` had the level ``needs``, the last one would have ``gives``. From each of them a
    match leads to the next.
    """

    path: Sequence[str]
    needs: Level
    gives: Level


# --- Effects on others


class Without:
    """A graph without the assessment of one control. It caches the level of each control.

    ``applies`` has the controls that would begin or stop to apply.
    """

    def __init__(self, graph: Graph, control: str, applies: Mapping[str, bool]) -> None:
        self.levels: dict[str, Level] = {}
        self._graph = graph
        self._control = control
        self._applies = applies
        nodes = graph.nodes(applies.keys())
        above = graph.above(applies.keys())
        # By group, the requirements that would begin or cease to count.
        self._joining: defaultdict[str, list[str]] = defaultdict(list)
        self._leaving: defaultdict[str, list[Node]] = defaultdict(list)
        for name in sorted(nodes.keys()):
            for group in () if nodes[name].is_group else above.get(name, ()):
                if applies[name]:
                    self._joining[group].append(name)
                else:
                    self._leaving[group].append(nodes[name])

    def nodes(self, controls: Collection[str]) -> Mapping[str, Node]:
        found = {**self._graph.nodes(controls)}
        self.levels.update((control, node.effective or NONE) for control, node in found.items())
        for control in found.keys() & self._applies.keys():
            found[control] = found[control]._replace(is_applicable=self._applies[control])
        if self._control in found:
            found[self._control] = found[self._control]._replace(assessed=NONE)
        return found

    def matches(self, controls: Collection[str]) -> Iterable[tuple[str, str, Level]]:
        return self._graph.matches(controls)

    def above(self, controls: Collection[str]) -> Mapping[str, Sequence[str]]:
        return self._graph.above(controls)

    def counts(self, groups: Collection[str]) -> Mapping[str, Below]:
        found = {**self._graph.counts(groups)}
        for group in groups:
            leaving, joining = self._leaving.get(group, ()), self._joining.get(group, ())
            if leaving or joining:
                counts = found.get(group, NOTHING_BELOW)
                found[group] = counts._replace(
                    number=counts.number + len(joining) - len(leaving),
                    partial=counts.partial - sum((node.effective or NONE) >= PARTIAL for node in leaving),
                    full=counts.full - sum(node.effective == FULL for node in leaving),
                    own_partial=counts.own_partial - sum((node.own or NONE) >= PARTIAL for node in leaving),
                    own_full=counts.own_full - sum(node.own == FULL for node in leaving),
                )
        return found

    def below(self, groups: Collection[str]) -> Mapping[str, Sequence[str]]:
        found = self._graph.below(groups)
        return {
            group: [
                one for one in (*found.get(group, ()), *self._joining.get(group, ())) if self._applies.get(one, True)
            ]
            for group in groups
        }

    def foremost(self, groups: Collection[str], most: int) -> Mapping[str, Sequence[str]]:
        return self._graph.foremost(groups, most)


def effects(graph: Graph, control: str, applies: Mapping[str, bool] | None) -> list[Effect] | None:
    """The other controls that would be less covered without the assessment of this one.

    ``applies`` has those that would begin or stop to apply without it, null if they are too many to follow. Returns
    null if too many controls would have to be read.
    """
    if applies is None:
        return None
    try:
        without = Without(graph, control, applies)
        changes = update(View(without, MOST_FOLLOWED), reassessed=[control], moved=applies.keys())
    except GraphTooLarge:
        return None
    return [
        Effect(name, without.levels[name], found.computed.effective)
        for name, found in changes.items()
        if name != control and found is not None and found.computed.effective != without.levels[name]
    ]


# --- What would lift it


def lifts(view: View, control: str, most: int, deepest: int = 3) -> tuple[list[Lift], bool]:
    """The controls that would lift a control below FULL, nearest first, and whether these are all.

    "All" means all that would lift it through matches alone. Lifts through up to ``deepest`` matches are searched; if
    the search was limited, they may not be all. The control has been read. Of equally near controls, those that would
    make it FULL come first.
    """
    node = view.node(control)
    if node is None or not node.counts or node.effective == FULL:
        return [], True
    wanted = [FULL] if node.effective == PARTIAL else [FULL, PARTIAL]
    frontier = [Lift((control,), level, level) for level in wanted]
    found: dict[str, Lift] = {}
    seen: set[tuple[str, Level, Level]] = set()  # the same control may be followed again if a lower level is sufficient
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
    # A stable sort, so that equal lifts stay in the order in which they were found.
    ordered = sorted(found.values(), key=lambda lift: (len(lift.path), -lift.gives))
    return ordered[:most], not frontier and len(ordered) <= most


def _before(view: View, lift: Lift) -> Iterator[Lift]:
    """The controls that would lift the first control of a lift: the sources of its matches that are not covered."""
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
