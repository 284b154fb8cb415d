"""Brings the stored effective coverage of an organization up to date, in the transaction of whatever changed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, bindparam, delete, insert, select, update

from normata.changes.unit_of_work import UnitOfWork
from normata.db.transaction import Transaction, batches
from normata.frameworks.coverage.engine import Computed, Level, compute
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, FrameworkAdoption
from normata.frameworks.visibility import match_visible_to
from normata.schema.table import Table, sql_table

Row = Mapping[str, Any]
Changes = Mapping[type[Table], Sequence[tuple[Row | None, Row]]]


def recompute(unit: UnitOfWork, organization_id: str) -> int:
    """Compute and store; only rows that differ are written. Returns how many did."""
    computed = current_coverage(unit, organization_id)
    stored = stored_coverage(unit, organization_id)
    key = {"organization": organization_id}
    gone = [{**key, "control": control_id} for control_id in stored.keys() - computed.keys()]
    new: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for control_id, result in computed.items():
        if stored.get(control_id) != result:
            row = {
                **key,
                "control": control_id,
                "new_status": result.effective.name,
                "new_indirect": result.indirect,
                "new_own": result.own.name,
            }
            (changed if control_id in stored else new).append(row)
    for statement, rows in ((_REMOVE, gone), (_ADD, new), (_CHANGE, changed)):
        for batch in batches(rows):
            unit.execute_many(statement, batch)
    return len(gone) + len(new) + len(changed)


def current_coverage(transaction: Transaction, organization_id: str) -> dict[str, Computed]:
    """What follows from what is stored now, for every control of the adopted frameworks."""
    key = {"organization": organization_id}
    parents = dict(map(tuple, transaction.rows(_PARENTS, key)))
    matches = transaction.rows(_MATCHES, key)
    statements = transaction.rows(_STATEMENTS, key)
    return compute(
        parents,
        ((source_id, target_id, Level[level]) for source_id, target_id, level in matches),
        {control_id: Level[status] for control_id, status, _ in statements},
        [control_id for control_id, _, is_applicable in statements if not is_applicable],
    )


def stored_coverage(transaction: Transaction, organization_id: str) -> dict[str, Computed]:
    """What the lists show."""
    rows = transaction.rows(_STORED, {"organization": organization_id})
    return {row.control_id: Computed(Level[row.status], Level[row.own], row.is_indirect) for row in rows}


def affected_organizations(transaction: Transaction, changes: Changes) -> list[str]:
    """The organizations whose coverage may differ now that rows have changed.

    ``changes`` has, by table, each row as it was (null for a new one) and as it is. What a row was counts as much as
    what it is: where a match leads to another control now, the control that it led to is affected, too.
    """

    def changed(table: type[Table], column: str) -> set[str]:
        return {row[column] for row in _rows_that_matter(changes, table)}

    matches = list(_rows_that_matter(changes, ControlMatch))
    shared = {row["target_control_id"] for row in matches if row["organization_id"] is None}
    affected = changed(FrameworkAdoption, "organization_id") | changed(ControlCoverage, "organization_id")
    affected |= {row["organization_id"] for row in matches} - {None}
    for statement, ids in ((_ADOPTERS, changed(Control, "framework_id")), (_ADOPTERS_OF_CONTROLS, shared)):
        for batch in batches(sorted(ids)):
            affected.update(transaction.scalars(statement, {"ids": batch}))
    return sorted(affected)


# The columns that coverage follows from.
_MATTERS: Mapping[type[Table], Sequence[str]] = {
    Control: ("parent_id",),
    ControlMatch: ("source_control_id", "target_control_id", "match_level", "organization_id"),
    FrameworkAdoption: ("framework_id",),
    ControlCoverage: ("control_id", "coverage_status", "is_applicable"),
}


def _rows_that_matter(changes: Changes, table: type[Table]) -> Iterator[Row]:
    for before, after in changes.get(table, ()):
        if before is None:
            yield after
        elif any(before[name] != after[name] for name in _MATTERS[table]):
            yield before
            yield after


_CONTROL, _MATCH, _ADOPTION = sql_table(Control), sql_table(ControlMatch), sql_table(FrameworkAdoption)
_STATEMENT, _EFFECTIVE = sql_table(ControlCoverage), sql_table(EffectiveCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_adopted = select(_ADOPTION.c.framework_id).where(_ADOPTION.c.organization_id == _ORGANIZATION)
_controls = select(_CONTROL.c.id).where(_CONTROL.c.framework_id.in_(_adopted))
_PARENTS = select(_CONTROL.c.id, _CONTROL.c.parent_id).where(_CONTROL.c.framework_id.in_(_adopted))
# Not joined to the controls: SQLite gathers their ids once and has matches found among them in half of the time.
_MATCHES = select(_MATCH.c.source_control_id, _MATCH.c.target_control_id, _MATCH.c.match_level).where(
    _MATCH.c.source_control_id.in_(_controls),
    _MATCH.c.target_control_id.in_(_controls),
    match_visible_to(_ORGANIZATION),
)
_STATEMENTS = select(_STATEMENT.c.control_id, _STATEMENT.c.coverage_status, _STATEMENT.c.is_applicable).where(
    _STATEMENT.c.organization_id == _ORGANIZATION
)
_STORED = select(_EFFECTIVE.c.control_id, _EFFECTIVE.c.status, _EFFECTIVE.c.own, _EFFECTIVE.c.is_indirect).where(
    _EFFECTIVE.c.organization_id == _ORGANIZATION
)
_ADOPTERS = select(_ADOPTION.c.organization_id).where(_ADOPTION.c.framework_id.in_(_IDS)).distinct()
_ADOPTERS_OF_CONTROLS = (
    select(_ADOPTION.c.organization_id)
    .join(_CONTROL, _CONTROL.c.framework_id == _ADOPTION.c.framework_id)
    .where(_CONTROL.c.id.in_(_IDS))
    .distinct()
)

_is_meant = (_EFFECTIVE.c.organization_id == _ORGANIZATION) & (_EFFECTIVE.c.control_id == bindparam("control"))
_REMOVE = delete(_EFFECTIVE).where(_is_meant)
_CHANGE = (
    update(_EFFECTIVE)
    .where(_is_meant)
    .values(status=bindparam("new_status"), is_indirect=bindparam("new_indirect"), own=bindparam("new_own"))
)
_ADD = insert(_EFFECTIVE).values(
    organization_id=_ORGANIZATION,
    control_id=bindparam("control"),
    status=bindparam("new_status"),
    is_indirect=bindparam("new_indirect"),
    own=bindparam("new_own"),
)
