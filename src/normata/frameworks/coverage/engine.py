"""How far each control is covered, given what is stated, how controls match and how they nest.

Effective coverage is the least fixpoint of three rules, of which the largest result wins:

- a control is covered as far as its statement says;
- a match covers its target as far as its source is covered, but never further than the match's own level;
- a control with children is FULL where all of them are FULL, and otherwise PARTIAL where any is above NONE.

"Least" is what keeps cycles honest: controls that only vouch for one another stay at NONE.

Two passes find it. Whether a rule yields FULL depends only on which controls are FULL, and whether it yields PARTIAL or
better depends only on which are PARTIAL or better. So the fixpoint falls apart into two questions of plain yes and no,
"which controls reach PARTIAL?" and "which reach FULL?", and neither needs the other's answer. A control that reaches
FULL reaches PARTIAL by the same path, hence its level is the number of questions answered yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

_NO_PARENT: Final = -1


class Level(IntEnum):
    """How far a control is covered; as the level of a match, PARTIAL or FULL, the most that it can pass on."""

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


# From here on a control is its position in `parents`: the loops index lists and never hash a string.
_Targets: TypeAlias = Sequence[Sequence[int]]  # for each control, those that its matches lead to


class _Hierarchy(NamedTuple):
    parent: list[int]
    children: list[int]  # how many each control has


def compute(
    parents: Mapping[str, str | None],
    matches: Iterable[tuple[str, str, Level]],
    statements: Mapping[str, Level],
) -> dict[str, Computed]:
    """Compute the coverage of every control of the adopted frameworks.

    `parents` names each of these controls and its parent, None at the top; a parent that is no key counts as none.
    `matches` are source, target and level. `statements` holds what is stated; a control without one is at NONE. Matches
    and statements that name any other control are ignored, so callers need not filter by adoption.

    The result has one entry for each key of `parents`, in that order. It depends on no other order, and cycles, in
    matches or in parents, do no harm. Time and memory are linear in controls, matches and statements.
    """
    index = {control: position for position, control in enumerate(parents)}
    hierarchy = _hierarchy(parents, index)
    stated = {index[control]: level for control, level in statements.items() if control in index}
    to_partial, to_full = _targets(matches, index)
    unmatched: _Targets = [()] * len(index)

    effective = _levels(hierarchy, stated, to_partial, to_full)
    own = _levels(hierarchy, stated, unmatched, unmatched)
    return {
        control: Computed.of(reached, alone) for control, reached, alone in zip(parents, effective, own, strict=True)
    }


def _hierarchy(parents: Mapping[str, str | None], index: Mapping[str, int]) -> _Hierarchy:
    parent = [_NO_PARENT if name is None else index.get(name, _NO_PARENT) for name in parents.values()]
    children = [0] * len(parent)
    for position in parent:
        if position != _NO_PARENT:
            children[position] += 1
    return _Hierarchy(parent, children)


def _targets(matches: Iterable[tuple[str, str, Level]], index: Mapping[str, int]) -> tuple[_Targets, _Targets]:
    """The matches that can make their target PARTIAL, which is all of them, and those that can make it FULL."""
    to_partial: list[list[int]] = [[] for _ in index]
    to_full: list[list[int]] = [[] for _ in index]
    partial, full = Level.PARTIAL, Level.FULL  # looked up once: each access to a member costs more than the comparison
    for source_control, target_control, level in matches:
        source, target = index.get(source_control), index.get(target_control)
        if source is None or target is None:
            continue
        if level >= partial:
            to_partial[source].append(target)
        if level >= full:
            to_full[source].append(target)
    return to_partial, to_full


def _levels(hierarchy: _Hierarchy, stated: Mapping[int, Level], to_partial: _Targets, to_full: _Targets) -> list[Level]:
    partial = _reached(
        [control for control, level in stated.items() if level >= Level.PARTIAL],
        to_partial,
        hierarchy.parent,
        quorum=[1] * len(hierarchy.parent),
    )
    full = _reached(
        [control for control, level in stated.items() if level >= Level.FULL],
        to_full,
        hierarchy.parent,
        quorum=hierarchy.children.copy(),
    )
    levels = tuple(Level)
    return [levels[some + whole] for some, whole in zip(partial, full, strict=True)]


def _reached(stated: Sequence[int], targets: _Targets, parent: list[int], quorum: list[int]) -> bytearray:
    """Mark with 1 the controls that reach one level, starting from those stated to have it.

    `quorum` says how many of a control's children must reach the level before it does: one for PARTIAL, all for FULL.
    It is used up. A childless control is nobody's parent, so that nobody ever asks for its quorum.

    This is forward chaining over Horn clauses ("if these reach it, so does that"). A control is marked only when a rule
    compels it, hence the result is the least one; and the work list empties only when no rule has anything left to add,
    hence it is a fixpoint. Marks are never taken back, so the order of work cannot matter.

    It is linear because a control enters the work list once, at the moment of its mark: each match is followed at most
    once, and each child is counted at most once. The count spares a look at all siblings whenever one of them changes.

    Every mark rests on marks made before it. To note, at that moment, the match or the children that gave it would
    therefore yield an explanation that never runs in a circle.
    """
    reached = bytearray(len(parent))
    pending = list(stated)
    for control in stated:
        reached[control] = 1
    while pending:
        control = pending.pop()
        for target in targets[control]:
            if not reached[target]:
                reached[target] = 1
                pending.append(target)
        above = parent[control]
        if above == _NO_PARENT:
            continue
        quorum[above] -= 1
        if quorum[above] <= 0 and not reached[above]:
            reached[above] = 1
            pending.append(above)
    return reached
