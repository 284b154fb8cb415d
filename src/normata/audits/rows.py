"""The rows of the checklist of an audit, in wire form, and how many of them have which result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import Field
from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, func, literal_column, or_, select

from normata.audits.model import NOT_CHECKED, STATUSES, ChecklistRow, ChecklistStatus
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import Page, PageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.frameworks.model import Control, Framework
from normata.identity.model import Membership, User
from normata.links.model import End, Link
from normata.links.queries import named_ends
from normata.links.relations import CONTROLS
from normata.records.kinds import Audit, Finding, Policy

IN_SCOPE = "IN_SCOPE"
FINDING_TYPES: Sequence[str] = Finding.sql().c.type.info["known"]  # the grave ones first
CHECKED_KINDS = (CONTROLS, Policy.path)  # of what is in scope, a checklist has rows of these


class AuditSummary(Wire):
    """What every answer about audits says of one."""

    id: str
    name: str
    type: str = Field(description="What kind of audit it is, such as `INTERNAL`.")
    started: Timestamp | None = Field(description="When it began, or is to begin.")
    ended: Timestamp | None = Field(description="When it ended, or is to end.")
    auditor: str | None = Field(description="Who audits.")


class ChecklistQuery(PageQuery):
    """The query of the checklist of an audit."""

    status: ChecklistStatus | None = Field(default=None, description="Only rows with this result.")


class Checked(Wire):
    """What a row of a checklist is about."""

    kind: str = Field(description="`controls` or `policies`.")
    id: str = Field(description="The id.")
    identifier: str | None = Field(description="What the publisher calls the control; null for a policy.")
    label: str = Field(description="The name or title that it had when the row was made.")
    is_live: bool = Field(
        description="False for an archived policy, a control of a framework that is not adopted, and what is gone."
    )


class ChecklistGroup(Wire):
    """Where the control of a row stands in its framework."""

    framework_id: str = Field(description="The id of the framework.")
    framework: str = Field(description="What the framework is called in short.")
    identifier: str | None = Field(description="The identifier of the control above it; null at the top.")
    name: str | None = Field(description="The name of the control above it; null at the top.")


class RowFinding(Wire):
    """A finding that was made from a row."""

    id: str
    name: str
    type: str = Field(description="How grave it is, such as `MINOR_NONCONFORMITY`.")
    status: str = Field(description="How far it is corrected, such as `OPEN`.")
    verified_at: Timestamp | None
    is_live: bool = Field(description="False if the finding is archived.")


class ChecklistItem(Wire):
    """A row of a checklist."""

    id: str
    audit_id: str = Field(description="The id of the audit.")
    about: Checked = Field(description="What is checked.")
    group: ChecklistGroup | None = Field(
        description="Where the control stands; null for a policy, and for a control that is gone."
    )
    position: int = Field(description="The place in the checklist.")
    status: ChecklistStatus = Field(description="What came of checking it.")
    note: str | None = Field(description="What was seen; null for nothing.")
    checked_by_id: str | None = Field(description="The member who has set the status; null if it is not checked.")
    checked_by_name: str | None = Field(description="The name of this member.")
    checked_at: Timestamp | None = Field(description="When they have; null if it is not checked.")
    is_in_scope: bool = Field(description="Whether it is in scope of the audit still.")
    findings: list[RowFinding] = Field(description="The findings that were made from the row.")


class ResultCounts(Wire):
    """How many rows of a checklist have which result."""

    nonconforming: int = Field(description="How many do not conform.")
    observation: int = Field(description="How many have an observation.")
    conforming: int = Field(description="How many conform.")
    not_applicable: int = Field(description="How many do not apply here.")
    not_checked: int = Field(description="How many are not checked yet.")


class FindingCount(Wire):
    """How many findings of a type there are."""

    type: str = Field(description="The type.")
    findings: int = Field(description="How many there are.")
    verified: int = Field(description="How many of these are verified.")


class ChecklistPage(Page[ChecklistItem]):
    """A page of the rows of a checklist."""

    counts: ResultCounts = Field(description="How many rows have which result, whatever the query selects.")
    finding_counts: list[FindingCount] = Field(
        alias="findingCounts", description="How many findings of each type the audit has, but for archived ones."
    )


def list_rows(transaction: Transaction, query: ChecklistQuery, audit_id: str) -> dict[str, Any]:
    """A page of the checklist of an audit, in seven statements at most. Raises NotFound, UnfitCursor."""
    key = {"organization": query.organization_id, "audit": audit_id}
    if transaction.row(_AUDIT, key) is None:
        raise NotFound
    statement = LISTED if query.status is None else LISTED.where(ROW.c.status == query.status)
    found = fetch_page(transaction, statement, [ROW.c.position, ROW.c.id], query, key)
    answer = envelope(in_wire_form(transaction, query.organization_id, found.rows), found, query)
    answer["counts"] = count_results(transaction, query.organization_id, audit_id)
    answer["findingCounts"] = count_findings(transaction, query.organization_id, audit_id)
    return answer


def one_row(transaction: Transaction, organization_id: str, row_id: str) -> dict[str, Any]:
    """A row in wire form. Raises NotFound."""
    found = rows_by_id(transaction, organization_id, [row_id])
    if not found:
        raise NotFound
    return found[0]


def rows_by_id(transaction: Transaction, organization_id: str, ids: Collection[str]) -> list[dict[str, Any]]:
    """These rows in wire form, by their place."""
    rows = [
        row
        for batch in batches(sorted(ids))
        for row in transaction.rows(_BY_IDS, {"organization": organization_id, "ids": batch})
    ]
    rows.sort(key=lambda row: (row.position, row.id))
    return in_wire_form(transaction, organization_id, rows)


def all_rows(transaction: Transaction, organization_id: str, audit_id: str) -> list[dict[str, Any]]:
    """All rows of a checklist in wire form, by their place."""
    rows = transaction.rows(_IN_ORDER, {"organization": organization_id, "audit": audit_id})
    return in_wire_form(transaction, organization_id, rows)


def count_results(transaction: Transaction, organization_id: str, audit_id: str) -> dict[str, int]:
    """The members of :class:`ResultCounts`."""
    rows = transaction.rows(_COUNTS, {"organization": organization_id, "audit": audit_id})
    return result_counts({row.status: row.number for row in rows})


def count_findings(transaction: Transaction, organization_id: str, audit_id: str) -> list[dict[str, Any]]:
    """A :class:`FindingCount` for each type of the live findings of an audit, the grave ones first."""
    rows = transaction.rows(_FINDING_COUNTS, {"organization": organization_id, "audit": audit_id})
    found = [{"type": row.type, "findings": row.number, "verified": row.verified} for row in rows]
    return sorted(found, key=lambda one: rank(one["type"]))


def rank(kind: str) -> tuple[int, str]:
    """The place of a type of findings: the grave ones first, then those that organizations name themselves."""
    return (FINDING_TYPES.index(kind), "") if kind in FINDING_TYPES else (len(FINDING_TYPES), kind)


def result_counts(by_status: Mapping[str, int]) -> dict[str, int]:
    """The members of :class:`ResultCounts`, from how many rows have which status."""
    return {to_member(status): by_status.get(status, 0) for status in STATUSES}


def is_listed() -> ColumnElement[bool]:
    """The condition that a checklist lists a row: what nobody has looked at goes when it leaves the scope."""
    return or_(ROW.c.status != literal_column(f"'{NOT_CHECKED}'"), ROW.c.note.is_not(None), _IS_IN_SCOPE)


def to_member(status: str) -> str:
    """The name of a status in :class:`ResultCounts`: ``notChecked``."""
    first, *others = status.lower().split("_")
    return first + "".join(map(str.capitalize, others))


def in_wire_form(transaction: Transaction, organization_id: str, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows of :data:`LISTED` as a :class:`ChecklistItem` each, in three statements at most."""
    ends = {End(row.about_kind, row.about_id) for row in rows}
    named: dict[End, dict[str, Any]] = {}
    for batch in batches(sorted(ends)):
        named |= named_ends(transaction, organization_id, batch)
    groups = _groups(transaction, [row.about_id for row in rows if row.about_kind == CONTROLS])
    findings = _findings(transaction, organization_id, {one for row in rows for one in row.finding_ids})
    return [
        {
            "id": row.id,
            "auditId": row.audit_id,
            "about": {
                "kind": row.about_kind,
                "id": row.about_id,
                "identifier": row.identifier,
                "label": row.label,
                "isLive": named[End(row.about_kind, row.about_id)]["isLive"],
            },
            "group": groups.get(row.about_id) if row.about_kind == CONTROLS else None,
            "position": row.position,
            "status": row.status,
            "note": row.note,
            "checkedById": row.checked_by_id,
            "checkedByName": row.checked_by_name,
            "checkedAt": row.checked_at,
            "isInScope": bool(row.is_in_scope),
            "findings": [findings[one] for one in row.finding_ids if one in findings],
        }
        for row in rows
    ]


