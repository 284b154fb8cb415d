"""The supporting matches of a control that is covered indirectly: those of its shortest proofs.

Two controls that match each other both ways are both FULL as soon as one of them is. Then each is a covered control
with a match to the other, but only one of the two matches is the reason. So each mark gets the number of the step in
which the rules of coverage first give it, and a match supports its target only if its source was marked in an earlier
step. So no control ever supports itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import BindParameter, and_, bindparam, literal, select
from sqlalchemy.orm import aliased

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage.hierarchy import IsIdOf, below_groups, is_requirement_where
from normata.frameworks.counting import applies, is_group, match_counts
from normata.frameworks.model import Control, ControlMatch, EffectiveCoverage
from normata.reports.requirements import ORGANIZATION, coverage_of, status_in

_Mark: TypeAlias = tuple[str, str]  # the id of a control, and PARTIAL or FULL


def read_supporting_matches(
    transaction: Transaction, organization_id: str, controls: Collection[str]
) -> SupportingMatches:
    """What the indirect coverage of these controls rests on, however far away.

    It reads a wave of controls at a time, in two statements, and follows only those that are covered indirectly: what
    the others are follows from assessments.
    """
    matches: list[Any] = []
    children: list[Any] = []
    seen: set[str] = set()
    wave = {*controls}
    while wave:
        seen |= wave
        following: set[str] = set()
        for batch in batches(sorted(wave)):
            key = {"organization": organization_id, "ids": batch}
            matches += (into := transaction.rows(_MATCHES, key))
            children += (below := transaction.rows(_CHILDREN, key))
            following.update(row.source_id for row in into if row.is_indirect)
            following.update(row.id for row in below if row.is_indirect)
        wave = following - seen
    return SupportingMatches(matches, children)


class SupportingMatches:
    """Finds the matches that support a control, among those that lead to it and to what it rests on.

    ``matches`` come from covered controls; ``is_within`` is true if the source lies within the target: the match back
    is FULL. ``children`` are the applicable requirements below groups.
    """

    def __init__(self, matches: Sequence[Any], children: Sequence[Any]) -> None:
        self._steps = _steps(_initial(matches, children), _conclusions(matches, children), children)
        self._matches: defaultdict[str, list[Any]] = defaultdict(list)
        for match in matches:
            self._matches[match.target_id].append(match)

    def of(self, control_id: str, effective: str) -> list[str]:
        """The ids of the matches that give a control its status, by the shortest proofs."""
        own_step = self._steps.get((control_id, effective), 0)
        return [
            match.id
            for match in self._matches.get(control_id, ())
            if any(
                conclusion == (control_id, effective) and self._steps.get(premise, own_step) < own_step
                for premise, conclusion in _implied(match)
            )
        ]


def _implied(match: Any) -> Iterable[tuple[_Mark, _Mark]]:
    """The consequences of a match: marks of its source, each with the resulting mark of the target."""
    full, partial = (match.source_id, "FULL"), (match.source_id, "PARTIAL")
    if match.match_level == "FULL":
        yield full, (match.target_id, "FULL")
    yield full, (match.target_id, "PARTIAL")
    if match.is_within:
        yield partial, (match.target_id, "PARTIAL")


def _initial(matches: Sequence[Any], children: Sequence[Any]) -> set[_Mark]:
    """The marks without matches: those that follow from assessments and roll-up alone."""
    own = {match.source_id: match.source_own for match in matches}
    own |= {match.target_id: match.target_own for match in matches}
    own |= {child.id: child.own for child in children}
    own |= {child.parent_id: child.parent_own for child in children}
    return {(control, level) for control, status in own.items() if status != "NONE" for level in _down_from(status)}


def _down_from(status: str) -> tuple[str, ...]:
    return ("FULL", "PARTIAL") if status == "FULL" else ("PARTIAL",)


def _conclusions(matches: Sequence[Any], children: Sequence[Any]) -> Mapping[_Mark, list[_Mark]]:
    """The consequences of one mark alone. The rule that all requirements are FULL needs several: see :func:`_steps`."""
    conclusions: defaultdict[_Mark, list[_Mark]] = defaultdict(list)
    for match in matches:
        for premise, conclusion in _implied(match):
            conclusions[premise].append(conclusion)
    for child in children:
        conclusions[child.id, "PARTIAL"].append((child.parent_id, "PARTIAL"))
    return conclusions


def _steps(
    initial: set[_Mark], conclusions: Mapping[_Mark, Sequence[_Mark]], children: Sequence[Any]
) -> dict[_Mark, int]:
    """The step in which each mark is first derived: 0 for initial marks, then one more for each rule."""
    missing: defaultdict[str, int] = defaultdict(int)  # requirements below a group that are not FULL yet
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for child in children:
        missing[child.parent_id] += 1
        groups[child.id].append(child.parent_id)
    steps: dict[_Mark, int] = {}
    step, reached = 0, initial
    while reached:
        steps |= dict.fromkeys(reached, step)
        following: set[_Mark] = set()
        for control, level in reached:
            following.update(conclusions.get((control, level), ()))
            for group in groups.get(control, ()) if level == "FULL" else ():
                missing[group] -= 1
                if missing[group] == 0:
                    following.add((group, "FULL"))
        following |= {(control, "PARTIAL") for control, level in following if level == "FULL"}
        step, reached = step + 1, following - steps.keys()
    return steps


_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_source = aliased(EffectiveCoverage, name="of_source")
_target = aliased(EffectiveCoverage, name="of_target")
_back = aliased(ControlMatch, name="back")
_is_within = (
    select(literal(1))
    .where(
        _back.source_control_id == ControlMatch.target_control_id,
        _back.target_control_id == ControlMatch.source_control_id,
        _back.match_level == "FULL",
        match_counts(ORGANIZATION, _back),
    )
    .exists()
)
_MATCHES = (
    select(
        ControlMatch.id,
        ControlMatch.match_level,
        ControlMatch.source_control_id.label("source_id"),
        _source.own.label("source_own"),
        _source.is_indirect,
        ControlMatch.target_control_id.label("target_id"),
        _target.own.label("target_own"),
        _is_within.label("is_within"),
    )
    .outerjoin(_source, coverage_of(ControlMatch.source_control_id, _source))
    .outerjoin(_target, coverage_of(ControlMatch.target_control_id, _target))
    .where(ControlMatch.target_control_id.in_(_IDS), status_in(_source) != "NONE", match_counts(ORGANIZATION))
)

_GROUP, _EFFECTIVE = sql_table(Control).alias("group_above"), sql_table(EffectiveCoverage)
_of_group = _EFFECTIVE.alias("of_group")
_below = below_groups()
_CHILDREN = (
    select(
        _below.c.id,
        _EFFECTIVE.c.own,
        _EFFECTIVE.c.is_indirect,
        _below.c.group_id.label("parent_id"),
        _of_group.c.own.label("parent_own"),
    )
    .join(_GROUP, _GROUP.c.id == _below.c.group_id)
    .join(_EFFECTIVE, and_(IsIdOf(_EFFECTIVE.c.control_id, _below.c.id), _EFFECTIVE.c.organization_id == ORGANIZATION))
    .join(_of_group, and_(_of_group.c.control_id == _below.c.group_id, _of_group.c.organization_id == ORGANIZATION))
    # All groups are among these. Unless told so, SQLite goes through the coverage of all controls for each group.
    .where(_of_group.c.control_id.in_(_IDS))
    .where(is_requirement_where(_below, applies(_EFFECTIVE), is_group(_GROUP)))
)
