"""What coverage follows from: the columns, and the organizations that a change of rows concerns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, bindparam, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import Table, sql_table
from normata.frameworks.baseline_model import BaselineControl
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, FrameworkAdoption, SetAsideMatch

Row = Mapping[str, Any]
Changes = Mapping[type[Table], Sequence[tuple[Row | None, Row]]]


def affected_organizations(transaction: Transaction, changes: Changes) -> list[str]:
    """The organizations whose coverage may change because rows have changed.

    ``changes`` has, by table, each row before (null for a new one) and after. Both matter: if a match now leads to
    another control, the control to which it led before is affected, too.
    """

    def changed(table: type[Table], column: str) -> set[str]:
        return {row[column] for row in _rows_that_matter(changes, table)}

    matches = list(_rows_that_matter(changes, ControlMatch))
    shared = {row["target_control_id"] for row in matches if row["organization_id"] is None}
    affected = changed(FrameworkAdoption, "organization_id") | changed(ControlCoverage, "organization_id")
    affected |= changed(SetAsideMatch, "organization_id")
    affected |= {row["organization_id"] for row in matches} - {None}
    frameworks = changed(Control, "framework_id")
    # Without a join to the adoptions: within a large load there are no statistics, and PostgreSQL would read all
    # controls of the adopted frameworks for each batch.
    for batch in batches(sorted(shared)):
        frameworks.update(transaction.scalars(_FRAMEWORKS_OF, {"ids": batch}))
    for statement, ids in (
        (_ADOPTERS, frameworks),
        (_ADOPTERS_OF_BASELINES, changed(BaselineControl, "baseline_id")),
    ):
        for batch in batches(sorted(ids)):
            affected.update(transaction.scalars(statement, {"ids": batch}))
    return sorted(affected)


# The columns from which coverage follows, by table.
MATTERS: Mapping[type[Table], Sequence[str]] = {
    Control: ("parent_id", "type", "is_decomposed", "is_mandatory"),
    ControlMatch: ("source_control_id", "target_control_id", "match_level", "organization_id", "retired_at"),
    SetAsideMatch: ("match_id",),
    BaselineControl: ("retired_at",),
    FrameworkAdoption: ("framework_id", "baseline_id"),
    ControlCoverage: ("control_id", "coverage_status", "is_applicable"),
}


def _rows_that_matter(changes: Changes, table: type[Table]) -> Iterator[Row]:
    for before, after in changes.get(table, ()):
        if before is None:
            yield after
        elif any(before[name] != after[name] for name in MATTERS[table]):
            yield before
            yield after


_CONTROL, _ADOPTION = sql_table(Control), sql_table(FrameworkAdoption)
_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_ADOPTERS = select(_ADOPTION.c.organization_id).where(_ADOPTION.c.framework_id.in_(_IDS)).distinct()
_ADOPTERS_OF_BASELINES = select(_ADOPTION.c.organization_id).where(_ADOPTION.c.baseline_id.in_(_IDS)).distinct()
_FRAMEWORKS_OF = select(_CONTROL.c.framework_id).where(_CONTROL.c.id.in_(_IDS)).distinct()
