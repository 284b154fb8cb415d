"""The operations of files."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from normata.core.http.body_stream import BodyStream
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import OrganizationQuery
from normata.errors import FilesErased, MalwareFound, QuotaExceeded
from normata.files import files
from normata.files.model import File, FileName
from normata.settings import Settings


class FileDescription(BaseModel):
    """A file. Its bytes are at `content/` below its address."""

    id: str = Field(description="The identifier: opaque, and never reused.")
    name: str = Field(description="The name that whoever has uploaded it gave it.")
    media_type: str = Field(description="The media type, as whoever has uploaded it says.")
    size: int = Field(description="The number of its bytes.")
    sha256: str = Field(description="The SHA-256 of its bytes, in hexadecimal digits.")
    erased_at: Timestamp | None = Field(description="When its bytes were erased; null if they are there.")

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class UploadQuery(OrganizationQuery):
    """The query of an upload."""

    name: Annotated[
        FileName,
        Field(description="The name of the file, without a path.", examples=["restore-test-2026.pdf"]),
    ]


def present(row: Any) -> dict[str, Any]:
    """A file in wire form."""
    return {to_camel(name): getattr(row, name) for name in FileDescription.model_fields}


_ID = "The id of the file."
_FILE: dict[str, Any] = {
    "id": "01a21c3e-5b1f-7d33-9a0e-3c6d5f1b2a47",
    "name": "restore-test-2026.pdf",
    "mediaType": "application/pdf",
    "size": 184320,
    "sha256": "b137985ff484fb600db93107c77b0365c80d78f5b429ded0fd97361d077999eb",
    "erasedAt": None,
}
_WHO = """Whoever reads the organization's records may read a file that a record has or has had. Until then only who has
uploaded it may."""

OPERATIONS: tuple[Operation, ...] = (
    ChangeOperation(
        http_method="POST",
        path="/files/",
        operation_id="uploadFile",
        tag="Files",
        summary="Upload a file",
        description="""\
Stores the body, of any media type, as a file of the organization. Its `Content-Type` is kept, and nothing is concluded
from it. Name the file in the `fileIds` of evidence: a file that no record has had goes after a day, one that a record
has had stays. The SHA-256 is that of the bytes, and part of the event. More bytes than the service allows for a file
are answered 413, more than it allows for an organization 409 `quota_exceeded`. If the service has a malware
scanner, what it refuses is answered 422 `malware_found`. With 503 nothing was stored.""",
        query=UploadQuery,
        body_stream=BodyStream(
            limit=lambda means: means[Settings].max_file_bytes, admit=files.admit, receive=files.receive
        ),
        work=files.create,
        present=present,
        writes=files.UPLOAD_WRITES,
        errors=(QuotaExceeded, MalwareFound),
        creates=True,
        answer=FileDescription,
        answer_description="The file.",
        example=_FILE,
    ),
    ReadOperation(
        path="/files/{id}/",
        operation_id="getFile",
        tag="Files",
        summary="Get a file",
        description=f"What is known of a file. {_WHO}",
        about=File,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: present(files.one_file(transaction, request)),
        answer=FileDescription,
        answer_description="The file.",
        example=_FILE,
    ),
    ReadOperation(
        path="/files/{id}/content/",
        operation_id="downloadFile",
        tag="Files",
        summary="Download a file",
        description=f"""\
The bytes of a file, as an attachment under its name. `Range` gets a part of them (RFC 9110, section 14), with
`If-Range` only while the entity tag, which is the SHA-256, is the same; of several ranges, all of the file is sent. A
browser gives it no origin, and runs nothing of it. Once its bytes are erased, with a person whom they name or after the
time for which the organization keeps replaced files, it is 410 `files_erased`. {_WHO}""",
        errors=(FilesErased,),
        about=File,
        id_description=_ID,
        query=OrganizationQuery,
        build=files.content_of,
        sends_file=True,
        answer=None,
        answer_description="The file.",
        example=None,
    ),
)
