"""The graph from which coverage follows, read in small parts: controls, matches, and counts below groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

from normata.coverage.engine import Level

T = TypeVar("T")

Conflict = Literal["MATCHES", "BELOW"]


class Node(NamedTuple):
    """A control, as it is now and with the coverage that is stored for it.

    ``is_group`` is true for a category and for a decomposed control. ``counts`` is true if its framework is adopted and
    it applies; only then can it be covered. ``assessed`` is NONE if it does not apply, or if ``is_assessed`` is false.
    ``effective``, ``own``, ``rank`` and ``conflict`` are the stored ones, or null.
    """

    is_group: bool
    is_adopted: bool
    is_applicable: bool
    assessed: Level
    effective: Level | None
    own: Level | None
    rank: int | None
    is_assessed: bool = False
    conflict: Conflict | None = None

    @property
    def counts(self) -> bool:
        return self.is_adopted and self.is_applicable


UNRANKED = 2**31 - 1  # higher than any rank


class Below(NamedTuple):
    """The numbers of applicable requirements below a group: all, those stored as PARTIAL or FULL, and as FULL.

    ``highest`` is the highest rank of those that are FULL. It is UNRANKED where one of them has rank 0 and is not
    assessed FULL: a version without ranks has written it.
    """

    number: int
    partial: int
    full: int
    own_partial: int
    own_full: int
    highest: int = 0


NOTHING_BELOW = Below(0, 0, 0, 0, 0)


class Graph(Protocol):
    """The graph of one organization. Each call returns the data of many controls."""

    def nodes(self, controls: Collection[str]) -> Mapping[str, Node]:
        """The nodes of these controls, if they exist."""

    def matches(self, controls: Collection[str]) -> Iterable[tuple[str, str, Level]]:
        """The source, target and level of every match that leads to or from one of these controls.

        A match may come twice. It may lead to or from a control that is not adopted, or that does not apply.
        """

    def above(self, controls: Collection[str]) -> Mapping[str, Sequence[str]]:
        """The groups above each of these controls that has any, whether they apply or not."""

    def counts(self, groups: Collection[str]) -> Mapping[str, Below]:
        """The counts of applicable requirements below each of these groups that has any."""

    def below(self, groups: Collection[str]) -> Mapping[str, Sequence[str]]:
        """The applicable requirements below each of these groups that has any, in catalog order."""

    def foremost(self, groups: Collection[str], most: int) -> Mapping[str, Sequence[str]]:
        """The first ``most`` applicable requirements below each of these groups that has any.

        Those that are stored as FULL come first, then those that are PARTIAL, each by their ranks and in catalog order.
        """


class GraphTooLarge(Exception):
    """A change or an explanation touches more controls than it may read."""


class Ahead(NamedTuple):
    """A match that leads from a control to ``target``. ``within`` is true if the control lies within the target."""

    target: str
    level: Level
    within: bool

    def gives(self, source: Level) -> Level:
        """The level that it gives its target if its source has this level."""
        return _gives(source, self.level, within=self.within)


class Behind(NamedTuple):
    """A match that leads from ``source`` to a control. ``within`` is true if the source lies within the control."""

    source: str
    level: Level
    within: bool

    def gives(self, source: Level) -> Level:
        """The level that it gives its target if its source has this level."""
        return _gives(source, self.level, within=self.within)


def _gives(source: Level, level: Level, *, within: bool) -> Level:
    if source == Level.FULL:
        return level
    return Level.PARTIAL if source == Level.PARTIAL and within else Level.NONE


class View:
    """The part of a graph that has been read so far. It reads nothing twice, and no more than ``most`` controls.

    A read that would exceed the limit reads nothing, so that what was read before can be used after GraphTooLarge, too.
    Of the requirements below a group the first ``foremost`` are read unless all are requested. Nothing is below a
    control that is not a group.
    """

    def __init__(self, graph: Graph, most: int, foremost: int = 10) -> None:
        self._graph = graph
        self._most = most
        self._most_foremost = foremost
        self._nodes: dict[str, Node | None] = {}
        self._ahead: dict[str, list[Ahead]] = {}
        self._behind: dict[str, list[Behind]] = {}
        self._above: dict[str, Sequence[str]] = {}
        self._counts: dict[str, Below] = {}
        self._below: dict[str, Sequence[str]] = {}
        self._foremost: dict[str, Sequence[str]] = {}

    def node(self, control: str) -> Node | None:
        """A control that has been read; null if it does not exist."""
        return self._nodes[control]

    def ahead(self, control: str) -> list[Ahead]:
        """The matches from a control whose matches have been read, the strongest of each target."""
        return self._ahead[control]

    def behind(self, control: str) -> list[Behind]:
        """The matches to a control whose matches have been read, the strongest of each source."""
        return self._behind[control]

    def above(self, control: str) -> Sequence[str]:
        """The groups above a control; they have been read."""
        return self._above[control]

    def counts_for(self, control: str) -> Sequence[str]:
        """The groups that a control counts for: those above a requirement."""
        node = self._nodes[control]
        return () if node is None or node.is_group else self._above[control]

    def counts(self, control: str) -> Below:
        """The counts below a control; they have been read."""
        return self._counts[control]

    def below(self, control: str) -> Sequence[str]:
        """The applicable requirements below a control; they have been read."""
        return self._below[control]

    def foremost(self, control: str) -> Sequence[str]:
        """The first requirements below a control; they have been read. See :meth:`Graph.foremost`."""
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

    def read_above(self, controls: Iterable[str]) -> None:
        """Read the groups above controls. Raises GraphTooLarge."""
        missing = {control for control in controls if control not in self._above}
        if missing:
            found = self._graph.above(missing)
            self.read({group for groups in found.values() for group in groups})
            self._above.update({control: found.get(control, ()) for control in missing})

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

    def read_counts(self, controls: Iterable[str]) -> None:
        """Read the counts of requirements below controls that have been read."""
        self._read_below_groups(controls, self._counts, self._graph.counts, NOTHING_BELOW)

    def read_below(self, controls: Iterable[str]) -> None:
        """Read the applicable requirements below controls that have been read. Raises GraphTooLarge."""

        def below(groups: Collection[str]) -> Mapping[str, Sequence[str]]:
            found = self._graph.below(groups)
            self.read({control for controls in found.values() for control in controls})
            return found

        self._read_below_groups(controls, self._below, below, ())

    def read_foremost(self, controls: Iterable[str]) -> None:
        """Read the counts of requirements below controls, and the first requirements. Raises GraphTooLarge."""

        def foremost(groups: Collection[str]) -> Mapping[str, Sequence[str]]:
            self.read_counts(groups)
            covered = {group for group in groups if self._counts[group].partial}
            found = self._graph.foremost(covered, self._most_foremost) if covered else {}
            self.read({control for controls in found.values() for control in controls})
            return found

        controls = list(controls)
        self.read_counts(controls)
        self._read_below_groups(controls, self._foremost, foremost, ())

    def _read_below_groups(
        self,
        controls: Iterable[str],
        known: dict[str, T],
        read: Callable[[Collection[str]], Mapping[str, T]],
        nothing: T,
    ) -> None:
        missing = {control for control in controls if control not in known}
        groups = {control for control in missing if (node := self._nodes[control]) and node.is_group}
        found = read(groups) if groups else {}
        known.update({control: found.get(control, nothing) for control in missing})
