"""The operations of versions of the statement of applicability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, RootModel, create_model

from normata.core.db.transaction import Transaction
from normata.core.http.formats import JSON, Format, FormatName, FormatQuery, Formats
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.problems import FieldFault, InvalidRequest, NotAcceptable
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier, Text, VisibleName
from normata.core.schema.paging import OrganizationId, Page
from normata.core.schema.wire import Input, wire
from normata.errors import FilesErased, WrongState
from normata.events.keys import Signer
from normata.reports import statement
from normata.reports.applicability import StatementOfApplicability
from normata.reports.statement import MAX_OTHERS, StatementFormat
from normata.soa_versions import versions
from normata.soa_versions.comparison import ComparisonQuery, VersionComparison, read_comparison
from normata.soa_versions.model import FILE_FORMATS, SoaVersion
from normata.soa_versions.proof import ProofQuery, VersionProof, read_proof
from normata.soa_versions.versions import VersionQuery

_Version = wire(SoaVersion)
_base: Any = Page[_Version]  # type: ignore[valid-type] # a model made at run time, from the table
SoaVersionPage: type[BaseModel] = create_model("SoaVersionPage", __base__=_base, __doc__="A page of versions.")

_answer: Any = RootModel[_Version | StatementOfApplicability]  # type: ignore[valid-type] # as above
SoaVersionAnswer: type[BaseModel] = create_model(
    "SoaVersionAnswer", __base__=_answer, __doc__="A version; with `format=json` the statement, as it was then."
)


class SoaVersionCreation(Input):
    """A version to make."""

    organization_id: OrganizationId
    framework_id: Annotated[Identifier, Field(description="The id of a framework that the organization has adopted.")]
    other_framework_ids: Annotated[
        list[Identifier],
        Field(
            default_factory=list,
            max_length=MAX_OTHERS,
            description="The ids of further adopted frameworks: their requirements that apply are necessary controls,"
            " too (ISO/IEC 27001, 6.1.3 b, c).",
        ),
    ]
    title: Annotated[VisibleName, Field(description="What people call the version; it is in its head.")]
    scope: Annotated[
        Text | None,
        Field(description="What the management system is about (ISO/IEC 27001, 4.3); null for the organization's own."),
    ] = None
    approver_id: Annotated[
        Identifier | None,
        Field(
            description="The id of the membership of who is to approve it, who is named in its head. To name somebody"
            " takes the role admin or owner. Null if it is not to be approved."
        ),
    ] = None


class SoaVersionQuery(FormatQuery):
    """The query of a version."""

    format: Annotated[
        StatementFormat | None,
        Field(
            description="The file in this format, byte for byte as it was made with the version. It wins over `Accept`."
            " Without it, the answer in JSON describes the version."
        ),
    ] = None  # type: ignore[assignment] # it has one format more


def _stored(name: FormatName) -> Format:
    """A format in which a version is stored: nothing is made anew."""
    known = statement.FORMATS.by_name[name]
    return replace(
        known,
        render=lambda found: found["content"],
        is_text=False,
        extra="",
        is_there=lambda: True,
        objection=lambda _: None,
    )


def _read(transaction: Transaction, request: Request) -> Mapping[str, Any]:
    """The version, or its file in the format of the request."""
    version = versions.one_version(transaction, request.organization_id, request.id)
    if request.format in ("", "metadata"):
        return versions.present(version)
    name: Any = request.format
    content = versions.file_of(transaction, version, name)
    if content is None:
        message = f"is not there: {name} could not be made of the version"
        if request.query.format is None:
            raise NotAcceptable(f"The version has no {name}: it could not be made.")
        fault = FieldFault(in_="query", name="format", code="unavailable", message=message, allowed=None)
        raise InvalidRequest.of([fault])
    return {"number": version.number, "content": content}


_FORMATS = Formats(
    present=lambda found: found,
    file_name=lambda found: f"statement-of-applicability-version-{found['number']}",
    by_name={"metadata": JSON, **{name: _stored(name) for name in FILE_FORMATS}},
)

_ID = "The id of the version."
_HASH = "b137985ff484fb600db93107c77b0365c80d78f5b429ded0fd97361d077999eb"
_VERSION: dict[str, Any] = {
    "id": "01a2033c-19a0-7c51-93a4-0f4b8b7c9d42",
    "organizationId": "org-harbourlight",
    "frameworkId": "iso-27001-2022",
    "otherFrameworkIds": [],
    "number": 3,
    "title": "Statement for the surveillance audit of 2027",
    "scope": "Design, assembly and support of mobile robots in Hamburg and Gdańsk.",
    "state": "APPROVED",
    "approverId": "member-dana",
    "jsonSha256": _HASH,
    "csvSha256": _HASH[::-1],
    "xlsxSha256": _HASH[1:] + _HASH[:1],
    "pdfSha256": None,
    "createdAt": "2026-11-20T09:14:03.120Z",
    "approvedAt": "2026-11-21T15:02:41.007Z",
    "supersededAt": None,
    "erasedAt": None,
}
_DRAFT = _VERSION | {"state": "DRAFT", "approvedAt": None}
_BODY = {
    "organizationId": "org-harbourlight",
    "frameworkId": "iso-27001-2022",
    "title": _VERSION["title"],
}
_ROW = {
    "id": "iso-27001-2022:A.5.16",
    "frameworkId": "iso-27001-2022",
    "identifier": "A.5.16",
    "name": "Identity management",
}
_EVENT = {
    "action": "create",
    "leaf": 0,
    "hash": "5f0a9a1e1f3f8c5e6a2f6a9d2a9e6c1b8f0d7c6b5a493827161504f3e2d1c0b9",
    "event": '{"action":"create","after":{"csvSha256":"…","jsonSha256":"…","number":3}}',
    "inclusionPath": ["0c6f1d2e3b4a59687786a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"],
}


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/soa-versions/",
        operation_id="listSoaVersions",
        tag="Versions of statements",
        summary="List versions of statements of applicability",
        description="""\
