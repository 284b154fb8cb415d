"""How far each control is covered, given what is stated, how controls match and how they nest.

A control is a set of requirements, and a match says how two such sets lie to each other (NIST IR 8477). FULL says that
whoever does all of the source does all of the target. PARTIAL says only that the two overlap. That a source lies within
its target is known where the match back is FULL. From that follows, and from nothing else:

- a control is FULL where that is stated; where a FULL match leads to it from a FULL control; and where all of its
  applicable children are FULL, and it has one;
- a control is PARTIAL where it is FULL; where PARTIAL is stated; where any match leads to it from a FULL control; where
  a match leads to it from a PARTIAL control that lies within it; and where a child of it is PARTIAL.

Overlap is not handed on: that A overlaps B and B overlaps C says nothing of A and C. A control that does not apply is
NONE, hands nothing on, and is no child of its parent.

Effective coverage is the least fixpoint of these rules. "Least" is what keeps cycles honest: controls that only vouch
for one another stay at NONE.

Two passes find it. Which controls are FULL depends on nothing but which controls are FULL. Which are PARTIAL depends on
that, and on which are PARTIAL. So the first pass marks those that are FULL, and the second starts from what these make
PARTIAL.

Each control that is covered has a rank, by which anybody can tell that its level rests on no circle: 0 where the level
is stated; else a rule gives the level from controls that each have a lower rank among those of the same level, or are
FULL where it is PARTIAL. The engine gives the lowest ranks that there are: the number of steps from a statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

_NO_PARENT: Final = -1


class Level(IntEnum):
    """How far a control is covered, or how much a match says."""

    NONE = 0
    PARTIAL = 1
    FULL = 2


class Computed(NamedTuple):
    """The coverage that follows for one control.

    `own` is what statements and roll-up alone give; `indirect` tells that `effective` is above that: it took a match.
    """

    effective: Level
    own: Level
    indirect: bool

    @classmethod
    def of(cls, effective: Level, own: Level) -> Computed:
        """The coverage of a control that is this far covered, and on its own that far."""
        return cls(effective, own, effective > own)


NOTHING: Final = Computed.of(Level.NONE, Level.NONE)

# From here on a control is its position among those that apply: the loops index lists and never hash a string.
_Targets: TypeAlias = Sequence[Sequence[int]]  # for each control, those that its matches lead to


class _Hierarchy(NamedTuple):
    parent: list[int]
    children: list[int]  # how many each control has


class _Matches(NamedTuple):
    """Where matches lead: all of them, the FULL ones, and those of sources that lie within their targets."""

    any: _Targets
    full: _Targets
    within: _Targets


def compute(
    parents: Mapping[str, str | None],
    matches: Iterable[tuple[str, str, Level]],
    assessments: Mapping[str, Level],
    not_applicable: Collection[str] = (),
) -> dict[str, Computed]:
    """Compute the coverage of every control of the adopted frameworks.

    `parents` names each of these controls and its parent, None at the top; a parent that is no key counts as none.
    `matches` are source, target and level. `statements` holds what is stated; a control without one is at NONE. Matches
    and statements that name any other control are ignored, so callers need not filter by adoption.

    The result has one entry for each key of `parents`, in that order. It depends on no other order, and cycles, in
    matches or in parents, do no harm. Time and memory are linear in controls, matches and statements.
    """
    computed, _ = compute_ranked(parents, matches, assessments, not_applicable)
    return computed


def compute_ranked(
    parents: Mapping[str, str | None],
    matches: Iterable[tuple[str, str, Level]],
    assessments: Mapping[str, Level],
    not_applicable: Collection[str] = (),
) -> tuple[dict[str, Computed], dict[str, int]]:
    """See :func:`compute`; with the ranks of the controls that are covered."""
    left_out = frozenset(not_applicable)
    # What does not apply is as good as not there.
    applicable = [control for control in parents if control not in left_out] if left_out else list(parents)
    index = {control: position for position, control in enumerate(applicable)}
    hierarchy = _hierarchy(parents, applicable, index)
    assessed = {index[control]: level for control, level in assessments.items() if control in index}
    unmatched: _Targets = [()] * len(index)

    effective, ranks = _levels(hierarchy, assessed, _led_to(matches, index))
    own, _ = _levels(hierarchy, assessed, _Matches(unmatched, unmatched, unmatched))
    computed = {
        control: Computed(reached, alone, reached > alone)
        for control, reached, alone in zip(applicable, effective, own, strict=True)
    }
    if left_out:
        computed = {control: computed.get(control, NOTHING) for control in parents}
    return computed, {control: rank for control, rank in zip(applicable, ranks, strict=True) if rank is not None}


def _hierarchy(parents: Mapping[str, str | None], controls: Sequence[str], index: Mapping[str, int]) -> _Hierarchy:
    names = (parents[control] for control in controls)
    parent = [_NO_PARENT if name is None else index.get(name, _NO_PARENT) for name in names]
    children = [0] * len(parent)
    for position in parent:
        if position != _NO_PARENT:
            children[position] += 1
    return _Hierarchy(parent, children)


def _led_to(matches: Iterable[tuple[str, str, Level]], index: Mapping[str, int]) -> _Matches:
    count = len(index)
    to_any: list[list[int]] = [[] for _ in index]
    to_full: list[list[int]] = [[] for _ in index]
    to_within: list[list[int]] = [[] for _ in index]
    pairs: list[tuple[int, int]] = []
    whole: set[int] = set()  # the pairs with a FULL match, each as one number
    partial, full = Level.PARTIAL, Level.FULL  # looked up once: each access to a member costs more than the comparison
    for source_control, target_control, level in matches:
        source, target = index.get(source_control), index.get(target_control)
        if source is None or target is None or level < partial:
            continue
        pairs.append((source, target))
        if level >= full:
            whole.add(source * count + target)
    for source, target in pairs:
        to_any[source].append(target)
        if source * count + target in whole:
            to_full[source].append(target)
        if target * count + source in whole:
            to_within[source].append(target)
    return _Matches(to_any, to_full, to_within)


def _levels(
    hierarchy: _Hierarchy, assessed: Mapping[int, Level], matches: _Matches
) -> tuple[list[Level], list[int | None]]:
    """The level of each control, and its rank."""
    full = _reached(
        [control for control, level in assessed.items() if level >= Level.FULL],
        (),
        matches.full,
        hierarchy.parent,
        quorum=hierarchy.children.copy(),
    )
    whole = [control for control, rank in enumerate(full) if rank is not None]
    partial = _reached(
        [*whole, *(control for control, level in assessed.items() if level >= Level.PARTIAL)],
        [target for control in whole for target in matches.any[control]],
        matches.within,
        hierarchy.parent,
        quorum=[1] * len(hierarchy.parent),
    )
    levels = tuple(Level)
    reached = [levels[(some is not None) + (every is not None)] for some, every in zip(partial, full, strict=True)]
    return reached, [some if every is None else every for some, every in zip(partial, full, strict=True)]


def _reached(
    initial: Iterable[int], next_to_them: Iterable[int], targets: _Targets, parent: list[int], quorum: list[int]
) -> list[int | None]:
    """The ranks of the controls that reach one level, starting from those that are given to have it, with rank 0.

    `next_to_them` have it by what is given, with rank 1. Null stands for a control that does not reach the level.

    `quorum` says how many of a control's children must reach the level before it does: one for PARTIAL, all for FULL.
    It is used up. A childless control is nobody's parent, so that nobody ever asks for its quorum.

    This is forward chaining over Horn clauses ("if these reach it, so does that"). A control is marked only when a rule
    compels it, hence the result is the least one; and the work list empties only when no rule has anything left to add,
    hence it is a fixpoint. Marks are never taken back. The order of work decides the ranks alone: it goes in waves, so
    that each control has the lowest rank that there is.

    It is linear because a control enters the work list once, at the moment of its mark: each match is followed at most
    once, and each child is counted at most once. The count spares a look at all siblings whenever one of them changes.
    """
    reached: list[int | None] = [None] * len(parent)
    wave: list[int] = []
    for control in initial:
        if reached[control] is None:
            reached[control] = 0
            wave.append(control)
    following = []
    for control in next_to_them:
        if reached[control] is None:
            reached[control] = 1
            following.append(control)
    rank = 1
    while wave or following:
        for control in wave:
            for target in targets[control]:
                if reached[target] is None:
                    reached[target] = rank
                    following.append(target)
            above = parent[control]
            if above == _NO_PARENT:
                continue
            quorum[above] -= 1
            if quorum[above] <= 0 and reached[above] is None:
                reached[above] = rank
                following.append(above)
        wave, following = following, []
        rank += 1
    return reached
