"""The past of an organization in a bundle: the array ``history``, with the rows of its history tables.

A bundle without it begins the past of the organization when it is loaded. With it, the past is that of the database
that the bundle was dumped from, if the organization is new where it is loaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic.alias_generators import to_camel
from sqlalchemy import BindParameter, ColumnElement, bindparam, delete, or_, select, update

from normata.bundle.stored_values import columns_of, insertion
from normata.core.changes.source import Fault, Row
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.history_triggers import FOREVER
from normata.core.schema.table import Table, sql_table
from normata.frameworks.baseline_model import Baseline
from normata.frameworks.evidence_model import ControlEvidence
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage, FrameworkAdoption, SetAsideMatch
from normata.history.model import (
    AdoptionHistory,
    AssessmentHistory,
    BaselineControlHistory,
    ControlEvidenceHistory,
    ControlHistory,
    EffectiveHistory,
    EvidenceHistory,
    FrameworkHistory,
    HistoryStart,
    LinkHistory,
    MatchHistory,
    RiskHistory,
    SetAsideHistory,
)
from normata.links.model import Link
from normata.records.assurance import Evidence, Risk

_TABLE = "table"  # the member of a row that names its table

_OWN: Mapping[type[Table], type[Table]] = {
    AssessmentHistory: ControlCoverage,
    EffectiveHistory: EffectiveCoverage,
    AdoptionHistory: FrameworkAdoption,
    SetAsideHistory: SetAsideMatch,
    RiskHistory: Risk,
    EvidenceHistory: Evidence,
    LinkHistory: Link,
    ControlEvidenceHistory: ControlEvidence,
}
_CATALOGS: tuple[type[Table], ...] = (FrameworkHistory, ControlHistory, MatchHistory, BaselineControlHistory)
_OF_ORGANIZATIONS: tuple[type[Table], ...] = (HistoryStart, *_OWN)
_BY_NAME: Mapping[str, type[Table]] = {
    to_camel(str(table.__tablename__)): table for table in (*_OF_ORGANIZATIONS, *_CATALOGS)
}
_ORGANIZATION: BindParameter[str] = bindparam("organization")


# --- Dumping


def history_rows(
    transaction: Transaction, organization_id: str, frameworks: Callable[[], Any]
) -> Iterator[dict[str, Any]]:
    """The rows of the array: the organization's own, and those of the catalogs in its bundle."""
    controls = select(sql_table(Control).c.id).where(sql_table(Control).c.framework_id.in_(frameworks()))
    baselines = select(sql_table(Baseline).c.id).where(sql_table(Baseline).c.framework_id.in_(frameworks()))
    within: Mapping[type[Table], Callable[[Any], ColumnElement[bool]]] = {
        FrameworkHistory: lambda columns: columns.id.in_(frameworks()),
        ControlHistory: lambda columns: columns.framework_id.in_(frameworks()),
        MatchHistory: lambda columns: columns.target_control_id.in_(controls),
        BaselineControlHistory: lambda columns: columns.baseline_id.in_(baselines),
    }
    for name, table in _BY_NAME.items():
        columns = sql_table(table).c
        condition: ColumnElement[bool] = columns.organization_id == _ORGANIZATION
        if table in within:
            condition = within[table](columns) & or_(columns.organization_id.is_(None), condition)
        names = [to_camel(column.name) for column in columns]
        statement = select(*columns).where(condition).order_by(*sql_table(table).primary_key)
        for row in transaction.stream(statement, {"organization": organization_id}):
            yield {_TABLE: name, **dict(zip(names, row, strict=True))}


# --- Loading


