"""Conflicts: assessments that cannot be right, given the matches or other assessments.

An assessment is NONE or PARTIAL although a FULL match leads to the control from a FULL control. Or it is FULL for a
group with an applicable requirement that is assessed lower. Conflicts do not change the effective status.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from sqlalchemy import BindParameter, bindparam, or_, select, update

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage.hierarchy import IsBelow, below_groups, groups_above, is_requirement_where
from normata.frameworks.counting import applies, assessed_status, is_group, match_counts
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage

Conflict = Literal["MATCHES", "BELOW"]
CONFLICT_DESCRIPTION = (
    "Why the assessment cannot be right: `MATCHES` if a match makes the control `FULL` that is assessed lower, `BELOW`"
    " if it is assessed `FULL` and a requirement below it is assessed lower."
)


def concerned_by(unit: UnitOfWork, organization_id: str, changed: Collection[str]) -> set[str]:
    """The controls whose conflict may have begun or ended by changes of these."""
    targets = {
        target
        for batch in batches(sorted(changed))
        for target in unit.scalars(_TARGETS, {"organization": organization_id, "ids": batch})
    }
    above = groups_above(unit, changed)
    return {*changed, *targets, *(group for groups in above.values() for group in groups)}


def settle_conflicts(
    unit: UnitOfWork, organization_id: str, controls: Collection[str] | None = None
) -> dict[str, tuple[Conflict | None, Conflict | None]]:
    """Store which of these controls are in conflict, null for all.

    Returns those of which that has changed, each as it was and as it is.
    """
    key = {"organization": organization_id}
    found: dict[str, tuple[Conflict | None, Conflict | None]] = {}
    for rows in _assessed(unit, key, controls):
        now = conflicts_of(unit, organization_id, rows)
        for row in rows:
            if row.conflict != now.get(row.control_id):
                found[row.control_id] = row.conflict, now.get(row.control_id)
    changes = [{**key, "control": control, "new": after} for control, (_, after) in sorted(found.items())]
    for batch in batches(changes):
        unit.execute_many(_STORE, batch)
    return found


def current_conflicts(transaction: Transaction, organization_id: str) -> dict[str, Conflict]:
    """The conflicts computed from stored assessments and coverage, for a comparison with the stored conflicts."""
    [rows] = _assessed(transaction, {"organization": organization_id}, None)
    return conflicts_of(transaction, organization_id, rows)


def conflicts_of(transaction: Transaction, organization_id: str, rows: Iterable[Any]) -> dict[str, Conflict]:
    """The conflicts among rows with the assessed and the effective status."""
    key = {"organization": organization_id}
    assessed = [row for row in rows if row.applies and row.assessed is not None]
    less = [row for row in assessed if row.assessed != "FULL" and row.status == "FULL"]
    found: dict[str, Conflict] = {row.control_id: "MATCHES" for row in less if not row.is_group}
    for batch in batches([row.control_id for row in less if row.is_group]):  # for other controls roll-up is no conflict
        found.update(dict.fromkeys(_matched(transaction, key, batch), "MATCHES"))
    for batch in batches([row.control_id for row in assessed if row.assessed == "FULL" and row.is_group]):
        found.update(dict.fromkeys(transaction.scalars(_LESS_BELOW, {**key, "ids": batch}), "BELOW"))
    return found


def _matched(transaction: Transaction, key: Mapping[str, str], groups: Sequence[str]) -> set[str]:
    """The groups among these to which a FULL match leads from a FULL control.

    In two steps: PostgreSQL joins in the wrong order where it has no statistics of coverage that has just been stored.
    After a load of 50,000 controls that took half a minute for each batch.
    """
    targets: defaultdict[str, list[str]] = defaultdict(list)
    for row in transaction.rows(_FULL_MATCHES, {**key, "ids": groups}):
        targets[row.source_control_id].append(row.target_control_id)
    return {
        target
        for batch in batches(sorted(targets))
        for source in transaction.scalars(_FULL_AMONG, {**key, "ids": batch})
        for target in targets[source]
    }


def _assessed(
    transaction: Transaction, key: Mapping[str, str], controls: Collection[str] | None
) -> Iterable[list[Any]]:
    if controls is None:
        return [transaction.rows(_ASSESSED, key)]
    return [transaction.rows(_ASSESSED_AMONG, {**key, "ids": batch}) for batch in batches(sorted(controls))]


_CONTROL, _MATCH = sql_table(Control), sql_table(ControlMatch)
_STATEMENT, _EFFECTIVE = sql_table(ControlCoverage), sql_table(EffectiveCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_ASSESSED = (
    select(
        _EFFECTIVE.c.control_id,
        _EFFECTIVE.c.conflict,
        _EFFECTIVE.c.status,
        applies(_EFFECTIVE).label("applies"),
        assessed_status().label("assessed"),
        is_group().label("is_group"),
    )
    .join(_CONTROL, _CONTROL.c.id == _EFFECTIVE.c.control_id)
    .outerjoin(
        _STATEMENT,
        (_STATEMENT.c.control_id == _EFFECTIVE.c.control_id) & (_STATEMENT.c.organization_id == _ORGANIZATION),
    )
    .where(
        _EFFECTIVE.c.organization_id == _ORGANIZATION,
        or_(assessed_status().is_not(None), _EFFECTIVE.c.conflict.is_not(None)),
    )
)
_ASSESSED_AMONG = _ASSESSED.where(_EFFECTIVE.c.control_id.in_(_IDS))

_from_full = select(_MATCH.c.target_control_id).where(_MATCH.c.match_level == "FULL", match_counts(_ORGANIZATION))
_TARGETS = _from_full.where(_MATCH.c.source_control_id.in_(_IDS))
_FULL_MATCHES = _from_full.add_columns(_MATCH.c.source_control_id).where(_MATCH.c.target_control_id.in_(_IDS))
_FULL_AMONG = select(_EFFECTIVE.c.control_id).where(
    _EFFECTIVE.c.organization_id == _ORGANIZATION,
    _EFFECTIVE.c.control_id.in_(_IDS),
    _EFFECTIVE.c.status == "FULL",
    applies(_EFFECTIVE),
)
_below = below_groups()
_LESS_BELOW = (
    select(_below.c.group_id)
    .join(
        _EFFECTIVE,
        IsBelow(_EFFECTIVE.c.control_id, _below.c.id) & (_EFFECTIVE.c.organization_id == _ORGANIZATION),
    )
    .join(
        _STATEMENT,
        IsBelow(_STATEMENT.c.control_id, _below.c.id) & (_STATEMENT.c.organization_id == _ORGANIZATION),
    )
    .where(is_requirement_where(_below, applies(_EFFECTIVE), assessed_status() < "FULL"))
    .distinct()
)
_STORE = (
    update(_EFFECTIVE)
    .where(_EFFECTIVE.c.organization_id == _ORGANIZATION, _EFFECTIVE.c.control_id == bindparam("control"))
    .values(conflict=bindparam("new", type_=_EFFECTIVE.c.conflict.type))
)
