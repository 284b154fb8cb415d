"""A plan: which requirements to assess FULL, one after the other, so that each step closes as many gaps as it can.

It is greedy, and exact: each step is the best one of all, by what would follow from it once those before it are done.
What a step gains can grow by another one: a group becomes FULL, and a match from it counts, only with the last
requirement below it. So what a step gained before is no bound of what it gains now, and "lazy" greedy algorithms, which
take it for one, would be wrong here. What a trial has found is used again only where nothing that it depends on has
changed since:

- the controls that it raises. Levels only rise, so what was covered enough for a trial to leave it alone stays so;
- how many requirements below a group are not FULL yet, for the groups above what the trial makes FULL, where these have
  become as few as the trial makes FULL of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple, TypeAlias

from normata.coverage.engine import Level
from normata.coverage.graph import GraphTooLarge, View

NONE, PARTIAL, FULL = Level

_MOST_WORK = 5_000_000  # matches and groups that one plan may read; takes some seconds

Order: TypeAlias = Mapping[str, tuple[int | str, ...]]


class Step(NamedTuple):
    """A control that is assessed FULL, and what follows.

    ``closed`` has the requirements that become FULL, with the level that each has before; ``improved`` those that
    become PARTIAL.
    """

    control: str
    closed: Mapping[str, Level]
    improved: Sequence[str]


def plan(
    view: View, gaps: Collection[str], most: int, order: Callable[[Collection[str]], Order]
) -> tuple[list[Step], bool]:
    """The first ``most`` steps that close ``gaps``: requirements below FULL. And whether the plan was made to its end.

    Each step closes a gap at least. It closes the most gaps that one assessment can; among such steps the most
    requirements of all frameworks; then it lifts the most gaps to PARTIAL; then the most of all; then it is one that is
    PARTIAL already. ``order`` decides what remains: by control, and no two alike. Where it would take a look at too
    much, the steps are the first ones, as many as were found.
    """
    steps: list[Step] = []
    try:
        found = _Plan(view, gaps, order)
        while len(steps) < most and (step := found.next_step()) is not None:
            steps.append(step)
    except GraphTooLarge:
        return steps, False
    return steps, True


class _Trial(NamedTuple):
    """What would follow if a control were assessed FULL.

    ``counted`` has the number of requirements that would become FULL below each group above one of them.
    """

    full: Collection[str]
    partial: Collection[str]
    counted: Mapping[str, int]


class _Plan:
    """The levels as they are once the steps so far are done, and what each candidate would do next."""

    def __init__(self, view: View, gaps: Collection[str], order: Callable[[Collection[str]], Order]) -> None:
        self._view = view
        self._gaps = frozenset(gaps)
        self._raised: dict[str, Level] = {}
        self._more_full: defaultdict[str, int] = defaultdict(int)  # below each group, after the steps so far
        self._work = 0
        self._numbers = count()
        self._trials: dict[str, _Trial] = {}  # by candidate
        self._dependent: defaultdict[str, set[str]] = defaultdict(set)  # by control, those whose trials raise it
        self._counting: defaultdict[str, set[str]] = defaultdict(set)  # those whose trials make parts of a group FULL
        self._best: list[tuple[tuple[int | bool, ...], tuple[int | str, ...], int, str, _Trial]] = []
        candidates = _candidates(view, gaps)
        _read_ahead(view, candidates)
        self._order = order(candidates)
        for candidate in candidates:
            self._attempt(candidate)

    def next_step(self) -> Step | None:
        """Take the best step. Null where no gap is left."""
        while self._best:
            *_, control, trial = heappop(self._best)
            if self._trials.get(control) is trial:
                break
        else:
            return None
        if self._gaps.isdisjoint(trial.full):
            return None
        step = Step(
            control,
            {one: self._level(one) for one in trial.full if self._is_requirement(one)},
            [one for one in trial.partial if self._is_requirement(one)],
        )
        self._take(trial)
        return step

    def _take(self, trial: _Trial) -> None:
        """Have what a trial has found follow, and attempt again what depends on that."""
        self._raised.update(dict.fromkeys(trial.partial, PARTIAL))
        self._raised.update(dict.fromkeys(trial.full, FULL))
        doubtful: set[str] = set()
        for control in (*trial.full, *trial.partial):
            doubtful |= self._dependent.pop(control, set())
        for group, more in trial.counted.items():
            self._more_full[group] += more
            lacking = self._lacking(group)
            doubtful.update(
                one
                for one in self._counting[group]
                if (other := self._trials.get(one)) is not None and other.counted.get(group, 0) >= lacking
            )
        for control in trial.full:
            self._trials.pop(control, None)
        for control in doubtful & self._trials.keys():
            self._attempt(control)

    def _attempt(self, control: str) -> None:
        """Find out what would follow from a candidate now."""
        trial = self._trials[control] = self._tried(control)
        for one in (*trial.full, *trial.partial):
            self._dependent[one].add(control)
        for group in trial.counted:
            self._counting[group].add(control)
        gain = (
            len(self._gaps.intersection(trial.full)),
            sum(map(self._is_requirement, trial.full)),
            len(self._gaps.intersection(trial.partial)),
            sum(map(self._is_requirement, trial.partial)),
            self._level(control) == PARTIAL,
        )
        # The number decides between entries of one candidate, because trials cannot be compared.
        entry = (tuple(-one for one in gain), self._order[control], next(self._numbers), control, trial)
        heappush(self._best, entry)

    def _tried(self, control: str) -> _Trial:
        """What would follow by the rules of coverage; see ``engine.py``. Raises GraphTooLarge."""
        view, counted = self._view, dict[str, int]()
        full, partial = [control], list[str]()  # both grow during the loops
        raised = {control}
        for one in full:
            self._work += len(view.ahead(one)) + len(view.counts_for(one))
            for match in view.ahead(one):
                if match.level == FULL and match.target not in raised and self._is_open(match.target, FULL):
                    raised.add(match.target)
                    full.append(match.target)
            for group in view.counts_for(one):
                counted[group] = counted.get(group, 0) + 1
                if counted[group] >= self._lacking(group) and group not in raised and self._is_open(group, FULL):
                    raised.add(group)
                    full.append(group)
        for one in full:
            self._lift((match.target for match in view.ahead(one)), raised, partial)
            self._lift(view.counts_for(one), raised, partial)
        for one in partial:
            self._work += len(view.ahead(one)) + len(view.counts_for(one))
            self._lift((match.target for match in view.ahead(one) if match.within), raised, partial)
            self._lift(view.counts_for(one), raised, partial)
        if self._work > _MOST_WORK:
            raise GraphTooLarge
        return _Trial(full, partial, counted)

    def _lift(self, controls: Iterable[str], raised: set[str], partial: list[str]) -> None:
        """Add those of these controls that are NONE to what would become PARTIAL."""
        for one in controls:
            if one not in raised and self._is_open(one, PARTIAL):
                raised.add(one)
                partial.append(one)

    def _lacking(self, group: str) -> int:
        """How many requirements below a group are not FULL."""
        below = self._view.counts(group)
        return below.number - below.full - self._more_full[group]

    def _level(self, control: str) -> Level:
        return self._raised.get(control) or _level(self._view, control)

    def _is_open(self, control: str, level: Level) -> bool:
        """Whether a control applies, and is below a level."""
        return self._level(control) < level and _counts(self._view, control)

    def _is_requirement(self, control: str) -> bool:
        node = self._view.node(control)
        return node is not None and not node.is_group


def _level(view: View, control: str) -> Level:
    node = view.node(control)
    return (node.effective if node is not None else None) or NONE


def _counts(view: View, control: str) -> bool:
    node = view.node(control)
    return node is not None and node.counts


def _may_become(view: View, control: str, level: Level) -> bool:
    return _level(view, control) < level and _counts(view, control)


def _candidates(view: View, gaps: Collection[str]) -> list[str]:
    """The requirements below FULL that can make a gap FULL, by themselves or together with others: the gaps as well.

    A group is none: it asks for nothing of its own, so nobody should have to assess it.
    """
    view.read(gaps)
    found: set[str] = set()
    frontier = {gap for gap in gaps if _may_become(view, gap, FULL)}
    while frontier:
        found |= frontier
        view.read_matches(frontier)
        view.read_below(frontier)
        before = {match.source for one in frontier for match in view.behind(one) if match.level == FULL}
        before.update(below for one in frontier for below in view.below(one))
        frontier = {one for one in before - found if _may_become(view, one, FULL)}
    return sorted(one for one in found if (node := view.node(one)) is not None and not node.is_group)


def _read_ahead(view: View, candidates: Collection[str]) -> None:
    """Read all that trials of the candidates look at: a wave at a time, instead of a control at a time."""
    partial: set[str] = set()
    for wave in _waves(view, candidates, FULL, lambda match_level, _: match_level == FULL):
        for one in wave:
            partial.update(match.target for match in view.ahead(one))
            partial.update(view.counts_for(one))
    for _ in _waves(
        view, {one for one in partial if _may_become(view, one, PARTIAL)}, PARTIAL, lambda _, within: within
    ):
        pass


def _waves(
    view: View, controls: Collection[str], level: Level, leads: Callable[[Level, bool], bool]
) -> Iterator[Collection[str]]:
    """The controls, and wave by wave those that may reach a level by them; each wave with what is around it read."""
    seen: set[str] = set()
    frontier = set(controls)
    while frontier:
        seen |= frontier
        view.read_matches(frontier)
        view.read_above(frontier)
        groups = {group for one in frontier for group in view.counts_for(one)}
        view.read_counts(groups)
        yield frontier
        following = groups | {
            match.target for one in frontier for match in view.ahead(one) if leads(match.level, match.within)
        }
        frontier = {one for one in following - seen if _may_become(view, one, level)}
