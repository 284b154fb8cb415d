"""A file in a form (``multipart/form-data``, RFC 7578), as generated clients and browsers send it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import NamedTuple

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from normata.core.http.operation import BodyFormat
from normata.core.http.problems import FieldFault, InvalidRequest, UnsupportedMediaType

MEDIA_TYPE = "multipart/form-data"
FIELD = "file"
SCHEMA = {
    "type": "object",
    "required": [FIELD],
    "properties": {
        FIELD: {
            "type": "string",
            "format": "binary",
            "description": "The file. Its type is that of its part, or else follows from the ending of its name.",
        }
    },
}
_MOST_FIELDS = 10  # further fields are ignored


class SentFile(NamedTuple):
    """A file that was sent, and its media type, one of those of the operation."""

    media_type: str
    content: bytes


async def read_file(request: Request, formats: Mapping[str, BodyFormat]) -> SentFile:
    """The file of a form. Raises InvalidRequest and UnsupportedMediaType."""
    try:
        async with request.form(max_files=1, max_fields=_MOST_FIELDS) as form:
            sent = form.get(FIELD)
            if not isinstance(sent, UploadFile):
                raise _fault(FIELD, "required", "is required: a part with a file")
            content = await sent.read()
            media_type = type_of(sent.content_type or "", sent.filename or "", formats)
    except HTTPException:
        raise _fault("", "invalid", "is not multipart/form-data") from None
    if media_type is None:
        known = ", ".join(formats)
        raise UnsupportedMediaType(f"The file must be one of these, by the type of its part or its ending: {known}.")
    return SentFile(media_type, content)


def type_of(declared: str, name: str, formats: Mapping[str, BodyFormat]) -> str | None:
    """The media type of a file: the declared one, or else by the ending of its name; null if it is not supported."""
    media_type = declared.partition(";")[0].strip().lower()
    if media_type in formats:
        return media_type
    ending = PurePath(name).suffix.lower()
    return next((one for one, body_format in formats.items() if ending and ending in body_format.endings), None)


def _fault(name: str, code: str, message: str) -> InvalidRequest:
    return InvalidRequest.of([FieldFault(in_="body", name=name, code=code, message=message, allowed=None)])
