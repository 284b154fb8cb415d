"""A small world of coverage in memory: it changes, keeps what is stored, and answers as the database does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from normata.coverage.engine import Computed, Level, compute, compute_ranked
from normata.coverage.graph import UNRANKED, Children, Node
from normata.coverage.incremental import Ranked

NONE, PARTIAL, FULL = Level


@dataclass
class MemoryGraph:
    """One organization: frameworks with controls, which of them are adopted, matches, statements, stored coverage."""

    frameworks: dict[str, str]  # of each control
    parents: dict[str, str | None]
    adopted: set[str]
    relations: dict[str, tuple[str, str, Level]] = field(default_factory=dict)
    assessed: dict[str, Level] = field(default_factory=dict)
    not_applicable: set[str] = field(default_factory=set)
    stored: dict[str, Computed] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)  # the controls that were asked for

    def afresh(self) -> dict[str, Computed]:
        """What follows, from scratch."""
        parents = {control: self.parents[control] for control, name in self.frameworks.items() if name in self.adopted}
        return compute(parents, self.relations.values(), self.assessed, self.not_applicable)

    def recompute(self) -> None:
        """Store what follows, from scratch."""
        parents = {control: self.parents[control] for control, name in self.frameworks.items() if name in self.adopted}
        self.stored, self.ranks = compute_ranked(parents, self.relations.values(), self.assessed, self.not_applicable)

    def store(self, changes: Mapping[str, Ranked | None]) -> None:
        """Take over what an update says."""
        for control, found in changes.items():
            if found is None:
                self.stored.pop(control, None)
                self.ranks.pop(control, None)
            else:
                assert (self.stored.get(control), self.ranks.get(control, 0)) != found, "it is stored already"
                self.stored[control], self.ranks[control] = found

    def rests_on_lower_ranks(self, control: str) -> bool:
        """Whether a rule gives a covered control its level from what has a lower rank: the meaning of ranks."""
        level, rank = self.stored[control].effective, self.ranks[control]
        if self.assessed.get(control, NONE) >= level:
            return True

        def lower(other: str, needed: Level) -> bool:
            if other not in self.stored or other in self.not_applicable or self.stored[other].effective < needed:
                return False
            return self.stored[other].effective > level or self.ranks[other] < rank

        whole = {(source, target) for source, target, how in self.relations.values() if how == FULL}
        children = [
            child for child, above in self.parents.items() if above == control and child not in self.not_applicable
        ]
        if level == FULL:
            return any(target == control and lower(source, FULL) for source, target in whole) or (
                children != [] and all(lower(child, FULL) for child in children)
            )
        return any(lower(child, PARTIAL) for child in children) or any(
            target == control and (lower(source, FULL) or ((target, source) in whole and lower(source, PARTIAL)))
            for source, target, _ in self.relations.values()
        )

    # --- What the graph answers

    def nodes(self, controls: Collection[str]) -> Mapping[str, Node]:
        """See :class:`normata.coverage.graph.Graph`."""
        self.read.update(controls)
        return {control: self._node(control) for control in controls if control in self.frameworks}

    def matches(self, controls: Collection[str]) -> list[tuple[str, str, Level]]:
        """See :class:`normata.coverage.graph.Graph`."""
        return [match for match in self.relations.values() if match[0] in controls or match[1] in controls]

    def children(self, controls: Collection[str]) -> Mapping[str, Children]:
        """See :class:`normata.coverage.graph.Graph`."""
        found = {}
        for parent in controls:
            names = self.below([parent]).get(parent, [])
            stored = [self.stored.get(child, Computed.of(NONE, NONE)) for child in names]
            if stored:
                found[parent] = Children(
                    len(stored),
                    sum(one.effective >= PARTIAL for one in stored),
                    sum(one.effective >= FULL for one in stored),
                    sum(one.own >= PARTIAL for one in stored),
                    sum(one.own >= FULL for one in stored),
                    max((self._rank(child) for child in names if self._level(child) == FULL), default=0),
                )
        return found

    def below(self, controls: Collection[str]) -> Mapping[str, list[str]]:
        """See :class:`normata.coverage.graph.Graph`."""
        found: dict[str, list[str]] = {}
        for child, parent in self.parents.items():
            if parent in controls and parent is not None and child not in self.not_applicable:
                found.setdefault(parent, []).append(child)
        return found

    def foremost(self, controls: Collection[str], most: int) -> Mapping[str, list[str]]:
        """See :class:`normata.coverage.graph.Graph`."""
        return {
            parent: sorted(children, key=lambda child: (-self._level(child), self.ranks.get(child, 0)))[:most]
            for parent, children in self.below(controls).items()
        }

    def _level(self, control: str) -> Level:
        return self.stored[control].effective if control in self.stored else NONE

    def _rank(self, control: str) -> int:
        rank = self.ranks.get(control, 0)
        return rank if rank or self.assessed.get(control) == FULL else UNRANKED

    def _node(self, control: str) -> Node:
        applies = control not in self.not_applicable
        stored = self.stored.get(control)
        return Node(
            self.parents[control],
            is_adopted=self.frameworks[control] in self.adopted,
            is_applicable=applies,
            assessed=self.assessed.get(control, NONE) if applies else NONE,
            effective=stored and stored.effective,
            own=stored and stored.own,
            rank=self.ranks.get(control, 0) if stored else None,
        )
