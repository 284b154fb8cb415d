"""The report of an audit (ISO 19011, 6.5): what was in scope, what was checked with what result, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field
from sqlalchemy import BindParameter, bindparam, select

from normata.audits.model import NOT_CHECKED
from normata.audits.rows import (
    CHECKED_KINDS,
    IN_SCOPE,
    AuditSummary,
    ChecklistItem,
    FindingCount,
    ResultCounts,
    all_rows,
    count_findings,
    count_results,
    rank,
)
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.fields import Timestamp
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire, as_wire, columns
from normata.errors import NotFound
from normata.frameworks.model import Control, Framework
from normata.identity.model import Organization
from normata.links.model import End, Link
from normata.links.queries import named_ends
from normata.records.kinds import Audit, Finding
from normata.records.owners import owners_by_links
from normata.reports.report_header import ReportFramework, ReportOrganization


# The grave ones first; other types follow by name.
class AuditHead(AuditSummary):
    """The audit that a report is about."""

    notes: str | None = Field(description="What the organization has noted of the audit.")
    owners: list[str] = Field(description="The members who own the audit here, by name.")
    is_live: bool = Field(description="False if the audit is archived.")


class FrameTopic(Wire):
    """Something in scope that has no row, such as a site."""

    kind: str = Field(description="The kind, by its name in paths.")
    id: str
    identifier: str | None = Field(description="The number of the record; null if it has none.")
    label: str = Field(description="The name or title.")
    is_live: bool = Field(description="False if it is archived.")


class ReportFinding(Wire):
    """A finding of the audit."""

    id: str
    identifier: str | None = Field(description="What the organization calls the finding.")
    name: str
    type: str = Field(description="How grave it is, such as `MINOR_NONCONFORMITY`.")
    status: str = Field(description="How far it is corrected, such as `OPEN`.")
    control: str | None = Field(description="The control that it is about, by identifier and name; null for none.")
    deadline: Timestamp | None = Field(description="When it has to be corrected.")
    owners: list[str] = Field(description="The members who own the finding, by name.")
    findings: str | None = Field(description="What was found.")
    causes: str | None = Field(description="Why it is so.")
    correction: str | None = Field(description="What corrects it.")
    measures: str | None = Field(description="What keeps it from happening again.")
    verified_at: Timestamp | None = Field(description="When somebody has looked whether it is corrected.")
    verified_by_name: str | None = Field(description="Who has looked.")
    verification_note: str | None = Field(description="What they looked at.")
    is_live: bool = Field(description="False if the finding is archived.")


class AuditReport(Wire):
    """The report of an audit."""

    organization: ReportOrganization = Field(description="The organization that is audited.")
    audit: AuditHead = Field(description="The audit.")
    framework: ReportFramework | None = Field(description="The framework whose requirements are the criteria, or null.")
    criteria: list[str] = Field(description="What the rows are of: frameworks by their names, and `Policies`.")
    frame: list[FrameTopic] = Field(description="What else is in scope.")
    counts: ResultCounts = Field(description="How many rows have which result.")
    rows: list[ChecklistItem] = Field(description="The rows that were checked, by their place.")
    not_checked: list[ChecklistItem] = Field(description="The rows that were not checked, by their place.")
    finding_counts: list[FindingCount] = Field(
        description="How many findings of each type there are, but for archived ones."
    )
    findings: list[ReportFinding] = Field(description="The findings, the grave ones first, archived ones included.")


class Report(NamedTuple):
    """The data of a report, in wire form."""

    values: Mapping[str, Any]

    def wire(self) -> Mapping[str, Any]:
        """The members of :class:`AuditReport`."""
        return self.values


def read_report(transaction: Transaction, organization_id: str, audit_id: str) -> Report:
    """The report of an audit. Raises NotFound."""
    key = {"organization": organization_id, "audit": audit_id}
    audit = transaction.row(_AUDIT, key)
    organization = transaction.row(_NAMED, key)
    if audit is None or organization is None:
        raise NotFound
    rows = all_rows(transaction, organization_id, audit_id)
    findings = transaction.rows(_FINDINGS, key)
    owners = owners_by_links(transaction, organization_id, {audit_id, *(one.id for one in findings)})
    names = {whose: [owner.name for owner in some] for whose, some in owners.items()}
    controls = _controls(transaction, {one.control_id for one in findings if one.control_id})
    values = {
        "organization": {name: getattr(organization, name) for name in ("id", "name", "slug")},
        "audit": {
            **{name: getattr(audit, name) for name in ("id", "name", "type", "started", "ended", "auditor", "notes")},
            "owners": names.get((Audit.path, audit_id), []),
            "isLive": audit.archived_at is None,
        },
        "framework": _framework(transaction, audit.framework_id),
        "criteria": _criteria(transaction, rows),
        "frame": _frame(transaction, key),
        "counts": count_results(transaction, organization_id, audit_id),
        "rows": [row for row in rows if row["status"] != NOT_CHECKED],
        "notChecked": [row for row in rows if row["status"] == NOT_CHECKED],
        "findingCounts": count_findings(transaction, organization_id, audit_id),
        "findings": [
            _finding(one, names.get((Finding.path, one.id), []), controls.get(one.control_id))
            for one in sorted(findings, key=lambda one: (*rank(one.type), one.created_at, one.id))
        ],
    }
    return Report(values)


def _finding(row: Any, owners: Sequence[str], control: str | None) -> dict[str, Any]:
    values = as_wire(Finding, row)
    names = ("id", "identifier", "name", "type", "status", "deadline", "findings", "causes", "correction", "measures")
    verification = ("verifiedAt", "verifiedByName", "verificationNote")
    return {
        **{name: values[name] for name in (*names, *verification)},
        "control": control,
        "owners": list(owners),
        "isLive": row.archived_at is None,
    }


def _criteria(transaction: Transaction, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What rows are of, in their order."""
    ids = list(dict.fromkeys(row["group"]["frameworkId"] for row in rows if row["group"]))
    frameworks = [_framework(transaction, one) for one in ids]
    policies = ["Policies"] if any(row["about"]["kind"] != CHECKED_KINDS[0] for row in rows) else []
    return [*(one["name"] for one in frameworks if one), *policies]


