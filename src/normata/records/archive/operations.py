"""The operations of the archive: what is in it, and many records at once."""

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
_LARGEST = 2**20  # bytes of a body with as many records as there may be

Mode = Annotated[
    Literal["all", "each"],
    Field(description="`all`: all of them or none. `each`: each for itself, whatever becomes of the others."),
]


class ArchivePage(Page[ArchivedRecord]):
    """A page of archived records."""


class RecordName(Input):
    """A record of some kind."""

    kind: KindName
    id: Annotated[Identifier, Field(description="Its id.")]


_Records = Annotated[list[RecordName], Field(min_length=1, max_length=MAX_RECORDS)]
_RECORDS = "The records, each of them once."


class RecordsToArchive(Input):
    """Records of an organization that are to be archived."""

    organization_id: OrganizationId
    records: Annotated[_Records, Field(description=_RECORDS)]
    mode: Mode = "all"
    reason: Annotated[ShortText | None, Field(description="Why, for those who look for it later.")] = None


class RecordsToRestore(Input):
    """Records of an organization that are to be restored: those that are named, or those of an archive id."""

    organization_id: OrganizationId
    records: Annotated[_Records | None, Field(description=_RECORDS)] = None
    archive_id: Annotated[
        Identifier | None, Field(description="Names an action: what it has archived is restored as one.")
    ] = None
    mode: Mode = "all"


class Refusal(Wire):
    """Why nothing was done to a record."""

    code: str = Field(description="What the request for this record alone would have been answered with.")
    detail: str = Field(description="Why, for people.")
    conflicting_id: str | None = Field(description="With `slug_taken`: the live record that has the slug.")


class RecordOutcome(Wire):
    """What has become of a record."""

    kind: str = Field(description="Its kind, as in its path.")
    id: str = Field(description="Its id.")
    done: bool = Field(description="Whether it was archived, or restored.")
    refusal: Refusal | None = Field(description="Why not; null where it was.")


class ArchiveResult(Wire):
    """What has become of records."""

    archive_id: str | None = Field(
        description="Names what was archived, so that it can be restored as one; null where nothing was."
    )
    done: int = Field(description="How many were archived, or restored.")
    refused: int = Field(description="How many were not.")
    records: list[RecordOutcome] = Field(description="Each record, in the order of the request.")


def _archive(unit: UnitOfWork, request: Request) -> Outcomes:
    body: RecordsToArchive = request.body
    return archive_many(
        unit,
        body.organization_id,
        _named(body.records),
        reason=body.reason,
        each_for_itself=body.mode == "each",
    )


def _restore(unit: UnitOfWork, request: Request) -> Outcomes:
    body: RecordsToRestore = request.body
    each = body.mode == "each"
    if (body.records is None) == (body.archive_id is None):
        reason = "must be there or `archiveId`, and not both"
        raise FaultyInput([Fault(_BODY, "/records", reason)])
    if body.records is None:
        return restore_as_one(unit, body.organization_id, body.archive_id or "", each_for_itself=each)
    return restore_many(unit, body.organization_id, _named(body.records), each_for_itself=each)


def _named(records: Sequence[RecordName]) -> list[tuple[Kind, str]]:
    """The records that a body names. Raises FaultyInput where one is there twice."""
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
With `mode` `all`, which is the default, one refusal refuses all: the answer is 409 `records_refused`, and `errors` has
every one with its place. With `each` the answer tells what has become of each. Everything happens in one transaction,
and each record is treated as it is by the operation for one."""

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/archive/",
        operation_id="listArchive",
        tag="Archive",
        summary="List what is archived",
        description="""\
What is archived in the organization, of all kinds, newest first: when, by whom and why, and whether it can be restored
now. Records that were archived before the service kept account, or by a load, tell only when.""",
        query=ArchiveQuery,
        build=lambda transaction, request: list_archive(transaction, request.query),
        answer=ArchivePage,
        answer_description="A page of archived records.",
        example={"items": [_ITEM], "total": 1, "page": 1, "limit": 100},
    ),
    ChangeOperation(
        http_method="POST",
        path="/archive/",
        operation_id="archiveRecords",
        tag="Archive",
        summary="Archive several records",
        description=f"""\
Archives up to {MAX_RECORDS} records of whatever kinds. {_MODES} What one request archives has one `archiveId`, by
which it can be restored as one.""",
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
        answer_description="What has become of each record.",
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
Restores up to {MAX_RECORDS} records of whatever kinds, or with `archiveId` what one action has archived. {_MODES} Of
an `archiveId`, what somebody has restored or archived anew since is left alone; where nothing is left, the answer is
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
        answer_description="What has become of each record.",
        example=_DONE | {"archiveId": None},
        errors=(errors.RecordsRefused, errors.NotArchived),
    ),
)
