"""The operations of the archive: its list, and archiving and restoring many records at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from normata import errors
from normata.core.changes.source import Fault, FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from normata.core.http.problems import ERROR_TYPES
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier, ShortText
from normata.core.schema.paging import OrganizationId, Page
from normata.core.schema.wire import Input, Wire
from normata.records.archive.commands import (
    MAX_RECORDS,
    Kind,
    Outcomes,
    archive_many,
    many_writes,
    restore_as_one,
    restore_many,
)
from normata.records.archive.queries import KINDS, ArchivedRecord, ArchiveQuery, KindName, list_archive

_BODY = "body"
_LARGEST = 2**20  # bytes of a body with the maximum number of records

Mode = Annotated[
    Literal["all", "each"],
    Field(description="`all`: either all of them or none. `each`: each independently of the others."),
]


class ArchivePage(Page[ArchivedRecord]):
    """A page of archived records."""


class RecordName(Input):
    """A record of any kind."""

    kind: KindName
    id: Annotated[Identifier, Field(description="Its id.")]


_Records = Annotated[list[RecordName], Field(min_length=1, max_length=MAX_RECORDS)]
_RECORDS = "The records, without duplicates."


class RecordsToArchive(Input):
    """The records of an organization to archive."""

    organization_id: OrganizationId
    records: Annotated[_Records, Field(description=_RECORDS)]
    mode: Mode = "all"
    reason: Annotated[ShortText | None, Field(description="The reason, for later readers.")] = None


class RecordsToRestore(Input):
    """The records of an organization to restore: those in `records`, or those of an archive id."""

    organization_id: OrganizationId
    records: Annotated[_Records | None, Field(description=_RECORDS)] = None
    archive_id: Annotated[
        Identifier | None, Field(description="The id of an action: the records that it archived are restored together.")
    ] = None
    mode: Mode = "all"


class Refusal(Wire):
    """The reason why a record was not changed."""

    code: str = Field(description="The code of the error that a request for this record alone would get.")
    detail: str = Field(description="The reason, for people.")
    conflicting_id: str | None = Field(description="With `slug_taken`: the live record that has the slug.")


class RecordOutcome(Wire):
    """The result for a record."""

    kind: str = Field(description="Its kind, as in its path.")
    id: str = Field(description="Its id.")
    done: bool = Field(description="Whether it was archived or restored.")
    refusal: Refusal | None = Field(description="Why not; null if it was.")


class ArchiveResult(Wire):
    """The results for the records."""

    archive_id: str | None = Field(
        description="The id by which the archived records can be restored together; null if none was archived."
    )
    done: int = Field(description="The number of records that were archived or restored.")
    refused: int = Field(description="The number of records that were not.")
    records: list[RecordOutcome] = Field(description="Each record, in the order of the request.")


def _archive(unit: UnitOfWork, request: Request) -> Outcomes:
    body: RecordsToArchive = request.body
    return archive_many(
        unit,
        body.organization_id,
        named_records(body.records),
        reason=body.reason,
        each_for_itself=body.mode == "each",
    )


def _restore(unit: UnitOfWork, request: Request) -> Outcomes:
    body: RecordsToRestore = request.body
    each = body.mode == "each"
    if (body.records is None) == (body.archive_id is None):
        reason = "is required unless `archiveId` is present, and not allowed with it"
        raise FaultyInput([Fault(_BODY, "/records", reason)])
    if body.records is None:
        return restore_as_one(unit, body.organization_id, body.archive_id or "", each_for_itself=each)
    return restore_many(unit, body.organization_id, named_records(body.records), each_for_itself=each)


def named_records(records: Sequence[RecordName]) -> list[tuple[Kind, str]]:
    """The records that a body names. Raises FaultyInput if one is named twice."""
    named = [(KINDS[one.kind], one.id) for one in records]
    first: dict[tuple[Kind, str], int] = {}
    faults = []
    for place, one in enumerate(named):
        if first.setdefault(one, place) != place:
            faults.append(Fault(_BODY, f"/records/{place}", f"is the same as /records/{first[one]}"))
    if faults:
        raise FaultyInput(faults)
    return named


def _present(result: Outcomes) -> dict[str, Any]:
    done = sum(one.refusal is None for one in result.outcomes)
    return {
        "archiveId": result.archive_id if done else None,
        "done": done,
        "refused": len(result.outcomes) - done,
        "records": [
            {
                "kind": one.kind.path,
                "id": one.id,
                "done": one.refusal is None,
                "refusal": one.refusal
                and {
                    "code": ERROR_TYPES[type(one.refusal)].code,
                    "detail": str(one.refusal),
                    "conflictingId": getattr(one.refusal, "conflicting_id", None),
                },
            }
            for one in result.outcomes
        ],
    }


_ORGANIZATION = "org-harbourlight"
_ITEM = {
    "kind": "labels",
    "id": "label-old",
    "label": "Legacy",
    "slug": "legacy",
    "archivedAt": "2026-11-20T09:14:03.120Z",
    "archivedBy": {"id": "user-ines", "name": "Ines Duarte"},
    "reason": "The project has ended.",
    "archiveId": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "restorable": False,
    "obstacle": {"code": "slug_taken", "conflictingId": "label-new"},
}
_NAMES = [{"kind": "labels", "id": "label-old"}, {"kind": "tasks", "id": "task-old"}]
_DONE = {
    "archiveId": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "done": 2,
    "refused": 0,
    "records": [one | {"done": True, "refusal": None} for one in _NAMES],
}
_MODES = """\
With `mode` `all`, the default, one refusal refuses all: the response is 409 `records_refused`, and `errors` lists every
refusal with its place. With `each` the response has the result for each record. Everything happens in one transaction,
and each record is treated as by the operation for one record."""

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/archive/",
        operation_id="listArchive",
        tag="Archive",
        summary="List archived records",
        description="""\