def _groups(transaction: Transaction, controls: Sequence[str]) -> Mapping[str, dict[str, Any]]:
    """A :class:`ChecklistGroup` for each of these controls."""
    return {
        row.id: {
            "frameworkId": row.framework_id,
            "framework": row.framework,
            "identifier": row.above_identifier,
            "name": row.above_name,
        }
        for batch in batches(sorted(controls))
        for row in transaction.rows(_GROUPS, {"ids": batch})
    }


def _findings(transaction: Transaction, organization_id: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
    """A :class:`RowFinding` for each of these findings."""
    return {
        row.id: {
            "id": row.id,
            "name": row.name,
            "type": row.type,
            "status": row.status,
            "verifiedAt": row.verified_at,
            "isLive": row.archived_at is None,
        }
        for batch in batches(sorted(ids))
        for row in transaction.rows(_FINDINGS, {"organization": organization_id, "ids": batch})
    }


# --- Statements

ROW = sql_table(ChecklistRow)
_LINK, _CONTROL, _FRAMEWORK, _FINDING = sql_table(Link).c, sql_table(Control), sql_table(Framework), Finding.sql().c
_MEMBER, _USER, _AUDITS = sql_table(Membership), sql_table(User), Audit.sql().c
_ORGANIZATION: BindParameter[str] = bindparam("organization", type_=ROW.c.organization_id.type)
_OF_AUDIT: BindParameter[str] = bindparam("audit", type_=ROW.c.audit_id.type)

_AUDIT = select(_AUDITS.id).where(_AUDITS.organization_id == _ORGANIZATION, _AUDITS.id == _OF_AUDIT)
_IS_IN_SCOPE: ColumnElement[bool] = (
    select(_LINK.id)
    .where(
        _LINK.organization_id == ROW.c.organization_id,
        _LINK.from_kind == ROW.c.about_kind,
        _LINK.from_id == ROW.c.about_id,
        _LINK.to_kind == literal_column(f"'{Audit.path}'"),
        _LINK.to_id == ROW.c.audit_id,
        _LINK.relation == literal_column(f"'{IN_SCOPE}'"),
        _LINK.removed_at.is_(None),
    )
    .correlate(ROW)
    .exists()
)
_IS_LISTED = and_(ROW.c.organization_id == _ORGANIZATION, ROW.c.audit_id == _OF_AUDIT, is_listed())
_EVERY: Select[Any] = select(
    *ROW.c, _IS_IN_SCOPE.label("is_in_scope"), _USER.c.name.label("checked_by_name")
).select_from(
    ROW.outerjoin(
        _MEMBER, and_(_MEMBER.c.organization_id == ROW.c.organization_id, _MEMBER.c.id == ROW.c.checked_by_id)
    ).outerjoin(_USER, _USER.c.id == _MEMBER.c.user_id)
)
LISTED = _EVERY.where(_IS_LISTED)
_IN_ORDER = LISTED.order_by(ROW.c.position, ROW.c.id)
_BY_IDS = _EVERY.where(ROW.c.organization_id == _ORGANIZATION, ROW.c.id.in_(bindparam("ids", expanding=True)))
_COUNTS = select(ROW.c.status, func.count().label("number")).where(_IS_LISTED).group_by(ROW.c.status)
_ABOVE = _CONTROL.alias("above")
_GROUPS = (
    select(
        _CONTROL.c.id,
        _CONTROL.c.framework_id,
        _FRAMEWORK.c.identifier.label("framework"),
        _ABOVE.c.identifier.label("above_identifier"),
        _ABOVE.c.name.label("above_name"),
    )
    .select_from(
        _CONTROL.join(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id).outerjoin(
            _ABOVE, _ABOVE.c.id == _CONTROL.c.parent_id
        )
    )
    .where(_CONTROL.c.id.in_(bindparam("ids", expanding=True)))
)
_FINDINGS = select(
    _FINDING.id, _FINDING.name, _FINDING.type, _FINDING.status, _FINDING.verified_at, _FINDING.archived_at
).where(_FINDING.organization_id == _ORGANIZATION, _FINDING.id.in_(bindparam("ids", expanding=True)))
_FINDING_COUNTS = (
    select(_FINDING.type, func.count().label("number"), func.count(_FINDING.verified_at).label("verified"))
    .where(_FINDING.organization_id == _ORGANIZATION, _FINDING.audit_id == _OF_AUDIT, _FINDING.archived_at.is_(None))
    .group_by(_FINDING.type)
)