class LoadedHistory:
    """The rows of the array in a load, by their tables."""

    def __init__(self, rows: Iterable[Row], faults: list[Fault]) -> None:
        """What is wrong with a row goes to ``faults``."""
        self._rows: defaultdict[type[Table], list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            table = _BY_NAME.get(str(row.values.get(_TABLE)))
            if table is None:
                faults.append(row.fault(_TABLE, f"must be one of {', '.join(_BY_NAME)}"))
                continue
            found = _read(table, row, faults)
            if found is not None:
                self._rows[table].append(found)

    def write(self, unit: UnitOfWork, organizations: Collection[str], frameworks: Collection[str]) -> None:
        """Write the past of new ``organizations``, and of new ``frameworks`` among the catalogs.

        What the triggers have noted of them during the load is replaced. Rows that hold today are written once more as
        they are, so that the triggers note what differs.
        """
        if not self._rows:
            return
        known = {row["organization_id"] for row in self._rows[HistoryStart]}.intersection(organizations)
        for table, base in _OWN.items():
            self._replace(unit, table, "organization_id", known)
            if base is EffectiveCoverage:
                _restore_ranks(unit, self._rows[table])
            for organization_id in sorted(known):
                unit.rows(_as_it_is(base), {"organization": organization_id})
        self._replace(unit, HistoryStart, "organization_id", known)
        self._replace(unit, FrameworkHistory, "id", frameworks)
        self._replace(unit, ControlHistory, "framework_id", frameworks)
        of_frameworks = _controls_of(unit, frameworks)
        self._replace(unit, MatchHistory, "target_control_id", of_frameworks)
        self._replace(unit, BaselineControlHistory, "control_id", of_frameworks)

    def _replace(self, unit: UnitOfWork, table: type[Table], column: str, values: Collection[str]) -> None:
        """Replace the rows with one of the values in a column."""
        sql = sql_table(table)
        for batch in batches(sorted(values)):
            unit.rows(delete(sql).where(sql.c[column].in_(batch)))
        for batch in batches([row for row in self._rows[table] if row[column] in values]):
            unit.execute_many(insertion(table), batch)


def _read(table: type[Table], row: Row, faults: list[Fault]) -> dict[str, Any] | None:
    """A row with all its columns; null, with faults, if it is not."""
    known = columns_of(table)
    values = {name: value for name, value in row.values.items() if name != _TABLE}
    if values.keys() != known.keys():
        faults.append(row.fault(None, f"must have just the fields {_TABLE}, {', '.join(known)}"))
        return None
    found = {}
    for name, value in values.items():
        column, reason_against = known[name]
        if (reason := reason_against(value)) is not None:
            faults.append(row.fault(name, reason))
        found[column] = value
    return found


def _restore_ranks(unit: UnitOfWork, rows: Iterable[Mapping[str, Any]]) -> None:
    """Give coverage that was computed anew the ranks that it had: any that proofs can rest on will do."""
    current = [row for row in rows if row["valid_to"] == FOREVER]
    values = [
        {"organization": row["organization_id"], "control": row["control_id"], "of_status": row["status"]}
        | {"new_rank": row["rank"]}
        for row in current
    ]
    for batch in batches(values):
        unit.execute_many(_RANK, batch)


@cache
def _as_it_is(table: type[Table]) -> Any:
    """Write the rows of an organization as they are."""
    columns = sql_table(table).c
    return (
        update(sql_table(table))
        .where(columns.organization_id == _ORGANIZATION)
        .values(organization_id=columns.organization_id)
        .returning(columns.organization_id)
    )


def _controls_of(unit: UnitOfWork, frameworks: Collection[str]) -> set[str]:
    return {control for batch in batches(sorted(frameworks)) for control in unit.scalars(_CONTROLS, {"ids": batch})}


_EFFECTIVE = sql_table(EffectiveCoverage)
_CONTROLS = select(sql_table(Control).c.id).where(
    sql_table(Control).c.framework_id.in_(bindparam("ids", expanding=True))
)
_RANK = (
    update(_EFFECTIVE)
    .where(
        _EFFECTIVE.c.organization_id == _ORGANIZATION,
        _EFFECTIVE.c.control_id == bindparam("control"),
        _EFFECTIVE.c.status == bindparam("of_status", type_=_EFFECTIVE.c.status.type),
    )
    .values(rank=bindparam("new_rank"))
)