The archived records of the organization, of all kinds, newest first: when, by whom and why each was archived,
and whether it can be restored now. Of records that were archived by a load, or before this was recorded, only
the time is known.""",
        query=ArchiveQuery,
        build=lambda transaction, request: list_archive(transaction, request.query),
        answer=ArchivePage,
        answer_description="A page of archived records.",
        example={"items": [_ITEM], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ChangeOperation(
        http_method="POST",
        path="/archive/",
        operation_id="archiveRecords",
        tag="Archive",
        summary="Archive several records",
        description=f"""\
Archives up to {MAX_RECORDS} records of any kinds. {_MODES} The records that one request archives have one
`archiveId`, by which they can be restored together.""",
        is_long=True,
        work=_archive,
        present=_present,
        writes=many_writes(),
        body=RecordsToArchive,
        body_required=True,
        body_limit=_LARGEST,
        body_example={
            "organizationId": _ORGANIZATION,
            "records": _NAMES,
            "mode": "each",
            "reason": "The project has ended.",
        },
        has_rules=True,
        answer=ArchiveResult,
        answer_description="The result for each record.",
        example=_DONE,
        errors=(errors.RecordsRefused,),
    ),
    ChangeOperation(
        http_method="POST",
        path="/archive/restore/",
        operation_id="restoreRecords",
        tag="Archive",
        summary="Restore several records",
        description=f"""\
Restores up to {MAX_RECORDS} records of any kinds, or with `archiveId` the records that one action archived. {_MODES}
Of an `archiveId`, records that were restored or archived again since are ignored; if no record is left, the response is
409 `not_archived`.""",
        is_long=True,
        work=_restore,
        present=_present,
        writes=many_writes(),
        body=RecordsToRestore,
        body_required=True,
        body_limit=_LARGEST,
        body_example={"organizationId": _ORGANIZATION, "records": _NAMES, "mode": "each"},
        has_rules=True,
        answer=ArchiveResult,
        answer_description="The result for each record.",
        example=_DONE | {"archiveId": None},
        errors=(errors.RecordsRefused, errors.NotArchived),
    ),
)
