"""The operation that lists what is due."""

from __future__ import annotations

from typing import Any

from normata.core.http.operation import ListOperation, Operation
from normata.core.schema.paging import Page
from normata.records.due.queries import DueItem, DueQuery, list_due


class DuePage(Page[DueItem]):
    """A page of due dates."""


_DUE_PAGE: dict[str, Any] = {
    "items": [
        {
            "kind": "tasks",
            "id": "task-rotate-signing-keys",
            "label": "Plan the renewal of the robot root key",
            "controlId": None,
            "what": "deadline",
            "at": "2026-10-30T16:00:00.000Z",
            "overdue": True,
            "responsible": {"memberId": "member-tomasz", "name": "Tomasz Wierzbicki"},
        },
        {
            "kind": "auditItems",
            "id": "finding-supplier-annex",
            "label": "Framework agreements without a security clause",
            "controlId": None,
            "what": "deadline",
            "at": "2026-11-27T16:00:00.000Z",
            "overdue": False,
            "responsible": {"memberId": "member-priya", "name": "Priya Raman"},
        },
    ],
    "total": 2,
    "totalIsExact": True,
    "page": 1,
    "limit": 100,
}

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/due/",
        operation_id="listDue",
        tag="Due dates",
        summary="List what is due",
        description="""\
What is overdue in the organization or due within the next days (`within`), across all kinds of records, soonest first:
`deadline`, `dueDate`, `nextReviewAt`, `contractExpiry`, `notificationDeadline`, `started` of audits, and `reviewBy` of
assessments. A record with two such dates may be listed twice. An audit is due until `started` has passed, and so never
overdue. Archived records are omitted, and so are completed ones: a task that is `DONE` or
`CANCELLED`; a finding that is `RESOLVED`, `VERIFIED` or `CLOSED`; a review that has a `finishedAt`; an incident that
is `CLOSED`, or whose authority was notified; a vendor that is `TERMINATED`; a policy that is `RETIRED`; the due date of
a record that is `FINALIZED` or `SUPERSEDED`, and the next review of one that is `SUPERSEDED`.""",
        query=DueQuery,
        # Not cached: what is due depends on the time, and what is mine on the caller.
        build=lambda transaction, request: list_due(transaction, request.caller.user_id, request.query),
        answer=DuePage,
        answer_description="A page of due dates.",
        example=_DUE_PAGE,
    ),
)
