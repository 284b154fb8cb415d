"""The audit programme: all live audits with how far each is, those that run first (ISO 19011, 5)."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import BindParameter, and_, bindparam, case, func, or_, select

from normata.audits.model import NOT_CHECKED
from normata.audits.rows import ROW, AuditSummary, ResultCounts, is_listed, result_counts
from normata.core.db.transaction import Transaction
from normata.core.db.types import passes_at
from normata.core.schema.paging import Page, PageQuery, envelope, fetch_page
from normata.records.due.queries import present
from normata.records.kinds import Audit, Finding

AuditState = Literal["RUNNING", "PLANNED", "ENDED"]
_STATES: tuple[AuditState, ...] = ("RUNNING", "PLANNED", "ENDED")  # in the order of the programme
_CLOSED = ("VERIFIED", "CLOSED")


class ProgrammeQuery(PageQuery):
    """The query of the audit programme."""

    state: AuditState | None = Field(default=None, description="Only audits in this state.")


class ProgrammeItem(AuditSummary):
    """An audit of the programme."""

    framework_id: str | None = Field(description="The framework that it audits against, or null.")
    state: AuditState = Field(description="What follows from `started`, `ended` and the present.")
    rows: int = Field(description="How many rows its checklist has.")
    checked: int = Field(description="How many of them are checked.")
    counts: ResultCounts = Field(description="How many rows have which result.")
    findings: int = Field(description="How many live findings it has.")
    open_findings: int = Field(description="How many of them are neither verified nor closed.")


class ProgrammePage(Page[ProgrammeItem]):
    """A page of the audit programme."""


def state_of(started: str | None, ended: str | None, moment: str) -> AuditState:
    """The state of an audit at a moment.

    It has ended once its end has passed, for a plain date with its UTC day. Else it runs from its beginning on.
    """
    if ended is not None and passes_at(ended) <= moment:
        return "ENDED"
    return "RUNNING" if started is not None and started <= moment else "PLANNED"


def programme(transaction: Transaction, query: ProgrammeQuery) -> dict[str, Any]:
    """A page of the live audits, in four statements. Raises UnfitCursor.

    Those that run come first, then those that are planned, both by their beginning, then those that have ended, the
    last one first.
    """
    moment = transaction.time_of_reading()
    key = {"organization": query.organization_id, **present(moment)}
    statement = _LIVE if query.state is None else _LIVE.where(_RANK.in_([_STATES.index(query.state)]))
    found = fetch_page(transaction, statement, _ORDER, query, key)
    ids = {"organization": query.organization_id, "audits": sorted(row.id for row in found.rows)}
    results: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in transaction.rows(_RESULTS, ids):
        results[row.audit_id][row.status] = row.number
    findings, still_open = Counter[str](), Counter[str]()
    for row in transaction.rows(_FINDINGS, ids):
        findings[row.audit_id] += row.number
        still_open[row.audit_id] += 0 if row.status in _CLOSED else row.number
    items = []
    for row in found.rows:
        of_row = results[row.id]
        total = sum(of_row.values())
        items.append(
            {
                **{name: getattr(row, name) for name in ("id", "name", "type", "started", "ended", "auditor")},
                "frameworkId": row.framework_id,
                "state": state_of(row.started, row.ended, moment),
                "rows": total,
                "checked": total - of_row.get(NOT_CHECKED, 0),
                "counts": result_counts(of_row),
                "findings": findings[row.id],
                "openFindings": still_open[row.id],
            }
        )
    return envelope(items, found, query)


# --- Statements

_AUDIT, _FOUND = Audit.sql().c, Finding.sql().c
_ORGANIZATION: BindParameter[str] = bindparam("organization", type_=_AUDIT.organization_id.type)
_AUDITS: BindParameter[Any] = bindparam("audits", expanding=True)
_MOMENT = bindparam("moment", type_=_AUDIT.started.type)
_TODAY = bindparam("today", type_=_AUDIT.started.type)

# As :func:`state_of`: an end at the beginning of today is the plain date of today, which has not passed.
_HAS_ENDED = and_(
    _AUDIT.ended.is_not(None), or_(_AUDIT.ended < _TODAY, and_(_AUDIT.ended > _TODAY, _AUDIT.ended <= _MOMENT))
)
_RANK = case(
    (_HAS_ENDED, _STATES.index("ENDED")),
    (_AUDIT.started <= _MOMENT, _STATES.index("RUNNING")),
    else_=_STATES.index("PLANNED"),
)
_ORDER = [
    _RANK.asc(),
    case((_HAS_ENDED, None), else_=_AUDIT.started).asc().nulls_last(),
    _AUDIT.ended.desc().nulls_last(),
    _AUDIT.id.asc(),
]
_LIVE = select(
    _AUDIT.id, _AUDIT.name, _AUDIT.type, _AUDIT.started, _AUDIT.ended, _AUDIT.auditor, _AUDIT.framework_id
).where(_AUDIT.organization_id == _ORGANIZATION, _AUDIT.archived_at.is_(None))
_RESULTS = (
    select(ROW.c.audit_id, ROW.c.status, func.count().label("number"))
    .where(ROW.c.organization_id == _ORGANIZATION, ROW.c.audit_id.in_(_AUDITS), is_listed())
    .group_by(ROW.c.audit_id, ROW.c.status)
)
_FINDINGS = (
    select(_FOUND.audit_id, _FOUND.status, func.count().label("number"))
    .where(_FOUND.organization_id == _ORGANIZATION, _FOUND.audit_id.in_(_AUDITS), _FOUND.archived_at.is_(None))
    .group_by(_FOUND.audit_id, _FOUND.status)
)
