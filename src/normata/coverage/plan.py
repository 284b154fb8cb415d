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


class _Control:
    """A control in a plan: what of the graph still matters, without what can no longer rise, and what trials need.

    ``level`` is that after the steps so far, and ``lacking`` how many requirements below a group are then not FULL.
    ``making_full`` and ``lifting`` are the targets of its matches that it would make FULL, and PARTIAL;
    ``lifting_within`` those that it makes PARTIAL if it is PARTIAL itself. ``dependent`` are the candidates whose
    trials raise it, ``counting`` those whose trials make parts of it FULL. ``work`` is how much a look at it counts.
    """

    __slots__ = (
        *("name", "level", "counts", "is_requirement", "is_gap", "lacking", "trial", "dependent", "counting"),
        *("is_linked", "work", "making_full", "lifting", "lifting_within", "groups"),
    )

    def __init__(self, view: View, name: str, *, is_gap: bool) -> None:
        node = view.node(name)
        self.name = name
        self.level = _level(view, name)
        self.counts = _counts(view, name)
        self.is_requirement = node is not None and not node.is_group
        self.is_gap = is_gap
        self.lacking = 0
        self.trial: _Trial | None = None  # of a candidate
        self.dependent: list[_Control] = []
        self.counting: list[_Control] = []
        self.is_linked = False
        self.work = 0
        self.making_full: list[_Control] = []
        self.lifting: list[_Control] = []
        self.lifting_within: list[_Control] = []
        self.groups: list[_Control] = []


class _Trial(NamedTuple):
    """What would follow if a control were assessed FULL.

    ``counted`` has the number of requirements that would become FULL below each group above one of them.
    """

    full: Sequence[_Control]
    partial: Sequence[_Control]
    counted: Mapping[_Control, int]


class _Plan:
    """The levels as they are once the steps so far are done, and what each candidate would do next."""

    def __init__(self, view: View, gaps: Collection[str], order: Callable[[Collection[str]], Order]) -> None:
        self._view = view
        self._gaps = frozenset(gaps)
        self._controls: dict[str, _Control] = {}
        self._groups: dict[str, _Control] = {}
        self._work = 0
        self._numbers = count()
        self._best: list[tuple[tuple[int | bool, ...], tuple[int | str, ...], int, _Control, _Trial]] = []
        candidates = _candidates(view, gaps)
        _read_ahead(view, candidates)
        self._order = order(candidates)
        for candidate in candidates:
            self._attempt(self._control(candidate))

    def next_step(self) -> Step | None:
        """Take the best step. Null where no gap is left."""
        while self._best:
            *_, control, trial = heappop(self._best)
            if control.trial is trial:
                break
        else:
            return None
        if not any(one.is_gap for one in trial.full):
            return None
        step = Step(
            control.name,
            {one.name: one.level for one in trial.full if one.is_requirement},
            [one.name for one in trial.partial if one.is_requirement],
        )
        self._take(trial)
        return step

    def _take(self, trial: _Trial) -> None:
        """Have what a trial has found follow, and attempt again what depends on that."""
        doubtful: dict[_Control, None] = {}
        for level, raised in ((FULL, trial.full), (PARTIAL, trial.partial)):
            for one in raised:
                one.level = level
                doubtful.update(dict.fromkeys(one.dependent))
                one.dependent = []
        for group, more in trial.counted.items():
            group.lacking -= more
            for one in group.counting:
                if one.trial is not None and one.trial.counted.get(group, 0) >= group.lacking:
                    doubtful[one] = None
        for one in trial.full:
            one.trial = None
        for one in doubtful:
            if one.trial is not None:
                self._attempt(one)

    def _attempt(self, control: _Control) -> None:
        """Find out what would follow from a candidate now."""
        trial = control.trial = self._tried(control)
        gaps_closed = closed = gaps_improved = improved = 0
        for one in trial.full:
            one.dependent.append(control)
            gaps_closed += one.is_gap
            closed += one.is_requirement
        for one in trial.partial:
            one.dependent.append(control)
            gaps_improved += one.is_gap
            improved += one.is_requirement
        for group in trial.counted:
            group.counting.append(control)
        gain = (-gaps_closed, -closed, -gaps_improved, -improved, -(control.level == PARTIAL))
        # The number decides between entries of one candidate, because trials cannot be compared.
        heappush(self._best, (gain, self._order[control.name], next(self._numbers), control, trial))

    def _tried(self, control: _Control) -> _Trial:
        """What would follow by the rules of coverage; see ``engine.py``. Raises GraphTooLarge."""
        counted: dict[_Control, int] = {}
        full, partial = [control], list[_Control]()  # both grow during the loops
        raised = {control}
        for one in full:
            if not one.is_linked:
                self._link(one)
            self._work += one.work
            for target in one.making_full:
                if target.level < FULL and target not in raised:
                    raised.add(target)
                    full.append(target)
            for group in one.groups:
                more = counted[group] = counted.get(group, 0) + 1
                if more >= group.lacking and group.counts and group.level < FULL and group not in raised:
                    raised.add(group)
                    full.append(group)
        for one in full:
            _lift(one.lifting, raised, partial)
            _lift(one.groups, raised, partial)
        for one in partial:
            if not one.is_linked:
                self._link(one)
            self._work += one.work
            _lift(one.lifting_within, raised, partial)
            _lift(one.groups, raised, partial)
        if self._work > _MOST_WORK:
            raise GraphTooLarge
        return _Trial(full, partial, counted)

    def _control(self, name: str) -> _Control:
        found = self._controls.get(name)
        if found is None:
            found = self._controls[name] = _Control(self._view, name, is_gap=name in self._gaps)
        return found

    def _group(self, name: str) -> _Control:
        found = self._groups.get(name)
        if found is None:
            found, below = self._control(name), self._view.counts(name)
            found.lacking = below.number - below.full
            self._groups[name] = found
        return found

    def _link(self, control: _Control) -> None:
        """Set what a control leads to. Levels only rise, so what is left out now never matters later."""
        view, name = self._view, control.name
        matches = view.ahead(name)
        for match in matches:
            target = self._control(match.target)
            if target.counts and target.level < FULL:
                if match.level == FULL:
                    control.making_full.append(target)
                if target.level < PARTIAL:
                    control.lifting.append(target)
                    if match.within:
                        control.lifting_within.append(target)
        control.groups = [self._group(group) for group in view.counts_for(name)]
        control.work = len(matches) + len(control.groups)
        control.is_linked = True


def _lift(controls: Iterable[_Control], raised: set[_Control], partial: list[_Control]) -> None:
    """Add those of these controls that are NONE to what would become PARTIAL."""
    for one in controls:
        if one.level < PARTIAL and one.counts and one not in raised:
            raised.add(one)
            partial.append(one)


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
