"""The coverage that an adoption would lead to, computed without making it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from sqlalchemy import BindParameter, bindparam, select
from typing_extensions import override

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.coverage.applicability import SCOPE_COLUMNS, not_applicable, scopes_of
from normata.coverage.engine import Level, Place
from normata.coverage.graph import Below, GraphTooLarge, Node, View
from normata.coverage.hierarchy import groups_among
from normata.coverage.incremental import Ranked, update
from normata.coverage.recompute import coverage_with, most_touched, stored_coverage, stored_in
from normata.coverage.stored_graph import StoredGraph
from normata.frameworks.baselines import selected_controls
from normata.frameworks.counting import is_requirement
from normata.frameworks.model import Control, ControlCoverage

# The adoption until now: there is none, it has the same baseline, or another one.
Former = Literal["new", "same", "other"]


class Prospect(NamedTuple):
    """What an adoption would lead to.

    ``own`` has the coverage of each control of the framework. ``others`` has the controls of other adopted frameworks
    that would be covered further, or less, each with its level before and after.
    """

    own: Mapping[str, Ranked]
    others: Mapping[str, tuple[Level, Level]]


def prospect_of(
    transaction: Transaction, organization_id: str, framework_id: str, baseline_id: str | None, was: Former
) -> Prospect:
    """What adopting a framework with a baseline (null: without one) would lead to.

    For a new framework it costs what the adoption touches, unless that is a large part of all that is adopted.
    """
    if was == "same":
        return Prospect(stored_in(transaction, organization_id, framework_id), {})
    if was == "new":
        with suppress(GraphTooLarge):
            return _of_new(transaction, organization_id, framework_id, baseline_id)
    before = stored_coverage(transaction, organization_id)
    after = coverage_with(transaction, organization_id, framework_id, baseline_id)
    own = set(transaction.scalars(_IDS_OF, {"framework": framework_id}))
    levels = {
        control: (found.effective, after[control].computed.effective)
        for control, found in before.items()
        if control not in own
    }
    return Prospect({control: after[control] for control in own}, _differing(levels))


def _of_new(transaction: Transaction, organization_id: str, framework_id: str, baseline_id: str | None) -> Prospect:
    key = {"organization": organization_id, "framework": framework_id}
    rows = transaction.rows(_CONTROLS, key)
    baselines = {} if baseline_id is None else {framework_id: baseline_id}
    selected = selected_controls(transaction, baselines.values())
    places = {row.id: Place(row.parent_id, row.is_group) for row in rows}
    decisions = {row.id: row.is_applicable for row in rows if row.is_applicable is not None}
    left_out = frozenset(not_applicable(places, scopes_of(rows, decisions, baselines, selected)))
    requirements = [row.id for row in rows if row.is_requirement and row.id not in left_out]
    view = View(
        _WithFramework(transaction, organization_id, places, requirements, left_out),
        most_touched(transaction, organization_id),
    )
    changes = update(view, moved=places.keys())
    levels = {}
    for control, found in changes.items():
        node = view.node(control)
        if control not in places and found is not None and node is not None and node.effective is not None:
            levels[control] = node.effective, found.computed.effective
    return Prospect(
        {control: found for control, found in changes.items() if control in places and found}, _differing(levels)
    )


def _differing(levels: Mapping[str, tuple[Level, Level]]) -> dict[str, tuple[Level, Level]]:
    return {control: (before, after) for control, (before, after) in levels.items() if before != after}


class _WithFramework(StoredGraph):
    """The stored graph as it would be just after an adoption: nothing is covered yet in the framework.

    ``requirements`` are those that would apply, in catalog order, ``left_out`` the controls that would not.
    """

    def __init__(
        self,
        transaction: Transaction,
        organization_id: str,
        places: Mapping[str, Place],
        requirements: Sequence[str],
        left_out: Collection[str],
    ) -> None:
        super().__init__(transaction, organization_id)
        self._places = places
        self._left_out = left_out
        self._requirements_below: dict[str, list[str]] = {}
        for control, groups in groups_among(places, requirements).items():
            for group in groups:
                self._requirements_below.setdefault(group, []).append(control)

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
                assessed=node.assessed if applies else Level.NONE,
                effective=None,
                own=None,
                rank=None,
                is_assessed=node.is_assessed,
            )
        return control


_CONTROL, _STATEMENT = sql_table(Control), sql_table(ControlCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_OF_FRAMEWORK = _CONTROL.c.framework_id == bindparam("framework")

_IDS_OF = select(_CONTROL.c.id).where(_OF_FRAMEWORK)
_CONTROLS = (
    select(
        *SCOPE_COLUMNS,
        _CONTROL.c.parent_id,
        is_requirement().label("is_requirement"),
        _STATEMENT.c.is_applicable,
    )
    .outerjoin(_STATEMENT, (_STATEMENT.c.control_id == _CONTROL.c.id) & (_STATEMENT.c.organization_id == _ORGANIZATION))
    .where(_OF_FRAMEWORK)
    .order_by(_CONTROL.c.position, _CONTROL.c.id)
)
