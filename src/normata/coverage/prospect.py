"""The coverage that an adoption would lead to, computed without making it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from sqlalchemy import BindParameter, bindparam, select
from typing_extensions import override

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.coverage.applicability import SCOPE_COLUMNS, not_applicable, scopes_of
from normata.coverage.engine import Computed, Level, Place
from normata.coverage.graph import NOTHING_BELOW, Below, GraphTooLarge, Node, View
from normata.coverage.hierarchy import groups_among
from normata.coverage.incremental import Ranked, update
from normata.coverage.recompute import coverage_with, most_touched, stored_coverage
from normata.coverage.stored_graph import StoredGraph
from normata.frameworks.baselines import selected_controls
from normata.frameworks.counting import is_requirement
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage

NONE, PARTIAL, FULL = Level

# How many controls are read around one whose applicability changes, by experience: its groups, and the ends of matches.
_AROUND_ONE = 6

# The adoption until now: there is none, it has the same baseline, or another one.
Former = Literal["new", "same", "other"]


class Prospect(NamedTuple):
    """What an adoption would lead to.

    ``own`` has the coverage of each control of the framework, or at least where it would not be as stored. ``others``
    has the controls of other adopted frameworks that would be covered further, or less, each with its level before and
    after.
    """

    own: Mapping[str, Ranked]
    others: Mapping[str, tuple[Level, Level]]


def prospect_of(
    transaction: Transaction, organization_id: str, framework_id: str, baseline_id: str | None, was: Former
) -> Prospect:
    """What adopting a framework with a baseline (null: without one) would lead to.

    It costs what the adoption touches, unless that is a large part of all that is adopted.
    """
    if was == "same":
        return Prospect({}, {})
    with suppress(GraphTooLarge):
        return _by_what_it_touches(transaction, organization_id, framework_id, baseline_id, is_new=was == "new")
    before = stored_coverage(transaction, organization_id)
    after = coverage_with(transaction, organization_id, framework_id, baseline_id)
    own = set(transaction.scalars(_IDS_OF, {"framework": framework_id}))
    levels = {
        control: (found.effective, after[control].computed.effective)
        for control, found in before.items()
        if control not in own
    }
    return Prospect({control: after[control] for control in own}, _differing(levels))


def _by_what_it_touches(
    transaction: Transaction, organization_id: str, framework_id: str, baseline_id: str | None, *, is_new: bool
) -> Prospect:
    """What it would lead to, from what is stored. Raises GraphTooLarge."""
    rows = transaction.rows(_CONTROLS, {"organization": organization_id, "framework": framework_id})
    baselines = {} if baseline_id is None else {framework_id: baseline_id}
    selected = selected_controls(transaction, baselines.values())
    places = {row.id: Place(row.parent_id, row.is_group) for row in rows}
    decisions = {row.id: row.is_applicable for row in rows if row.is_applicable is not None}
    left_out = frozenset(not_applicable(places, scopes_of(rows, decisions, baselines, selected)))
    moved = {row.id for row in rows if is_new or row.applies != (row.id not in left_out)}
    most = most_touched(transaction, organization_id)
    if len(moved) * _AROUND_ONE > most and not is_new:
        raise GraphTooLarge  # now, and not only once so much has been read
    graph: StoredGraph
    if is_new:
        requirements = [row.id for row in rows if row.is_requirement and row.id not in left_out]
        graph = _WithFramework(transaction, organization_id, places, _by_group(places, requirements), left_out)
    else:
        requirements = [row.id for row in rows if row.is_requirement and row.id in moved]
        applies = {control: control not in left_out for control in moved}
        graph = _WithBaseline(transaction, organization_id, applies, _by_group(places, requirements))
    view = View(graph, most)
    changes = update(view, moved=moved)
    own, levels = dict[str, Ranked](), dict[str, tuple[Level, Level]]()
    for control in moved | changes.keys():
        node, found = view.node(control), changes.get(control)
        if node is None:
            continue
        stored, is_own = node.effective, control in places
        if is_own:
            own[control] = found or Ranked(
                Computed.of(stored or NONE, node.own or NONE), node.rank or 0, node.is_applicable
            )
        elif found is not None and stored is not None:
            levels[control] = stored, found.computed.effective
    return Prospect(own, _differing(levels))


def _differing(levels: Mapping[str, tuple[Level, Level]]) -> dict[str, tuple[Level, Level]]:
    return {control: (before, after) for control, (before, after) in levels.items() if before != after}


def _by_group(places: Mapping[str, Place], controls: Collection[str]) -> dict[str, list[str]]:
    """These controls by the groups above them, in their order."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for control, groups in groups_among(places, controls).items():
        for group in groups:
            found[group].append(control)
    return found


