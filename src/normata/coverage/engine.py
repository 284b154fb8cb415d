"""The engine: computes coverage from assessments, matches and the hierarchy of controls.

A requirement is a control with a demand of its own. A group has none: it is a category, or a decomposed control, whose
children together are all of it. A match relates the demands of two controls (NIST IR 8477). FULL means that an
organization that does all of the source does all of the target. PARTIAL means only that the two overlap. A source lies
within its target if the match back is FULL.

These are the only rules:

- a control is FULL where it is assessed so; where a FULL match leads to it from a FULL control; and, where it is a
  group, where all applicable requirements below it, however deep, are FULL, and there is one;
- a control is PARTIAL where it is FULL; where it is assessed PARTIAL; where any match leads to it from a FULL control;
  where a match leads to it from a PARTIAL control that lies within it; and, where it is a group, where a requirement
  below it is PARTIAL.

A requirement gets nothing from its children, and nothing from the groups above it. Overlap is not transitive: if A
overlaps B and B overlaps C, that says nothing about A and C. A control that does not apply is NONE, lifts nothing, and
does not count for the groups above it.

Effective coverage is the least fixpoint of these rules. "Least" matters for cycles: controls that only support one
another stay at NONE.

Two passes find it. Which controls are FULL depends on nothing but which controls are FULL. Which are PARTIAL depends on
that, and on which are PARTIAL. So the first pass marks those that are FULL, and the second starts from what these make
PARTIAL.

Each covered control has a rank, which shows that its level does not depend on a circle: 0 where the level is assessed;
else a rule gives the level from controls that each have a lower rank among those of the same level, or are FULL where
it is PARTIAL. The engine gives the lowest ranks that there are: the number of steps from an assessment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias


class Level(IntEnum):
    """The level of a control's coverage, or of a match."""

    NONE = 0
    PARTIAL = 1
    FULL = 2


class Computed(NamedTuple):
    """The computed coverage of one control.

    `own` follows from assessments and roll-up alone; `indirect` is true if `effective` is higher, by a match.
    """

    effective: Level
    own: Level
    indirect: bool

    @classmethod
    def of(cls, effective: Level, own: Level) -> Computed:
        """The coverage of a control with this effective level, and this level without matches."""
        return cls(effective, own, effective > own)


class Place(NamedTuple):
    """The place of a control in its framework: its parent, null at the top; and whether it is a group."""

    parent: str | None
    is_group: bool = False


NOTHING: Final = Computed.of(Level.NONE, Level.NONE)

# From here on a control is its index among the applicable ones: the loops index lists and never hash a string.
_Targets: TypeAlias = Sequence[Sequence[int]]  # for each control, the targets of its matches


class _Hierarchy(NamedTuple):
    above: _Targets  # of each requirement, the groups in which it counts
    below: list[int]  # of each group, the number of its requirements


class _Matches(NamedTuple):
    """The targets of matches: of all, of the FULL ones, and of those whose sources lie within their targets."""

    any: _Targets
    full: _Targets
    within: _Targets


def compute(
    places: Mapping[str, Place],
    matches: Iterable[tuple[str, str, Level]],
    assessments: Mapping[str, Level],
    not_applicable: Collection[str] = (),
) -> dict[str, Computed]:
    """Compute the coverage of every control of the adopted frameworks.

    `places` has each of these controls; a parent that is no key counts as none. `matches` are source, target and level.
    A control without an assessment is at NONE. Matches and assessments that name any other control are ignored, so
    callers need not filter by adoption.

    The result has one entry for each key of `places`, in that order. It depends on no other order, and may have cycles
    in matches or parents. Time and memory are linear in controls, with the groups above each, matches and assessments.
    """
    computed, _ = compute_ranked(places, matches, assessments, not_applicable)
    return computed


