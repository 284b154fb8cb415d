"""What coverage follows from, read a little at a time: controls, their matches, and their children in numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from normata.coverage.engine import Level


class Node(NamedTuple):
    """A control, as it is now and with the coverage that is stored for it.

    ``counts`` tells that it is of an adopted framework and applies; only then can it be covered at all. ``assessed`` is
    NONE where it does not apply. ``effective``, ``own`` and ``rank`` are what is stored, null where nothing is.
    """

    parent: str | None
    is_adopted: bool
    is_applicable: bool
    assessed: Level
    effective: Level | None
    own: Level | None
    rank: int | None

    @property
    def counts(self) -> bool:
        return self.is_adopted and self.is_applicable


UNRANKED = 2**31 - 1  # above every rank


class Children(NamedTuple):
    """How many applicable children a control has, and how many of them are stored as PARTIAL or FULL, and as FULL.

    ``highest`` is the highest rank of those that are FULL. It is UNRANKED where one of them has rank 0 and is not
    stated FULL: a version without ranks has written it.
    """

    number: int
    partial: int
    full: int
    own_partial: int
    own_full: int
    highest: int = 0


NO_CHILDREN = Children(0, 0, 0, 0, 0)


class Graph(Protocol):
    """The graph of one organization. Each call is answered for many controls at once."""

    def nodes(self, controls: Collection[str]) -> Mapping[str, Node]:
        """These controls, as far as they exist."""

    def matches(self, controls: Collection[str]) -> Iterable[tuple[str, str, Level]]:
        """The source, target and level of every match that leads to or from one of these controls.

        A match may come twice. It may lead to or from a control that is not adopted, or that does not apply.
        """

    def children(self, controls: Collection[str]) -> Mapping[str, Children]:
        """The applicable children of those of these controls that have any, in numbers."""

    def below(self, controls: Collection[str]) -> Mapping[str, Sequence[str]]:
        """The applicable children of those of these controls that have any, in catalog order."""

    def foremost(self, controls: Collection[str], most: int) -> Mapping[str, Sequence[str]]:
        """The first ``most`` applicable children of those of these controls that have any.

        Those that are stored as FULL come first, then those that are PARTIAL, each by their ranks and in catalog order.
        """


class GraphTooLarge(Exception):
    """A change, or a question, touches more controls than it may look at."""


class Ahead(NamedTuple):
    """A match that leads from a control to ``target``. ``within`` tells that the control lies within the target."""

    target: str
    level: Level
    within: bool

    def gives(self, source: Level) -> Level:
        """What it makes of its target, where its source is this far covered."""
        return _gives(source, self.level, within=self.within)


class Behind(NamedTuple):
    """A match that leads from ``source`` to a control. ``within`` tells that the source lies within the control."""

    source: str
    level: Level
    within: bool

    def gives(self, source: Level) -> Level:
        """What it makes of its target, where its source is this far covered."""
        return _gives(source, self.level, within=self.within)


def _gives(source: Level, level: Level, *, within: bool) -> Level:
    if source == Level.FULL:
        return level
    return Level.PARTIAL if source == Level.PARTIAL and within else Level.NONE


class View:
    """What has been read of a graph so far. It reads nothing twice, and no more than ``most`` controls.

    What does not fit is not read at all, so that whatever has been read can be asked for after GraphTooLarge, too. Of
    the children of a control ``foremost`` are read where not all are asked for.
    """

    def __init__(self, graph: Graph, most: int, foremost: int = 10) -> None:
        self._graph = graph
        self._most = most
        self._most_foremost = foremost
        self._nodes: dict[str, Node | None] = {}
        self._ahead: dict[str, list[Ahead]] = {}
        self._behind: dict[str, list[Behind]] = {}
        self._children: dict[str, Children] = {}
        self._below: dict[str, Sequence[str]] = {}
        self._foremost: dict[str, Sequence[str]] = {}

    def node(self, control: str) -> Node | None:
        """A control that has been read; null where it does not exist."""
        return self._nodes[control]

    def ahead(self, control: str) -> list[Ahead]:
        """The matches from a control whose matches have been read, the strongest of each target."""
        return self._ahead[control]

    def behind(self, control: str) -> list[Behind]:
        """The matches to a control whose matches have been read, the strongest of each source."""
        return self._behind[control]

    def children(self, control: str) -> Children:
        """The children of a control that have been read."""
        return self._children[control]

    def below(self, control: str) -> Sequence[str]:
        """The applicable children of a control below which has been read."""
        return self._below[control]

    def foremost(self, control: str) -> Sequence[str]:
        """The first applicable children of a control of which they have been read; see :meth:`Graph.foremost`."""
        return self._foremost[control]

    def read(self, controls: Iterable[str]) -> None:
        """Read these controls. Raises GraphTooLarge."""
        missing = {control for control in controls if control not in self._nodes}
        if not missing:
            return
        if len(self._nodes) + len(missing) > self._most:
            raise GraphTooLarge
        found = self._graph.nodes(missing)
        self._nodes.update({control: found.get(control) for control in missing})

    def read_parents(self, controls: Iterable[str]) -> None:
        """Read the parents of controls that have been read. Raises GraphTooLarge."""
        self.read({node.parent for control in controls if (node := self._nodes[control]) and node.parent})

    def read_matches(self, controls: Iterable[str]) -> None:
        """Read the matches of controls, and the controls at their other ends. Raises GraphTooLarge."""
        missing = {control for control in controls if control not in self._ahead}
        if not missing:
            return
        levels: dict[tuple[str, str], Level] = {}
        for source, target, level in self._graph.matches(missing):
            if level > levels.get((source, target), Level.NONE):
                levels[source, target] = level
        all_ahead: dict[str, list[Ahead]] = {control: [] for control in missing}
        all_behind: dict[str, list[Behind]] = {control: [] for control in missing}
        ends: set[str] = set()
        for (source, target), level in levels.items():
            within = levels.get((target, source)) == Level.FULL
            if source in missing:
                all_ahead[source].append(Ahead(target, level, within))
                ends.add(target)
            if target in missing:
                all_behind[target].append(Behind(source, level, within))
                ends.add(source)
        self.read(ends)
        self._ahead.update(all_ahead)
        self._behind.update(all_behind)

    def read_children(self, controls: Iterable[str]) -> None:
        """Read how many children controls have, and how many of them are covered."""
        missing = {control for control in controls if control not in self._children}
        if missing:
            found = self._graph.children(missing)
            self._children.update({control: found.get(control, NO_CHILDREN) for control in missing})

    def read_below(self, controls: Iterable[str]) -> None:
        """Read the applicable children of controls. Raises GraphTooLarge."""
        missing = {control for control in controls if control not in self._below}
        if missing:
            found = self._graph.below(missing)
            self.read({child for children in found.values() for child in children})
            self._below.update({control: found.get(control, ()) for control in missing})

    def read_foremost(self, controls: Iterable[str]) -> None:
        """Read the children of controls in numbers, and the first of them by themselves. Raises GraphTooLarge."""
        missing = {control for control in controls if control not in self._foremost}
        self.read_children(missing)
        parents = {control for control in missing if self._children[control].partial}
        found = self._graph.foremost(parents, self._most_foremost) if parents else {}
        self.read({child for children in found.values() for child in children})
        self._foremost.update({control: found.get(control, ()) for control in missing})