The versions of the organization's statements of applicability, the newest first. `number` counts those of one
framework. The hashes are those of the files, byte for byte.""",
        query=VersionQuery,
        build=lambda transaction, request: versions.list_versions(transaction, request.query),
        answer=SoaVersionPage,
        answer_description="A page of versions.",
        example={"items": [_VERSION], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/soa-versions/{id}/",
        operation_id="getSoaVersion",
        tag="Versions of statements",
        summary="Get a version of a statement of applicability",
        description="""\
A version; with `format`, or another media type in `Accept`, one of its files, byte for byte as it was made with the
version. A format that the installation could not make then is not there: a fault of `format`, or 406 for `Accept`.
After an erasure with `--also-documents` there are no files: 410 `files_erased`.""",
        about=SoaVersion,
        id_description=_ID,
        query=SoaVersionQuery,
        build=_read,
        formats=_FORMATS,
        errors=(FilesErased,),
        answer=SoaVersionAnswer,
        answer_description="The version, or a file of it.",
        example=_VERSION,
    ),
    ReadOperation(
        path="/soa-versions/{id}/comparison/",
        operation_id="compareSoaVersion",
        tag="Versions of statements",
        summary="Compare a version of a statement of applicability",
        description="""\
What differs from a version to another one of the same framework, or to the present state: rows that were added, removed
and changed, each changed field with both values. `before` is the version in the path, `after` is what it is compared
with.""",
        about=SoaVersion,
        id_description=_ID,
        query=ComparisonQuery,
        build=lambda transaction, request: read_comparison(
            transaction, request.organization_id, request.id, request.query.with_
        ),
        is_long=True,
        errors=(FilesErased,),
        answer=VersionComparison,
        answer_description="The comparison.",
        example={
            "versionId": _VERSION["id"],
            "number": 3,
            "date": "2026-11-20",
            "comparedWith": {"versionId": None, "number": None, "date": "2026-12-01"},
            "head": [],
            "added": [],
            "removed": [],
            "changed": [_ROW | {"changes": [{"field": "implemented", "before": "NO", "after": "YES"}]}],
            "unchanged": 92,
        },
    ),
    ReadOperation(
        path="/soa-versions/{id}/proof/",
        operation_id="getSoaVersionProof",
        tag="Versions of statements",
        summary="Get the proof of a version of a statement of applicability",
        description="""\
What proves a version offline: its sealed events, the inclusion proof of each (RFC 9162, section 2.1.3), and the
checkpoint of the organization's log, signed by the service. The event that made the version has the SHA-256 of each
file; the event of its approval says when, and by whom. `normata soa verify FILE PROOF` checks all of it without a
database.

A checkpoint that was stored elsewhere proves the version if the proof is for its `size`. Until the events of the
version are sealed, which takes a second, the answer is 503 with `Retry-After`.""",
        about=SoaVersion,
        id_description=_ID,
        query=ProofQuery,
        build=lambda transaction, request: read_proof(
            transaction, request.organization_id, request.id, request.query.size, request.means[Signer]
        ),
        is_long=True,
        answer=VersionProof,
        answer_description="The proof.",
        example={
            "versionId": _VERSION["id"],
            "number": 3,
            "events": [_EVENT],
            "checkpoint": {
                "origin": "normata/org-harbourlight",
                "size": 2,
                "root": _HASH,
                "sealedAt": "2026-11-20T09:14:03.652Z",
                "note": "normata/org-harbourlight\n2\nsTeYX/SE+2ANuTEHx3sDZcgNePW0Kd7Q/Zc2HQd5mes=\n\n\u2014 …\n",
            },
            "others": [{"number": 2, "hashes": {"json": _HASH}}],
        },
    ),
    ChangeOperation(
        http_method="POST",
        path="/soa-versions/",
        operation_id="createSoaVersion",
        tag="Versions of statements",
        summary="Make a version of a statement of applicability",
        description="""\
Makes a numbered version of the statement of applicability of a framework, as it is now. Its files are made in every
format and kept, and their SHA-256 are in the event, which is sealed. They name the version, its day and its approver,
and never change: approval is an event of its own. Naming an approver takes the role admin or owner, everything else
that of an editor. PDF is made if the installation has the extra `pdf`.""",
        work=lambda unit, request: versions.create(unit, request.body, request.plan),
        prepare=lambda unit, request: versions.plan(unit, request.body),
        present=versions.present,
        writes=versions.CREATION_WRITES,
        is_long=True,
        body=SoaVersionCreation,
        body_required=True,
        body_example=_BODY,
        has_rules=True,
        creates=True,
        answer=_Version,
        answer_description="The version.",
        example=_DRAFT | {"approverId": None},
    ),
    ChangeOperation(
        http_method="POST",
        path="/soa-versions/{id}/approve/",
        operation_id="approveSoaVersion",
        tag="Versions of statements",
        summary="Approve a version of a statement of applicability",
        description="""\
Approves a draft, which only the member can whom the version names as its approver, whatever their role; an owner cannot
in their place. The approved version of the same framework until then becomes `SUPERSEDED` in the same transaction.""",
        role="owner",
        own_role="viewer",
        about=SoaVersion,
        id_description=_ID,
        work=lambda unit, request: versions.approve(unit, request.id),
        present=versions.present,
        writes=versions.APPROVAL_WRITES,
        errors=(WrongState, FilesErased),
        answer=_Version,
        answer_description="The version as it is now.",
        example=_VERSION,
    ),
)