def _framework(transaction: Transaction, framework_id: str | None) -> dict[str, Any] | None:
    row = framework_id and transaction.row(_FRAMEWORK, {"framework": framework_id})
    if not row:
        return None
    return {name: getattr(row, name) for name in ("id", "name", "identifier", "slug", "version")}


def _controls(transaction: Transaction, ids: set[str]) -> Mapping[str, str]:
    """The identifiers and names of these controls."""
    return {
        row.id: f"{row.identifier} {row.name}"
        for batch in batches(sorted(ids))
        for row in transaction.rows(_CONTROLS, {"ids": batch})
    }


def _frame(transaction: Transaction, key: Mapping[str, str]) -> list[dict[str, Any]]:
    """What is in scope and has no row, by kind and name."""
    ends = {End(row.from_kind, row.from_id) for row in transaction.rows(_IN_FRAME, key)}
    named: dict[End, dict[str, Any]] = {}
    for batch in batches(sorted(ends)):
        named |= named_ends(transaction, key["organization"], batch)
    names = ("kind", "id", "identifier", "label", "isLive")
    found = [{name: one[name] for name in names} for one in named.values()]
    return sorted(found, key=lambda one: (one["kind"], one["label"], one["id"]))


# --- Statements

_AUDITS, _FOUND, _LINK = Audit.sql(), Finding.sql(), sql_table(Link).c
_FRAMEWORKS, _CONTROL, _ORGANIZATIONS = sql_table(Framework).c, sql_table(Control).c, sql_table(Organization).c
_ORGANIZATION: BindParameter[str] = bindparam("organization", type_=_AUDITS.c.organization_id.type)
_OF_AUDIT: BindParameter[str] = bindparam("audit", type_=_AUDITS.c.id.type)

_AUDIT = select(*columns(Audit)).where(_AUDITS.c.organization_id == _ORGANIZATION, _AUDITS.c.id == _OF_AUDIT)
_NAMED = select(_ORGANIZATIONS.id, _ORGANIZATIONS.name, _ORGANIZATIONS.slug).where(_ORGANIZATIONS.id == _ORGANIZATION)
_FINDINGS = select(*columns(Finding)).where(_FOUND.c.organization_id == _ORGANIZATION, _FOUND.c.audit_id == _OF_AUDIT)
_FRAMEWORK = select(
    _FRAMEWORKS.id, _FRAMEWORKS.name, _FRAMEWORKS.identifier, _FRAMEWORKS.slug, _FRAMEWORKS.version
).where(_FRAMEWORKS.id == bindparam("framework"))
_CONTROLS = select(_CONTROL.id, _CONTROL.identifier, _CONTROL.name).where(
    _CONTROL.id.in_(bindparam("ids", expanding=True))
)
_IN_FRAME = select(_LINK.from_kind, _LINK.from_id).where(
    _LINK.organization_id == _ORGANIZATION,
    _LINK.to_id == _OF_AUDIT,
    _LINK.to_kind == Audit.path,
    _LINK.relation == IN_SCOPE,
    _LINK.removed_at.is_(None),
    _LINK.from_kind.not_in(CHECKED_KINDS),
)
