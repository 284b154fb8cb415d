"""Brings the stored effective coverage of an organization up to date, in the transaction of whatever changed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, delete, insert, select, update

from normata.database import batches
from normata.frameworks.coverage import Computed, Level, compute
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, FrameworkAdoption
from normata.vocabulary import sql_table


def recompute(connection: Connection, organization_id: str) -> int:
    """Compute and store; only rows that differ are written. Returns how many did."""
    computed = current_coverage(connection, organization_id)
    stored = stored_coverage(connection, organization_id)
    gone = [{"control": control_id} for control_id in stored.keys() - computed.keys()]
    new, changed = [], []
    for control_id, result in computed.items():
        if control_id not in stored:
            new.append(
                {
                    "organization_id": organization_id,
                    "control_id": control_id,
                    "status": result.effective.name,
                    "is_indirect": result.indirect,
                }
            )
        elif stored[control_id] != result:
            changed.append(
                {"control": control_id, "new_status": result.effective.name, "new_is_indirect": result.indirect}
            )
    here = EffectiveCoverage.organization_id == organization_id
    row = and_(here, EffectiveCoverage.control_id == bindparam("control"))
    if gone:
        connection.execute(delete(EffectiveCoverage).where(row), gone)
    if new:
        connection.execute(insert(EffectiveCoverage), new)
    if changed:
        connection.execute(
            update(sql_table(EffectiveCoverage))  # the table, not the class: the ORM would want a key for each row
            .where(row)
            .values(status=bindparam("new_status"), is_indirect=bindparam("new_is_indirect")),
            changed,
        )
    return len(gone) + len(new) + len(changed)


def current_coverage(connection: Connection, organization_id: str) -> dict[str, Computed]:
    """What follows from what is stored now, for every control of the adopted frameworks."""
    adopted = select(FrameworkAdoption.framework_id).where(FrameworkAdoption.organization_id == organization_id)
    parents = connection.execute(select(Control.id, Control.parent_id).where(Control.framework_id.in_(adopted)))
    controls = select(Control.id).where(Control.framework_id.in_(adopted))
    # Not joined to the controls: SQLite gathers their ids once and has matches found among them in half of the time.
    matches = connection.execute(
        select(ControlMatch.source_control_id, ControlMatch.target_control_id, ControlMatch.match_level).where(
            ControlMatch.source_control_id.in_(controls), ControlMatch.target_control_id.in_(controls)
        )
    )
    statements = connection.execute(
        select(ControlCoverage.control_id, ControlCoverage.coverage_status).where(
            ControlCoverage.organization_id == organization_id
        )
    )
    return compute(
        {row.id: row.parent_id for row in parents},
        ((source_id, target_id, Level[level]) for source_id, target_id, level in matches),
        {row.control_id: Level[row.coverage_status] for row in statements},
    )


def stored_coverage(connection: Connection, organization_id: str) -> dict[str, Computed]:
    """What the lists show."""
    rows = connection.execute(
        select(EffectiveCoverage.control_id, EffectiveCoverage.status, EffectiveCoverage.is_indirect).where(
            EffectiveCoverage.organization_id == organization_id
        )
    )
    return {row.control_id: Computed(Level[row.status], row.is_indirect) for row in rows}


def affected_organizations(
    connection: Connection,
    before: Mapping[str, Sequence[Mapping[str, Any]]],
    after: Mapping[str, Sequence[Mapping[str, Any]]],
) -> list[str]:
    """The organizations whose coverage may differ now that rows (by table name) have changed.

    What rows were ``before`` counts as much as what they are ``after``: a match that leads elsewhere now is missed
    where it led to.
    """
    changed = {table: [*before.get(table, ()), *rows] for table, rows in after.items()}
    affected = {
        row["organization_id"] for table in ("framework_adoption", "control_coverage") for row in changed.get(table, ())
    }
    adopters = select(FrameworkAdoption.organization_id).distinct()
    frameworks = sorted({row["framework_id"] for row in changed.get("control", ())})
    affected.update(_scalars(connection, adopters, FrameworkAdoption.framework_id, frameworks))
    targets = sorted({row["target_control_id"] for row in changed.get("control_match", ())})
    affected.update(
        _scalars(
            connection,
            adopters.join(Control, Control.framework_id == FrameworkAdoption.framework_id),
            Control.id,
            targets,
        )
    )
    return sorted(affected)


def _scalars(connection: Connection, statement: Select[Any], column: Any, values: Sequence[str]) -> Iterator[str]:
    for batch in batches(values):
        yield from connection.scalars(statement.where(column.in_(batch)))