def compute_ranked(
    places: Mapping[str, Place],
    matches: Iterable[tuple[str, str, Level]],
    assessments: Mapping[str, Level],
    not_applicable: Collection[str] = (),
) -> tuple[dict[str, Computed], dict[str, int]]:
    """The result of :func:`compute`, and the ranks of the covered controls."""
    left_out = frozenset(not_applicable)
    # Controls that do not apply are ignored completely.
    applicable = [control for control in places if control not in left_out] if left_out else list(places)
    index = {control: position for position, control in enumerate(applicable)}
    hierarchy = _hierarchy(places, applicable, index)
    assessed = {index[control]: level for control, level in assessments.items() if control in index}
    unmatched: _Targets = [()] * len(index)

    effective, ranks = _levels(hierarchy, assessed, _led_to(matches, index))
    own, _ = _levels(hierarchy, assessed, _Matches(unmatched, unmatched, unmatched))
    computed = {
        control: Computed(reached, alone, reached > alone)
        for control, reached, alone in zip(applicable, effective, own, strict=True)
    }
    if left_out:
        computed = {control: computed.get(control, NOTHING) for control in places}
    return computed, {control: rank for control, rank in zip(applicable, ranks, strict=True) if rank is not None}


def _hierarchy(places: Mapping[str, Place], controls: Sequence[str], index: Mapping[str, int]) -> _Hierarchy:
    groups_from: dict[str | None, Sequence[int]] = {None: ()}  # by the parent with which a chain begins
    above: list[Sequence[int]] = []
    below = [0] * len(index)
    for control in controls:
        place = places[control]
        if place.is_group:
            above.append(())
            continue
        groups = groups_from.get(place.parent)
        if groups is None:
            groups = groups_from[place.parent] = [
                index[name] for name in upwards(place.parent, places) if places[name].is_group and name in index
            ]
        above.append(groups)
        for group in groups:
            below[group] += 1
    return _Hierarchy(above, below)


def upwards(control: str | None, places: Mapping[str, Place]) -> Iterable[str]:
    """A control and the known controls above it; in a circle each once."""
    path: dict[str, None] = {}
    while control is not None and control in places and control not in path:
        path[control] = None
        control = places[control].parent
    return path


def _led_to(matches: Iterable[tuple[str, str, Level]], index: Mapping[str, int]) -> _Matches:
    count = len(index)
    to_any: list[list[int]] = [[] for _ in index]
    to_full: list[list[int]] = [[] for _ in index]
    to_within: list[list[int]] = [[] for _ in index]
    pairs: list[tuple[int, int]] = []
    whole: set[int] = set()  # pairs with a FULL match, each as one number
    partial, full = Level.PARTIAL, Level.FULL  # local, since accessing an enum member takes longer than comparing
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
        hierarchy.above,
        quorum=hierarchy.below.copy(),
    )
    whole = [control for control, rank in enumerate(full) if rank is not None]
    partial = _reached(
        [*whole, *(control for control, level in assessed.items() if level >= Level.PARTIAL)],
        [target for control in whole for target in matches.any[control]],
        matches.within,
        hierarchy.above,
        quorum=[1] * len(hierarchy.below),
    )
    levels = tuple(Level)
    reached = [levels[(some is not None) + (every is not None)] for some, every in zip(partial, full, strict=True)]
    return reached, [some if every is None else every for some, every in zip(partial, full, strict=True)]


def _reached(
    initial: Iterable[int], next_to_them: Iterable[int], targets: _Targets, above: _Targets, quorum: list[int]
) -> list[int | None]:
    """The ranks of the controls that reach one level, starting from those that have it by assessment, with rank 0.

    `next_to_them` have it by what is given, with rank 1. Null stands for a control that does not reach the level.

    `quorum` says how many of the requirements below a group must reach the level before it does: one for PARTIAL, all
    for FULL. It is changed in place. A control that is not a group has no requirements, so its quorum is never read.

    This is forward chaining over Horn clauses ("if these reach it, so does that"). A control is marked only if a rule
    requires it, so the result is the least one; and the work list is empty only when no rule adds anything, so it is a
    fixpoint. Marks are never removed. The order of work affects only the ranks: it goes in waves, so that each control
    gets the lowest possible rank.

    It is linear because a control enters the work list once, at the moment of its mark: each match is followed at most
    once, and each requirement is counted at most once for each group above it. The count avoids reading all
    requirements below a group whenever one of them changes.
    """
    reached: list[int | None] = [None] * len(above)
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
            for group in above[control]:
                quorum[group] -= 1
                if quorum[group] <= 0 and reached[group] is None:
                    reached[group] = rank
                    following.append(group)
        wave, following = following, []
        rank += 1
    return reached
