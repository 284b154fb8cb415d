"""The checklists of the demo's audits: made, checked day by day, with findings made from their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from normata.audits.checking import RowOfManyChange, RowsChange, check_rows, make_finding
from normata.audits.model import NOT_CHECKED
from normata.audits.planning import ScopeAddition, bring_into_scope, make_checklist
from normata.audits.rows import IN_SCOPE, ROW
from normata.core.changes.unit_of_work import UnitOfWork
from normata.demo.audits import AuditDay, AuditPlan
from normata.demo.files import ORGANIZATION
from normata.links.commands import Wanted, make_links
from normata.links.model import End
from normata.records.kinds import Audit, Policy


def plan(unit: UnitOfWork, one: AuditPlan) -> None:
    """Bring a framework and policies into scope, and make the checklist."""
    bring_into_scope(unit, one.audit_id, ScopeAddition.model_validate({"frameworkId": one.framework_id}))
    end = End(Audit.path, one.audit_id)
    make_links(unit, ORGANIZATION, [Wanted(End(Policy.path, policy), end, IN_SCOPE) for policy in one.policies])
    make_checklist(unit, one.audit_id)


def check(unit: UnitOfWork, one: AuditDay) -> None:
    """Set the results and notes of a day. A row that another day has checked stays, unless this one names it."""
    changes = []
    for row in _rows(unit, one.audit_id):
        name = row.identifier or row.about_id
        found = one.result_of(name)
        if found is not None and (row.status == NOT_CHECKED or name in one.rows):
            changes.append(RowOfManyChange.model_validate({"id": row.id, "status": found[0], "note": found[1]}))
    check_rows(unit, one.audit_id, RowsChange(rows=changes))


def find(unit: UnitOfWork, finding_id: str, values: Mapping[str, Any], place: tuple[str, str]) -> None:
    """Make a finding from the row at ``place``: the audit, and the identifier of the control."""
    audit_id, identifier = place
    row_id = next(row.id for row in _rows(unit, audit_id) if row.identifier == identifier)
    make_finding(unit, row_id, values, None, finding_id=finding_id)


def _rows(unit: UnitOfWork, audit_id: str) -> list[Any]:
    return list(unit.rows(select(*ROW.c).where(ROW.c.audit_id == audit_id).order_by(ROW.c.position)))
