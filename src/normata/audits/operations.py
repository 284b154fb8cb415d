"""The operations of audits beyond those of all records: their scope, their checklists, and findings from a row."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, create_model

from normata import errors
from normata.audits.checking import (
    CHECKING_WRITES,
    FINDING_WRITES,
    MAX_AT_ONCE,
    RowChange,
    RowsChange,
    check_row,
    check_rows,
    make_finding,
)
from normata.audits.model import NONCONFORMING, ChecklistRow
from normata.audits.planning import (
    MAX_ROWS,
    PLANNING_WRITES,
    SCOPE_WRITES,
    ScopeAddition,
    bring_into_scope,
    make_checklist,
)
from normata.audits.programme import ProgrammePage, ProgrammeQuery, programme
from normata.audits.report_operation import REPORT
from normata.audits.rows import ChecklistItem, ChecklistPage, ChecklistQuery, list_rows, one_row, rows_by_id
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Wire, as_wire, body_model, wire
from normata.records import examples
from normata.records.kinds import Audit, Finding

_TAG = "Audits"
_ID = "The id of the live audit."
_ROW_ID = "The id of a row of a checklist."

_FIELDS = frozenset({"name", "identifier", "type", "deadline", "findings", "causes", "correction", "measures", "notes"})
_Owner = Annotated[
    Identifier | None, Field(default=None, description="The id of the member who is to own the finding.")
]
_ChecklistFinding = create_model(
    "ChecklistFinding",
    __base__=body_model("_FindingValues", Finding, _FIELDS, doc="", required=("name",)),
    __doc__="A finding to make from a row of a checklist.",
    owner_id=(_Owner, None),
)


class ScopeResult(Wire):
    """What came of bringing requirements into scope."""

    added: int = Field(description="How many were not in scope before.")
    total: int = Field(description="How many requirements the framework or baseline has that apply.")


class ChecklistResult(Wire):
    """What came of making the rows of a checklist."""

    added: int = Field(description="How many rows are new.")
    total: int = Field(description="How many rows the checklist has now.")


class CheckedRows(Wire):
    """Rows of a checklist after a change."""

    rows: list[ChecklistItem] = Field(description="The rows, by their place.")


def _check(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    def require_current(row: Any) -> None:
        if request.is_conditional:
            request.require_current(one_row(unit, row.organization_id, row.id))

    row = check_row(unit, request.id, request.body, require_current=require_current)
    return one_row(unit, row.organization_id, row.id)


def _check_many(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    organization_id, ids = check_rows(unit, request.id, request.body)
    return {"rows": rows_by_id(unit, organization_id, ids)}


def _make_finding(unit: UnitOfWork, request: Request) -> Any:
    values = request.body.model_dump(by_alias=True, exclude_unset=True)
    return make_finding(unit, request.id, values, values.pop("ownerId", None)).finding


_NOTE = "Two of five badges of people who had left were still active."
_FOUND = {
    "id": "finding-badges-of-leavers",
    "name": "Badges of leavers stay active",
    "type": "MINOR_NONCONFORMITY",
    "status": "OPEN",
    "verifiedAt": None,
    "isLive": True,
}
_ITEM: dict[str, Any] = {
    "id": "01a2033c-19a0-7c51-93a4-0f4b8b7c9d42",
    "auditId": "audit-internal-2026",
    "about": {
        "kind": "controls",
        "id": "iso-27001-2022:A.5.11",
        "identifier": "A.5.11",
        "label": "Return of assets",
        "isLive": True,
    },
    "group": {
        "frameworkId": "iso-27001-2022",
        "framework": "ISO-27001",
        "identifier": "A.5",
        "name": "Organizational controls",
    },
    "position": 11,
    "status": NONCONFORMING,
    "note": _NOTE,
    "checkedById": "member-dana",
    "checkedByName": "Dana Demo",
    "checkedAt": "2026-11-20T09:14:03.120Z",
    "isInScope": True,
    "findings": [_FOUND],
}
_COUNTS = {"nonconforming": 1, "observation": 0, "conforming": 0, "notApplicable": 0, "notChecked": 0}
_CHANGE = {"status": NONCONFORMING, "note": _NOTE}
_RULES = """\
`checkedById` and `checkedAt` follow from setting a `status`, and are null again with `NOT_CHECKED`, which a row with
findings cannot get. A service account checks nothing. Each row that changes is an event."""

OPERATIONS: tuple[Operation, ...] = (
    ChangeOperation(
        http_method="POST",
        path=f"/{Audit.path}/{{id}}/scope/",
        operation_id="bringIntoAuditScope",
        is_long=True,
        tag=_TAG,
        summary="Bring a framework into the scope of an audit",
        description=f"""\
