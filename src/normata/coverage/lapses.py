"""Lapses: if an organization sets this, an assessment no longer counts once its review is overdue or its evidence ends.

A job does this, so that it happens without a request. It compares the state with the setting: assessments that should
have lapsed lapse, and if the organization has changed the setting, lapsed ones count again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, or_, select, update
from sqlalchemy import text as sql_text

from normata.core.changes.jobs import DueJob, JobType
from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp
from normata.core.schema.table import sql_table
from normata.coverage.recompute import COVERAGE_WRITES, Touched, bring_up_to_date, lock_coverage
from normata.coverage.staleness import (
    EVIDENCE_ENDED,
    EVIDENCE_ENDS_AT,
    REVIEW_OVERDUE,
    ended_evidence,
    is_before,
    is_overdue,
    missed_review,
)
from normata.frameworks.evidence_model import ENDS, ControlEvidence
from normata.frameworks.model import HAS_LAPSED, MAY_LAPSE, ControlCoverage
from normata.identity.model import Organization
from normata.identity.organizations.commands import LAPSES as NAME

AT_ONCE = 500  # assessments in one transaction


def lapse(unit: UnitOfWork, organization_id: str, moment: str) -> int:
    """Let assessments lapse, or lapsed ones count again, by the organization's setting. Returns how many.

    There may be more where these were :data:`AT_ONCE` or more.
    """
    lock_coverage(unit, organization_id)
    key = {"organization": organization_id}
    lapses = unit.scalar(_SETTING, key) == "LAPSE"
    statements = (_OVERDUE, _UNSUPPORTED) if lapses else (_LAPSED,)
    found = {row.id: row for statement in statements for row in unit.rows(statement, {**key, "moment": moment})}
    if not found:
        return 0
    changed = [
        (before := {name: getattr(row, name) for name in _COLUMNS}, before | _after(row, moment, lapses=lapses))
        for row in found.values()
    ]
    unit.execute_many(
        _UPDATE,
        [{f"new_{name}": row[name] for name in ("id", *_LAPSE_COLUMNS)} for _, row in changed],
    )
    ids = [row.control_id for row in found.values()]
    bring_up_to_date(unit, organization_id, Touched(lapsed=ids) if lapses else Touched(assessed=ids))
    action = "lapse" if lapses else "reinstate"
    for before, after in changed:
        unit.publish(Change(action, ControlCoverage, organization_id, after["id"], after, before))
    return len(found)


def _after(row: Any, moment: str, *, lapses: bool) -> dict[str, Any]:
    """The values of an assessment after a lapse, by what was due first, or after its end."""
    if not lapses:
        return {"coverage_status": row.lapsed_status, "lapsed_status": None, "lapsed_at": None, "lapse_reason": None}
    due = ((missed_review(row), REVIEW_OVERDUE), (ended_evidence(row), EVIDENCE_ENDED))
    lapsed_at, reason = min((at, reason) for at, reason in due if at is not None and at <= moment)
    return {
        "coverage_status": None,
        "lapsed_status": row.coverage_status,
        "lapsed_at": lapsed_at,
        "lapse_reason": reason,
    }


def _run(unit: UnitOfWork, job: DueJob) -> str | None:
    return job.moment if lapse(unit, job.owner, job.moment) >= AT_ONCE else None


def _find(transaction: Transaction, organizations: Sequence[str], moment: str) -> list[str]:
    """The organizations among these in which assessments should lapse, or count again."""
    return transaction.scalars(_ORGANIZATIONS, {"organizations": organizations, "moment": moment})


_LAPSE_COLUMNS = ("coverage_status", "lapsed_status", "lapsed_at", "lapse_reason")

LAPSES = JobType(
    NAME,
    _run,
    writes=(update_of(ControlCoverage, *_LAPSE_COLUMNS, "review_due_at"), *COVERAGE_WRITES),
    find=_find,
    is_long=True,
)

_TABLE, _EVIDENCE, _OWNER = sql_table(ControlCoverage), sql_table(ControlEvidence), sql_table(Organization)
_COLUMNS = tuple(column.name for column in _TABLE.c)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_MOMENT: BindParameter[str] = bindparam("moment", type_=UtcTimestamp())
_SHOULD_LAPSE: ColumnElement[bool] = and_(sql_text(MAY_LAPSE), is_overdue(_MOMENT))
_SETTING = select(_OWNER.c.stale_assessments).where(_OWNER.c.id == _ORGANIZATION)
# Few controls have evidence that has ended, so they come first, by an index that has no others.
_ENDED = and_(
    sql_text(ENDS),
    _EVIDENCE.c.ends_at <= _MOMENT,
    _TABLE.c.organization_id == _EVIDENCE.c.organization_id,
    _TABLE.c.control_id == _EVIDENCE.c.control_id,
    _TABLE.c.coverage_status.is_not(None),
    is_before(_TABLE.c, _EVIDENCE.c.ends_at),
)


def _first(condition: ColumnElement[bool], *, ends_at: ColumnElement[Any] = EVIDENCE_ENDS_AT) -> Select[Any]:
    return (
        select(*_TABLE.c, ends_at.label("evidence_ends_at"))
        .where(_TABLE.c.organization_id == _ORGANIZATION, condition)
        .order_by(_TABLE.c.id)
        .limit(AT_ONCE)
    )


_OVERDUE = _first(_SHOULD_LAPSE)
_UNSUPPORTED = _first(and_(_EVIDENCE.c.organization_id == _ORGANIZATION, _ENDED), ends_at=_EVIDENCE.c.ends_at)
_LAPSED = _first(and_(sql_text(HAS_LAPSED)))


def _exists(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return select(_TABLE.c.id).where(_TABLE.c.organization_id == _OWNER.c.id, condition).exists()


_ORGANIZATIONS = select(_OWNER.c.id).where(
    _OWNER.c.id.in_(bindparam("organizations", expanding=True)),
    or_(
        and_(_OWNER.c.stale_assessments == "LAPSE", _exists(_SHOULD_LAPSE)),
        and_(_OWNER.c.stale_assessments == "LAPSE", _exists(and_(_EVIDENCE.c.organization_id == _OWNER.c.id, _ENDED))),
        and_(_OWNER.c.stale_assessments == "FLAG", _exists(and_(sql_text(HAS_LAPSED)))),
    ),
)
_UPDATE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("new_id"))
    .values({name: bindparam(f"new_{name}", type_=_TABLE.c[name].type) for name in _LAPSE_COLUMNS})
)
