"""A small world of coverage in memory: it changes, keeps what is stored, and answers as the database does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from normata.frameworks.coverage.engine import Computed, Level, compute
from normata.frameworks.coverage.graph import Children, Node

NONE, PARTIAL, FULL = Level


@dataclass
class MemoryGraph:
    """One organization: frameworks with controls, which of them are adopted, matches, statements, stored coverage."""

    frameworks: dict[str, str]  # of each control
    parents: dict[str, str | None]
    adopted: set[str]
    relations: dict[str, tuple[str, str, Level]] = field(default_factory=dict)
    statements: dict[str, Level] = field(default_factory=dict)
    not_applicable: set[str] = field(default_factory=set)
    stored: dict[str, Computed] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)  # the controls that were asked for

    def afresh(self) -> dict[str, Computed]:
        """What follows, from scratch."""
        parents = {control: self.parents[control] for control, name in self.frameworks.items() if name in self.adopted}
        return compute(parents, self.relations.values(), self.statements, self.not_applicable)

    def store(self, changes: Mapping[str, Computed | None]) -> None:
        """Take over what an update says."""
        for control, computed in changes.items():
            if computed is None:
                self.stored.pop(control, None)
            else:
                assert self.stored.get(control) != computed, "it is stored already"
                self.stored[control] = computed

    # --- What the graph answers

    def nodes(self, controls: Collection[str]) -> Mapping[str, Node]:
        """See :class:`normata.frameworks.coverage.graph.Graph`."""
        self.read.update(controls)
        return {control: self._node(control) for control in controls if control in self.frameworks}

    def matches(self, controls: Collection[str]) -> list[tuple[str, str, Level]]:
        """See :class:`normata.frameworks.coverage.graph.Graph`."""
        return [match for match in self.relations.values() if match[0] in controls or match[1] in controls]

    def children(self, controls: Collection[str]) -> Mapping[str, Children]:
        """See :class:`normata.frameworks.coverage.graph.Graph`."""
        found = {}
        for parent in controls:
            stored = [
                self.stored.get(child, Computed.of(NONE, NONE))
                for child, above in self.parents.items()
                if above == parent and child not in self.not_applicable
            ]
            if stored:
                found[parent] = Children(
                    len(stored),
                    sum(one.effective >= PARTIAL for one in stored),
                    sum(one.effective >= FULL for one in stored),
                    sum(one.own >= PARTIAL for one in stored),
                    sum(one.own >= FULL for one in stored),
                )
        return found

    def _node(self, control: str) -> Node:
        applies = control not in self.not_applicable
        stored = self.stored.get(control)
        return Node(
            self.parents[control],
            is_adopted=self.frameworks[control] in self.adopted,
            is_applicable=applies,
            stated=self.statements.get(control, NONE) if applies else NONE,
            effective=stored and stored.effective,
            own=stored and stored.own,
        )