Links the requirements of a framework, or those of it in a baseline, to the audit with the relation `IN_SCOPE`, up to
{MAX_ROWS:,} at once. Those that do not apply to the organization stay out. What is in scope already stays. Single
controls, policies and other records are brought into scope with `POST /links/`, and leave it with
`DELETE /links/{{id}}/`.""",
        about=Audit,
        id_description=_ID,
        work=lambda unit, request: bring_into_scope(unit, request.id, request.body),
        present=lambda found: {"added": found.added, "total": found.total},
        writes=SCOPE_WRITES,
        body=ScopeAddition,
        body_required=True,
        body_example={"frameworkId": "iso-27001-2022"},
        has_rules=True,
        answer=ScopeResult,
        answer_description="What was added.",
        example={"added": 91, "total": 93},
        errors=(errors.Archived,),
    ),
    ListOperation(
        path=f"/{Audit.path}/{{id}}/checklist/",
        operation_id="listAuditChecklist",
        tag=_TAG,
        summary="List the checklist of an audit",
        description="""\
The rows of the checklist, by their place, and how many have which result. A row keeps the name that its control or
policy had when the row was made, also if that is archived later. A row that has left the scope is listed only if it has
a result or a note.""",
        about=Audit,
        id_description="The id of the audit, live or archived.",
        query=ChecklistQuery,
        build=lambda transaction, request: list_rows(transaction, request.query, request.id),
        answer=ChecklistPage,
        answer_description="A page of rows.",
        example={
            "items": [_ITEM],
            "total": 1,
            "totalIsExact": True,
            "page": 1,
            "limit": 100,
            "counts": _COUNTS,
            "findingCounts": [{"type": _FOUND["type"], "findings": 1, "verified": 0}],
        },
    ),
    ChangeOperation(
        http_method="POST",
        path=f"/{Audit.path}/{{id}}/checklist/",
        operation_id="makeAuditChecklist",
        is_long=True,
        tag=_TAG,
        summary="Make the checklist of an audit",
        description=f"""\
Makes a row for each control and each live policy that is in scope of the audit and has none; no row is removed or
changed. New rows come after the others: controls by framework in catalog order, then policies by title. A checklist has
at most {MAX_ROWS:,} rows.""",
        about=Audit,
        id_description=_ID,
        work=lambda unit, request: make_checklist(unit, request.id),
        present=lambda found: {"added": found.added, "total": found.total},
        writes=PLANNING_WRITES,
        has_rules=True,
        answer=ChecklistResult,
        answer_description="What was added.",
        example={"added": 91, "total": 91},
        errors=(errors.Archived,),
    ),
    ChangeOperation(
        http_method="PATCH",
        path=f"/{Audit.path}/{{id}}/checklist/",
        operation_id="checkAuditRows",
        tag=_TAG,
        summary="Check several rows of a checklist",
        description=f"""\
