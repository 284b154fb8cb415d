"""The files of records: attaching, detaching and downloading them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Outcome, Refusal, tag_of
from normata.console.app.downloads import download_upload
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.details import show_one
from normata.console.app.records.kinds import Kind, changing, getting, kind_of
from normata.console.texts import text
from normata.core.http.body_stream import Arriving
from normata.core.http.problems import InvalidRequest
from normata.core.schema.fields import MAX_FILES
from normata.errors import NotFound
from normata.records.fields import fields_of

_ROOM = 2**20  # bytes of a form besides its files
_PIECE = 2**18  # bytes that are read at a time
_ATTEMPTS = 5  # to change the record, while others do so


async def download(page_request: OrganizationRequest) -> Response:
    """A file, as an attachment: in whole, or a part of it."""
    return await download_upload(page_request, "downloadFile", page_request.param("id"))


async def change_files(page_request: OrganizationRequest) -> Response:
    """Attach the files of a form to a record, or detach the one that a button names."""
    kind, record_id = kind_of(page_request), page_request.param("id")
    field = next((field.name for field in fields_of(kind) if field.sort == "files"), None)
    if field is None:
        raise NotFound
    place = page_request.path("records", kind.path, record_id) + "#files"
    if has_files(page_request):
        uploaded = await upload(page_request)
        outcome, attached = uploaded.outcome, uploaded.ids
        done = "files_attached"
        detached = ""
    else:
        outcome, attached = Outcome(None), ()
        done = "file_detached"
        detached = (await page_request.fields()).get("detach")
    if outcome.refusal is None and not (attached or detached):
        title, message = text("record.files_refused"), text("record.no_file_chosen")
        outcome = Outcome(None, Refusal(400, "validation", title, message, {"file": message}))
    if outcome.refusal is None:
        outcome = await _change(page_request, kind, record_id, field, attached=attached, detached=detached)
    if outcome.refusal is not None:
        return await show_one(page_request, refusal=outcome.refusal)
    return page_request.go(place, done)


def has_files(page_request: OrganizationRequest) -> bool:
    """Whether the form was sent as one that may have files."""
    return page_request.context.headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data")


class Uploaded(NamedTuple):
    """What a form with files has brought: the outcome of the last file, the ids and names of those that are stored.

    ``fields`` are its other fields.
    """

    outcome: Outcome
    ids: Sequence[str]
    names: Sequence[str]
    fields: Fields


async def upload(page_request: OrganizationRequest) -> Uploaded:
    """Upload the files of a form. What no record has goes after a day. Raises InvalidRequest."""
    page_request.context.body_limit = page_request.console.settings.max_file_bytes + _ROOM
    outcome, ids, names = Outcome(None), list[str](), list[str]()
    try:
        # The parser writes what is large to a temporary file.
        async with page_request.request.form(max_files=MAX_FILES, max_fields=MAX_FILES) as form:
            fields = Fields([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
            for sent in form.getlist("file"):
                if isinstance(sent, UploadFile) and sent.filename and outcome.refusal is None:
                    names.append(sent.filename.replace("\\", "/").rpartition("/")[2])
                    body = Arriving(sent.content_type or "", sent.size, _pieces(sent))
                    outcome = await page_request.upload("uploadFile", {"name": names[-1]}, body)
                    ids += [] if outcome.refusal else [outcome.answer["id"]]
    except (HTTPException, ClientDisconnect):
        raise InvalidRequest(text("problem.form")) from None
    return Uploaded(outcome, ids, names, fields)


async def _pieces(sent: UploadFile) -> AsyncIterator[bytes]:
    while piece := await sent.read(_PIECE):
        yield piece


async def _change(
    page_request: OrganizationRequest, kind: Kind, record_id: str, field: str, *, attached: Sequence[str], detached: str
) -> Outcome:
    """Change the files of a record, whatever others change of it meanwhile."""
    for _ in range(_ATTEMPTS):
        record = await page_request.ask_one(ApiQuery(getting(kind), id=record_id))
        files = [one for one in record[field] if one != detached]
        outcome = await page_request.change(
            changing(kind), row_id=record_id, body={field: [*files, *attached]}, if_match=tag_of(record)
        )
        if outcome.refusal is None or outcome.refusal.status != 412:
            break
    return outcome
