"""The operation that changes the same fields of many records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, JsonValue

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationId
from normata.core.schema.wire import Input, Wire
from normata.records.archive.commands import MAX_RECORDS
from normata.records.archive.operations import RecordName, named_records
from normata.records.many.commands import ChangedRecord, change_many, many_change_writes
from normata.records.writing import MAX_DOCUMENT_BYTES

_LARGEST = MAX_DOCUMENT_BYTES + 2**20  # bytes of a body with the largest values, and the maximum number of records


class RecordsChange(Input):
    """The records of an organization to change, and the fields to change of each of them."""

    organization_id: OrganizationId
    records: Annotated[
        list[RecordName],
        Field(min_length=1, max_length=MAX_RECORDS, description="The records, without duplicates."),
    ]
    values: Annotated[
        dict[str, JsonValue],
        Field(
            min_length=1,
            description="The fields to change, as in a change of one of the records: `null` clears a field. Every kind"
            " among the records must have them.",
        ),
    ]


class RecordDifference(Wire):
    """What a change has changed of a record."""

    kind: str = Field(description="Its kind, as in its path.")
    id: str = Field(description="Its id.")
    label: str = Field(description="Its name or title, as it is now.")
    before: dict[str, JsonValue] = Field(description="The changed fields, as they were; none if nothing was changed.")
    after: dict[str, JsonValue] = Field(description="The same fields, as they are now.")


class ChangedRecords(Wire):
    """The records of a change, in the order of the request."""

    change_id: str | None = Field(description="The id by which the change can be undone; null if nothing was changed.")
    changed: int = Field(description="The number of records that were changed.")
    unchanged: int = Field(description="The number of records that were so already.")
    records: list[RecordDifference] = Field(description="Each record, with what was changed of it.")


def changed_records(unit: UnitOfWork, records: Sequence[ChangedRecord]) -> dict[str, Any]:
    """The answer to a change of records, in wire form."""
    changed = sum(bool(one.after) for one in records)
    return {
        "changeId": unit.change_id if changed else None,
        "changed": changed,
        "unchanged": len(records) - changed,
        "records": [
            {"kind": one.kind.path, "id": one.id, "label": one.label, "before": one.before, "after": one.after}
            for one in records
        ],
    }


def _change(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    body: RecordsChange = request.body
    return changed_records(unit, change_many(unit, body.organization_id, named_records(body.records), body.values))


_ORGANIZATION = "org-harbourlight"
_NAMES = [{"kind": "tasks", "id": "task-one"}, {"kind": "auditItems", "id": "finding-one"}]
CHANGED_EXAMPLE: dict[str, Any] = {
    "changeId": "2026-11-20T09:14:03.120Z_01a1f87c-691d-7204-a6da-d46c39e191fb",
    "changed": 1,
    "unchanged": 1,
    "records": [
        {**_NAMES[0], "label": "Test the restore", "before": {"status": "TODO"}, "after": {"status": "IN_PROGRESS"}},
        {**_NAMES[1], "label": "Visitors without badges", "before": {}, "after": {}},
    ],
}

OPERATION = ChangeOperation(
    http_method="POST",
    path="/changes/",
    operation_id="changeRecords",
    tag="Records",
    summary="Change several records",
    description=f"""\
Changes the same fields of up to {MAX_RECORDS} records, in one transaction: either all of them or none. Each is changed
as by the operation for one record. If some do not exist or are archived, the response is 409 `records_refused`; every
other fault is reported with its place, such as `values/status`, or `records/3/ownerId`. With `dryRun=true` the response
has what would change of each record. `POST /changes/undo/` undoes the change by its `changeId`.""",
    is_long=True,
    work=_change,
    present=lambda answer: answer,
    writes=many_change_writes(),
    body=RecordsChange,
    body_required=True,
    body_limit=_LARGEST,
    body_example={"organizationId": _ORGANIZATION, "records": _NAMES, "values": {"status": "IN_PROGRESS"}},
    has_rules=True,
    answer=ChangedRecords,
    answer_description="What was changed of each record.",
    example=CHANGED_EXAMPLE,
    errors=(errors.RecordsRefused, errors.SlugTaken, errors.WrongState),
)