Sets `status`, `note` or both of up to {MAX_AT_ONCE} rows, all or none. {_RULES}""",
        about=Audit,
        id_description=_ID,
        work=_check_many,
        present=lambda answer: answer,
        writes=CHECKING_WRITES,
        body=RowsChange,
        body_required=True,
        body_example={"rows": [{"id": _ITEM["id"], **_CHANGE}]},
        has_rules=True,
        answer=CheckedRows,
        answer_description="The rows as they are now.",
        example={"rows": [_ITEM]},
        errors=(errors.Archived,),
    ),
    ReadOperation(
        path="/checklist-rows/{id}/",
        operation_id="getChecklistRow",
        tag=_TAG,
        summary="Get a row of a checklist",
        description="""\
A row of the checklist of an audit, with its findings. Send its `ETag` in the `If-Match` of the request that checks it,
and the request is refused if somebody else has changed the row since.""",
        about=ChecklistRow,
        id_description=_ROW_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: one_row(transaction, request.organization_id, request.id),
        answer=ChecklistItem,
        answer_description="The row.",
        example=_ITEM,
    ),
    ChangeOperation(
        http_method="PATCH",
        path="/checklist-rows/{id}/",
        operation_id="checkRow",
        tag=_TAG,
        summary="Check a row of a checklist",
        description=f"Sets `status`, `note` or both of a row. {_RULES}",
        about=ChecklistRow,
        id_description=_ROW_ID,
        work=_check,
        present=lambda row: row,
        writes=CHECKING_WRITES,
        body=RowChange,
        body_required=True,
        body_example=_CHANGE,
        has_rules=True,
        is_conditional=True,
        answer=ChecklistItem,
        answer_description="The row as it is now.",
        example=_ITEM,
        errors=(errors.Archived,),
    ),
    ChangeOperation(
        http_method="POST",
        path="/checklist-rows/{id}/findings/",
        operation_id="makeFindingOfRow",
        tag=_TAG,
        summary="Make a finding from a row of a checklist",
        description="""\
Makes a finding of the audit, in one step: about the control of the row, or related to its policy by a link, owned by
`ownerId`, and named by the row. A row that is not checked gets a result: `NONCONFORMING` for a nonconformity,
`CONFORMING` for a conformity, else `OBSERVATION`. A service account checks nothing.""",
        about=ChecklistRow,
        id_description=_ROW_ID,
        work=_make_finding,
        present=lambda row: as_wire(Finding, row),
        writes=FINDING_WRITES,
        body=_ChecklistFinding,
        body_required=True,
        body_example={"name": _FOUND["name"], "type": _FOUND["type"], "findings": _NOTE, "ownerId": "member-dana"},
        has_rules=True,
        creates=True,
        made_at=f"/{Finding.path}/",
        answer=wire(Finding),
        answer_description="The finding.",
        example=examples.restored(Finding),
        errors=(errors.Archived, *Finding.refusals),
    ),
    ListOperation(
        path="/audit-programme/",
        operation_id="listAuditProgramme",
        tag=_TAG,
        summary="List audits with how far each is",
        description="""\
The live audits with their `state`, the progress of their checklists, and their findings. An audit is `ENDED` once its
`ended` has passed, else `RUNNING` once it has `started`, else `PLANNED`. Those that run come first, then those that are
planned, both by `started`, then those that have ended, the last one first.""",
        query=ProgrammeQuery,
        build=lambda transaction, request: programme(transaction, request.query),
        answer=ProgrammePage,
        answer_description="A page of the programme.",
        example={
            "items": [
                {
                    "id": "audit-internal-2026",
                    "name": "Internal audit",
                    "type": "INTERNAL",
                    "started": "2026-11-18T08:00:00.000Z",
                    "ended": None,
                    "auditor": "S. Holm",
                    "frameworkId": "iso-27001-2022",
                    "state": "RUNNING",
                    "rows": 1,
                    "checked": 1,
                    "counts": _COUNTS,
                    "findings": 1,
                    "openFindings": 1,
                }
            ],
            "total": 1,
            "totalIsExact": True,
            "page": 1,
            "limit": 100,
        },
    ),
    REPORT,
)
