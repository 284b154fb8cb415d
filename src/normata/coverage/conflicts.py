"""Conflicts: assessments that cannot be right, given the matches or other assessments.

An assessment is NONE or PARTIAL although a FULL match leads to the control from a FULL control. Or it is FULL for a
group with an applicable requirement that is assessed lower. Conflicts do not change the effective status.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import BindParameter, bindparam, or_, select, update

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage.graph import Conflict, Node, View
from normata.coverage.hierarchy import IsIdOf, below_groups, is_requirement_where
from normata.coverage.incremental import Ranked
from normata.frameworks.counting import applies, assessed_status, is_group, match_counts
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage

CONFLICT_DESCRIPTION = (
    "Why the assessment cannot be right: `MATCHES` if a match makes the control `FULL` that is assessed lower, `BELOW`"
    " if it is assessed `FULL` and a requirement below it is assessed lower."
)


class Candidate(NamedTuple):
    """A control that may be in conflict.

    ``conflict`` is the stored one, ``status`` the effective status, and ``assessed`` that of the assessment, or null.
    """

    control_id: str
    conflict: Conflict | None
    status: str
    applies: bool
    assessed: str | None
    is_group: bool


def candidates(
    view: View,
    changes: Mapping[str, Ranked | None],
    *,
    relevelled: Collection[str],
    reassessed: Collection[str],
    rematched: Collection[str],
) -> list[Candidate]:
    """The controls whose conflict may have begun or ended by changes of coverage, which are not in the view yet.

    Apart from the changed controls, these are the targets of the ``relevelled``, which have become FULL or are no
    longer, and the groups above those that are ``reassessed``, have another parent or type, or began or stopped to
    apply. ``rematched`` are both ends of changed matches. Raises GraphTooLarge.
    """
    view.read_matches(relevelled)
    view.read_above(reassessed)
    concerned = {*changes, *reassessed, *rematched}
    concerned.update(match.target for control in relevelled for match in view.ahead(control))
    concerned.update(group for control in reassessed for group in view.above(control))
    found = (_candidate(control, view.node(control), changes) for control in sorted(concerned))
    return [one for one in found if one is not None and (one.assessed or one.conflict)]


def _candidate(control: str, node: Node | None, changes: Mapping[str, Ranked | None]) -> Candidate | None:
    """A control as it is after the changes; null if it is in no adopted framework."""
    if node is None:
        return None
    status, is_applicable = node.effective, node.is_applicable
    if control in changes:
        found = changes[control]
        status = found and found.computed.effective
        is_applicable = found is not None and found.applies
    if status is None:
        return None
    assessed = node.assessed.name if node.is_assessed else None
    return Candidate(control, node.conflict, status.name, is_applicable, assessed, node.is_group)


def settle_conflicts(
    unit: UnitOfWork, organization_id: str, controls: Iterable[Candidate] | None = None
) -> dict[str, tuple[Conflict | None, Conflict | None]]:
    """Store which of these controls are in conflict, null for all.

    Returns those of which that has changed, each as it was and as it is.
    """
    key = {"organization": organization_id}
    rows = list(_assessed(unit, organization_id) if controls is None else controls)
    now = conflicts_of(unit, organization_id, rows)
    found: dict[str, tuple[Conflict | None, Conflict | None]] = {
        row.control_id: (row.conflict, now.get(row.control_id))
        for row in rows
        if row.conflict != now.get(row.control_id)
    }
    changes = [{**key, "control": control, "new": after} for control, (_, after) in sorted(found.items())]
    for batch in batches(changes):
        unit.execute_many(_STORE, batch)
    return found


def current_conflicts(transaction: Transaction, organization_id: str) -> dict[str, Conflict]:
    """The conflicts computed from stored assessments and coverage, for a comparison with the stored conflicts."""
    return conflicts_of(transaction, organization_id, _assessed(transaction, organization_id))


def conflicts_of(transaction: Transaction, organization_id: str, rows: Iterable[Candidate]) -> dict[str, Conflict]:
    """The conflicts among these controls."""
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


def _assessed(transaction: Transaction, organization_id: str) -> list[Candidate]:
    return [Candidate(*row) for row in transaction.rows(_ASSESSED, {"organization": organization_id})]


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

_FULL_MATCHES = select(_MATCH.c.target_control_id, _MATCH.c.source_control_id).where(
    _MATCH.c.match_level == "FULL", match_counts(_ORGANIZATION), _MATCH.c.target_control_id.in_(_IDS)
)
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
        IsIdOf(_EFFECTIVE.c.control_id, _below.c.id) & (_EFFECTIVE.c.organization_id == _ORGANIZATION),
    )
    .join(
        _STATEMENT,
        IsIdOf(_STATEMENT.c.control_id, _below.c.id) & (_STATEMENT.c.organization_id == _ORGANIZATION),
    )
    .where(is_requirement_where(_below, applies(_EFFECTIVE), assessed_status() < "FULL"))
    .distinct()
)
_STORE = (
    update(_EFFECTIVE)
    .where(_EFFECTIVE.c.organization_id == _ORGANIZATION, _EFFECTIVE.c.control_id == bindparam("control"))
    .values(conflict=bindparam("new", type_=_EFFECTIVE.c.conflict.type))
)