class _WithFramework(StoredGraph):
    """The stored graph as it would be just after an adoption: nothing is covered yet in the framework.

    ``below`` has the requirements that would apply, in catalog order, by the groups above them; ``left_out`` the
    controls that would not apply.
    """

    def __init__(
        self,
        transaction: Transaction,
        organization_id: str,
        places: Mapping[str, Place],
        below: Mapping[str, list[str]],
        left_out: Collection[str],
    ) -> None:
        super().__init__(transaction, organization_id)
        self._places = places
        self._left_out = left_out
        self._requirements_below = below

    @override
    def counts(self, groups: Collection[str]) -> Mapping[str, Below]:
        own = {group: Below(len(found), 0, 0, 0, 0) for group, found in self._below_own(groups).items()}
        return {**own, **super().counts(self._stored(groups))}

    @override
    def below(self, groups: Collection[str]) -> Mapping[str, list[str]]:
        return {**self._below_own(groups), **super().below(self._stored(groups))}

    def _below_own(self, groups: Collection[str]) -> dict[str, list[str]]:
        return {group: self._requirements_below[group] for group in groups if group in self._requirements_below}

    def _stored(self, groups: Collection[str]) -> list[str]:
        return [group for group in groups if group not in self._places]

    @override
    def _note(self, row: Sequence[Any]) -> str:
        control = super()._note(row)
        if control in self._places:
            node, applies = self._nodes[control], control not in self._left_out
            self._nodes[control] = Node(
                node.is_group,
                is_adopted=True,
                is_applicable=applies,
                assessed=node.assessed if applies else NONE,
                effective=None,
                own=None,
                rank=None,
                is_assessed=node.is_assessed,
            )
        return control


class _WithBaseline(StoredGraph):
    """The stored graph as it would be just after an adopted framework got another baseline.

    ``applies`` has the controls for which it would be otherwise than stored whether they apply, ``below`` the
    requirements among them by the groups above. What is stored of their coverage stays, as it does then.
    """

    def __init__(
        self,
        transaction: Transaction,
        organization_id: str,
        applies: Mapping[str, bool],
        below: Mapping[str, Sequence[str]],
    ) -> None:
        super().__init__(transaction, organization_id)
        self._moved = applies
        self._moved_below = below

    @override
    def counts(self, groups: Collection[str]) -> Mapping[str, Below]:
        found = {**super().counts(groups)}
        moved = {group: self._moved_below[group] for group in groups if group in self._moved_below}
        nodes = self.nodes({control for controls in moved.values() for control in controls})
        for group, controls in moved.items():
            numbers = Counter[str]()
            for control in controls:
                node, one = nodes[control], 1 if self._moved[control] else -1
                effective, own = node.effective or NONE, node.own or NONE
                numbers["number"] += one
                numbers["partial"] += one * (effective >= PARTIAL)
                numbers["full"] += one * (effective == FULL)
                numbers["own_partial"] += one * (own >= PARTIAL)
                numbers["own_full"] += one * (own == FULL)
            counts = found.get(group, NOTHING_BELOW)
            found[group] = counts._replace(**{name: getattr(counts, name) + more for name, more in numbers.items()})
        return found

    @override
    def below(self, groups: Collection[str]) -> Mapping[str, list[str]]:
        found = {**super().below(groups)}
        for group in groups:
            if group in self._moved_below:
                joining = [control for control in self._moved_below[group] if self._moved[control]]
                found[group] = [one for one in found.get(group, ()) if self._moved.get(one, True)] + joining
        return found

    @override
    def _applies(self, control: str, stored: bool | None) -> bool:
        return self._moved.get(control, super()._applies(control, stored))


_CONTROL, _STATEMENT, _EFFECTIVE = sql_table(Control), sql_table(ControlCoverage), sql_table(EffectiveCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_OF_FRAMEWORK = _CONTROL.c.framework_id == bindparam("framework")

_IDS_OF = select(_CONTROL.c.id).where(_OF_FRAMEWORK)
_CONTROLS = (
    select(
        *SCOPE_COLUMNS,
        _CONTROL.c.parent_id,
        is_requirement().label("is_requirement"),
        _STATEMENT.c.is_applicable,
        _EFFECTIVE.c.applies,
    )
    .outerjoin(_STATEMENT, (_STATEMENT.c.control_id == _CONTROL.c.id) & (_STATEMENT.c.organization_id == _ORGANIZATION))
    .outerjoin(_EFFECTIVE, (_EFFECTIVE.c.control_id == _CONTROL.c.id) & (_EFFECTIVE.c.organization_id == _ORGANIZATION))
    .where(_OF_FRAMEWORK)
    .order_by(_CONTROL.c.position, _CONTROL.c.id)
)
