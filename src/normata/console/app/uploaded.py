"""Files in forms that are previewed first: the page of the preview carries the file, so nobody chooses it again."""

from __future__ import annotations

import asyncio
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from normata.console.app.organization_request import OrganizationRequest
from normata.console.texts import text
from normata.core.http.file_form import type_of
from normata.core.http.operation import BodyFormat, ChangeOperation
from normata.core.http.problems import InvalidRequest, TooLarge, UnsupportedMediaType

_FORMS = (b"multipart/form-data", b"application/x-www-form-urlencoded")  # a form without a file may be either
_ROOM = 2**16  # bytes of the form besides the file
_MAX_CARRIED = 3 * 2**20  # characters of the file in the page
_MAX_PARTS = 10


class File(NamedTuple):
    """An uploaded file. Its media type follows from the ending of its name, and is null for an unknown one.

    The preview page carries the file in the form field ``carried``, which is empty if the file is too large.
    """

    name: str
    media_type: str | None
    content: bytes
    carried: str
    digest: str


class UploadForm(NamedTuple):
    """A form with a file; null if none was chosen, and none carried."""

    fields: Mapping[str, str]
    file: File | None

    def get(self, name: str) -> str:
        """The value of a field, without surrounding whitespace; empty if the field is missing."""
        return self.fields.get(name, "")


def importing(page_request: OrganizationRequest, operation_id: str) -> ChangeOperation:
    """The operation to which a file is sent."""
    operation = page_request.console.operations[operation_id]
    assert isinstance(operation, ChangeOperation)  # noqa: S101 - narrows the type
    return operation


def endings_of(operation: ChangeOperation) -> list[str]:
    """The file name endings of all formats that an operation reads."""
    return [ending for one in operation.body_formats.values() for ending in one.endings]


async def upload_form(page_request: OrganizationRequest, operation: ChangeOperation) -> UploadForm:
    """The form of an upload for an operation. Raises UnsupportedMediaType, InvalidRequest and TooLarge."""
    limit = operation.body_limit or 0
    media_type = page_request.context.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type not in _FORMS:
        raise UnsupportedMediaType(text("problem.form"))
    page_request.context.body_limit = limit + _MAX_CARRIED + _ROOM
    try:
        # The parser limits everything but the file; the limit of the request applies to all of it.
        async with page_request.request.form(max_files=1, max_fields=_MAX_PARTS, max_part_size=_MAX_CARRIED) as form:
            return UploadForm({name: _field(form, name) for name in form}, await _file(form, operation, limit))
    except (HTTPException, ClientDisconnect):
        raise InvalidRequest(text("problem.form")) from None


def _field(form: FormData, name: str) -> str:
    found = form.get(name)
    return found.strip().replace("\0", "") if isinstance(found, str) else ""


async def _file(form: FormData, operation: ChangeOperation, limit: int) -> File | None:
    """The file that was chosen, or else the one that the page carries. Raises TooLarge and InvalidRequest."""
    formats: Mapping[str, BodyFormat] = operation.body_formats
    chosen = form.get("file")
    if isinstance(chosen, UploadFile) and chosen.filename:
        content = await chosen.read()
        if len(content) > limit:
            raise TooLarge
        media_type = type_of("", chosen.filename, formats)
        return await asyncio.to_thread(_packed, chosen.filename, media_type, content)
    carried = _field(form, "carried")
    if not carried:
        return None
    name = _field(form, "carried_name")
    return await asyncio.to_thread(_unpacked, name, type_of("", name, formats), carried, limit)


def _packed(name: str, media_type: str | None, content: bytes) -> File:
    """A chosen file, packed for the page to carry."""
    packed = b64encode(zlib.compress(content)).decode()
    carried = packed if len(packed) <= _MAX_CARRIED else ""
    return File(name, media_type, content, carried, sha256(content).hexdigest())


def _unpacked(name: str, media_type: str | None, carried: str, limit: int) -> File:
    """The file that a page has carried.

    Raises InvalidRequest, and TooLarge before unpacking more than the limit.
    """
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(b64decode(carried, validate=True), limit + 1)
    except (ValueError, zlib.error):
        raise InvalidRequest(text("problem.form")) from None
    if len(content) > limit:
        raise TooLarge
    return File(name, media_type, content, carried, sha256(content).hexdigest())
