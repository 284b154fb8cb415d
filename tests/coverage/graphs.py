"""A small world of coverage in memory: it changes, keeps what is stored, and answers as the database does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from normata.coverage.engine import Computed, Level, Place, compute, compute_ranked
from normata.coverage.graph import UNRANKED, Below, Node
from normata.coverage.incremental import Ranked

NONE, PARTIAL, FULL = Level


@dataclass
class MemoryGraph:
    """One organization: frameworks with controls, which of them are adopted, matches, statements, stored coverage."""

    frameworks: dict[str, str]  # of each control
    parents: dict[str, str | None]
    groups: set[str]
    adopted: set[str]
    relations: dict[str, tuple[str, str, Level]] = field(default_factory=dict)
    assessed: dict[str, Level] = field(default_factory=dict)
    not_applicable: set[str] = field(default_factory=set)
    stored: dict[str, Computed] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)  # the controls that were asked for

    def afresh(self) -> dict[str, Computed]:
        """What follows, from scratch."""
        return compute(self.places, self.relations.values(), self.assessed, self.not_applicable)

    def recompute(self) -> None:
        """Store what follows, from scratch."""
        self.stored, self.ranks = compute_ranked(
            self.places, self.relations.values(), self.assessed, self.not_applicable
        )

    @property
    def places(self) -> dict[str, Place]:
        """Where each control of an adopted framework is."""
        return {
            control: Place(self.parents[control], control in self.groups)
            for control, name in self.frameworks.items()
            if name in self.adopted
        }

    def ancestors(self, control: str) -> list[str]:
        """What is above a control, nearest first."""
        found: list[str] = []
        parent = self.parents[control]
        while parent is not None and parent not in found:
            found.append(parent)
            parent = self.parents.get(parent)
        return found

    def store(self, changes: Mapping[str, Ranked | None]) -> None:
        """Take over what an update says."""
        for control, found in changes.items():
            if found is None:
                self.stored.pop(control, None)
                self.ranks.pop(control, None)
            else:
                stored = self.stored.get(control), self.ranks.get(control, 0)
                assert stored != (found.computed, found.rank), "it is stored already"
                self.stored[control], self.ranks[control] = found.computed, found.rank

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
        below = self.below([control]).get(control, ())
        if level == FULL:
            return any(target == control and lower(source, FULL) for source, target in whole) or (
                below != () and all(lower(one, FULL) for one in below)
            )
        return any(lower(one, PARTIAL) for one in below) or any(
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

    def above(self, controls: Collection[str]) -> Mapping[str, list[str]]:
        """See :class:`normata.coverage.graph.Graph`."""
        return {
            control: [one for one in self.ancestors(control) if one in self.groups]
            for control in controls
            if control in self.parents
        }

    def counts(self, groups: Collection[str]) -> Mapping[str, Below]:
        """See :class:`normata.coverage.graph.Graph`."""
        found = {}
        for group, names in self.below(groups).items():
            stored = [self.stored.get(name, Computed.of(NONE, NONE)) for name in names]
            found[group] = Below(
                len(stored),
                sum(one.effective >= PARTIAL for one in stored),
                sum(one.effective >= FULL for one in stored),
                sum(one.own >= PARTIAL for one in stored),
                sum(one.own >= FULL for one in stored),
                max((self._rank(name) for name in names if self._level(name) == FULL), default=0),
            )
        return found

    def below(self, groups: Collection[str]) -> Mapping[str, list[str]]:
        """See :class:`normata.coverage.graph.Graph`."""
        found: dict[str, list[str]] = {}
        for control in self.parents:
            if control not in self.groups and control not in self.not_applicable:
                for group in self.ancestors(control):
                    if group in groups and group in self.groups:
                        found.setdefault(group, []).append(control)
        return found

    def foremost(self, groups: Collection[str], most: int) -> Mapping[str, list[str]]:
        """See :class:`normata.coverage.graph.Graph`."""
        return {
            group: sorted(names, key=lambda name: (-self._level(name), self.ranks.get(name, 0)))[:most]
            for group, names in self.below(groups).items()
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
            control in self.groups,
            is_adopted=self.frameworks[control] in self.adopted,
            is_applicable=applies,
            assessed=self.assessed.get(control, NONE) if applies else NONE,
            effective=stored and stored.effective,
            own=stored and stored.own,
            rank=self.ranks.get(control, 0) if stored else None,
        )
