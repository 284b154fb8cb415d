"""Which controls of adopted frameworks apply to an organization.

The assessment of a control decides. If it is null, the nearest group above with a decision does, if that excludes it. A
requirement outside of the adoption's baseline does not apply either: only its own assessment can include it. A
mandatory control applies unless its own assessment has excluded it, which is no longer allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction, batches
from normata.core.db.upsert import upsert
from normata.core.schema.table import sql_table
from normata.coverage.engine import Place, upwards
from normata.coverage.graph import GraphTooLarge
from normata.coverage.hierarchy import BELOW, groups_above
from normata.frameworks.baselines import is_in_baseline
from normata.frameworks.counting import is_group
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage, FrameworkAdoption


class Scope(NamedTuple):
    """What decides whether a control applies, besides the groups above it.

    ``decision`` is that of its assessment, null if that says nothing. ``in_baseline`` is true if the adoption has no
    baseline.
    """

    is_group: bool
    is_mandatory: bool
    decision: bool | None
    in_baseline: bool = True


def applies(scope: Scope, decision_above: bool | None) -> bool:
    """Whether a control applies; ``decision_above`` is that of the nearest group above it that has one."""
    if scope.decision is not None:
        return scope.decision
    if scope.is_mandatory:
        return True
    if decision_above is False:
        return False
    return scope.is_group or scope.in_baseline


def not_applicable(places: Mapping[str, Place], scopes: Mapping[str, Scope]) -> Iterator[str]:
    """The controls that do not apply, computed for whole frameworks."""
    decided_from: dict[str | None, bool | None] = {None: None}  # by the parent with which a chain begins
    decisions = {control: scope.decision for control, scope in scopes.items() if scope.is_group}
    for control, scope in scopes.items():
        parent = places[control].parent
        if parent not in decided_from:
            decided_from[parent] = nearest_decision(upwards(parent, places), decisions)
        if not applies(scope, decided_from[parent]):
            yield control


def settle(unit: UnitOfWork, organization_id: str, controls: Collection[str], most: int) -> set[str]:
    """Store whether controls and those below them apply; returns the new ones and those for which this has changed.

    ``controls`` are new, have moved, or have another decision. Raises GraphTooLarge for more than ``most`` controls,
    and then stores nothing.
    """
    key = {"organization": organization_id}
    concerned = {*controls}
    for batch in batches(sorted(controls)):
        concerned.update(unit.scalars(BELOW.limit(most + 1), {"ids": batch}))
    if len(concerned) > most:
        raise GraphTooLarge
    above, rows = _around(unit, key, concerned)
    decisions = {control: row.decision for control, row in rows.items()}
    changed = []
    for control in sorted(concerned & rows.keys()):
        row = rows[control]
        now = applies(_scope(row, decisions), nearest_decision(above.get(control, ()), decisions))
        if row.applies is None or row.applies != now:
            changed.append({**key, "control": control, "status": "NONE", "own": "NONE", "indirect": False, "now": now})
    for some in batches(changed):
        unit.execute_many(_UPSERT, some)
    return {str(row["control"]) for row in changed}


def without_decisions(
    transaction: Transaction, organization_id: str, control: str, most: int
) -> dict[str, bool] | None:
    """The controls that would begin or stop to apply without the decision of one assessment; null if too many."""
    key = {"organization": organization_id}
    concerned = {control, *transaction.scalars(BELOW.limit(most + 1), {"ids": [control]})}
    if len(concerned) > most:
        return None
    above, rows = _around(transaction, key, concerned)
    decisions = {one: None if one == control else row.decision for one, row in rows.items()}
    found = {
        one: applies(_scope(rows[one], decisions), nearest_decision(above.get(one, ()), decisions))
        for one in concerned & rows.keys()
    }
    return {one: then for one, then in found.items() if then != rows[one].applies}


def _around(
    transaction: Transaction, key: Mapping[str, str], controls: Collection[str]
) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """The groups above controls, and the scopes of all of these."""
    above = groups_above(transaction, controls)
    rows = {
        row.id: row
        for batch in batches(sorted({*controls}.union(*above.values())))
        for row in transaction.rows(_SCOPES, {**key, "ids": batch})
    }
    return above, rows


def nearest_decision(groups: Iterable[str], decisions: Mapping[str, bool | None]) -> bool | None:
    """The decision of the first of these groups that has one; else null."""
    return next((found for group in groups if (found := decisions.get(group)) is not None), None)


def scopes_of(
    rows: Iterable[Any],
    decisions: Mapping[str, bool | None],
    baselines: Mapping[str, str] = {},
    selected: Collection[str] = (),
) -> dict[str, Scope]:
    """The scopes of controls, from rows with id, framework_id, is_group and is_mandatory.

    ``baselines`` has those of the adoptions by framework, ``selected`` the controls in any of these.
    """
    return {
        row.id: Scope(
            row.is_group,
            row.is_mandatory,
            decisions.get(row.id),
            in_baseline=row.framework_id not in baselines or row.id in selected,
        )
        for row in rows
    }


def _scope(row: Any, decisions: Mapping[str, bool | None]) -> Scope:
    return Scope(row.is_group, row.is_mandatory, decisions.get(row.id), row.in_baseline)


_CONTROL, _ADOPTION = sql_table(Control), sql_table(FrameworkAdoption)
_STATEMENT, _EFFECTIVE = sql_table(ControlCoverage), sql_table(EffectiveCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

SCOPE_COLUMNS: Sequence[Any] = (
    _CONTROL.c.id,
    is_group().label("is_group"),
    _CONTROL.c.is_mandatory,
    _CONTROL.c.framework_id,
)
_of_control = (_STATEMENT.c.control_id == _CONTROL.c.id) & (_STATEMENT.c.organization_id == _ORGANIZATION)
_SCOPES = (
    select(
        *SCOPE_COLUMNS,
        is_in_baseline(_CONTROL, _ADOPTION).label("in_baseline"),
        _STATEMENT.c.is_applicable.label("decision"),
        _EFFECTIVE.c.applies,
    )
    .join(
        _ADOPTION,
        (_ADOPTION.c.framework_id == _CONTROL.c.framework_id) & (_ADOPTION.c.organization_id == _ORGANIZATION),
    )
    .outerjoin(_STATEMENT, _of_control)
    .outerjoin(_EFFECTIVE, (_EFFECTIVE.c.control_id == _CONTROL.c.id) & (_EFFECTIVE.c.organization_id == _ORGANIZATION))
    .where(_CONTROL.c.id.in_(_IDS))
)
_UPSERT = upsert(
    _EFFECTIVE,
    {
        "organization_id": _ORGANIZATION,
        "control_id": bindparam("control"),
        "status": bindparam("status", type_=_EFFECTIVE.c.status.type),
        "own": bindparam("own", type_=_EFFECTIVE.c.own.type),
        "is_indirect": bindparam("indirect", type_=_EFFECTIVE.c.is_indirect.type),
        "applies": bindparam("now", type_=_EFFECTIVE.c.applies.type),
    },
    key=("organization_id", "control_id"),
    update=("applies",),
)
