"""Uploading and reading files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy import text as sql_text

from normata.core.changes.source import Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of
from normata.core.changes.writing import BODY, valid_rows, write_one
from normata.core.db.transaction import Transaction
from normata.core.http.body_stream import Arriving
from normata.core.http.file_answer import FileAnswer
from normata.core.http.problems import HttpError
from normata.core.http.request import Request
from normata.core.log import logger
from normata.core.schema.table import new_id, sql_table
from normata.errors import DomainError, FilesErased, NotFound, QuotaExceeded, Unavailable
from normata.files.model import MEDIA_TYPE, WITH_CONTENT, File
from normata.files.scanner import Scanner
from normata.files.store import FileStore, Place, place_of
from normata.identity.organization_lookup import reached
from normata.settings import Settings

UPLOAD_WRITES = (insert_of(File),)

_ERASED = (
    "Its bytes were erased, with a person whom they named or after the time for which the organization keeps replaced"
    " files; its hash and events remain."
)
_UNKNOWN_TYPE = "application/octet-stream"
_AT_ONCE = 2**20  # bytes that are hashed and written together


@dataclass(slots=True)
class Upload:
    """A file that has arrived. It ``has_row`` once its row is written, whether or not that is committed."""

    id: str
    media_type: str
    size: int
    sha256: str
    has_row: bool = False


def admit(unit: UnitOfWork, request: Request, arriving: Arriving) -> str:
    """The id of the organization of an upload.

    Raises NotFound, InsufficientRole, and QuotaExceeded if the client says that the file is too large for it.
    """
    organization_id = reached(unit, request.query.organization_id)
    _require_room(unit, organization_id, arriving.size or 0, request.means[Settings].files_quota)
    return organization_id


@asynccontextmanager
async def receive(request: Request, arriving: Arriving, organization_id: str) -> AsyncIterator[Upload]:
    """Store a file while it arrives. It has its place before its row is written, so that no row is without its bytes.

    What is refused then is removed, and so is a repetition, whose answer names the first file: or they would take room
    that no quota counts. Where it is not known whether the row was written, the bytes stay; without a row they are
    removed after a day. In a dry run they are only counted. Raises MalwareFound, and Unavailable if they cannot be
    stored or scanned.
    """
    store = request.means[FileStore]
    place: Place | None = None
    digest, size = sha256(), 0
    with storing():
        async with request.means[Scanner].scan() as scan, store.arrival() as arrival:
            async for part in _joined(arriving.parts):
                digest.update(part)
                size += len(part)
                await scan.write(part)
                if not request.dry_run:
                    await arrival.write(part)
            await scan.finish()
            media_type = arriving.media_type if re.fullmatch(MEDIA_TYPE, arriving.media_type) else _UNKNOWN_TYPE
            upload = Upload(new_id(), media_type, size, digest.hexdigest())
            if not request.dry_run:
                place = place_of(organization_id, upload.id, upload.sha256)
                await arrival.keep(place)
    is_unused = False
    try:
        yield upload
    except (DomainError, HttpError):
        is_unused = True
        raise
    else:
        is_unused = not upload.has_row
    finally:
        if place is not None and is_unused:
            with storing():
                await asyncio.to_thread(store.remove, place)


def create(unit: UnitOfWork, request: Request) -> Any:
    """Write the row of an upload, and return it. Raises what :func:`admit` raises, and FaultyInput."""
    organization_id = reached(unit, request.query.organization_id)
    return add(unit, organization_id, request.query.name, request.body, request.means[Settings].files_quota)


def add(unit: UnitOfWork, organization_id: str, name: str, upload: Upload, quota: int) -> Any:
    """Write the row of a file whose bytes are in their place, and return it. Raises QuotaExceeded and FaultyInput."""
    unit.lock(f"files {organization_id}")
    _require_room(unit, organization_id, upload.size, quota)
    values = {
        "id": upload.id,
        "organizationId": organization_id,
        "userId": unit.actor.user_id,
        "name": name,
        "mediaType": upload.media_type,
        "size": upload.size,
        "sha256": upload.sha256,
    }
    [pending] = valid_rows(unit, File, [Row(File.array, BODY, "", values)], are_new=True)
    upload.has_row = True
    row = write_one(unit, File, pending)
    unit.publish(Change("create", File, row.organization_id, row.id, row._asdict()))
    return row


def one_file(transaction: Transaction, request: Request) -> Any:
    """The row of a file that the caller may read. Raises NotFound."""
    row = transaction.row(_FIND, {"file": request.id})
    if row is None or row.organization_id != request.organization_id:
        raise NotFound
    if not File.is_seen_by(row._asdict(), request.caller.user_id):
        raise NotFound
    return row


def content_of(transaction: Transaction, request: Request) -> FileAnswer:
    """The answer with the bytes of a file. Raises NotFound, FilesErased, and Unavailable if they cannot be read."""
    row = one_file(transaction, request)
    if row.erased_at is not None:
        raise FilesErased(_ERASED)
    store, place = request.means[FileStore], place_of(row.organization_id, row.id, row.sha256)

    async def read(start: int, end: int) -> AsyncIterator[bytes]:
        with storing():
            async for piece in store.pieces(place, start, end):
                yield piece

    return FileAnswer(row.name, row.media_type, row.size, row.sha256, read, path=store.path(place))


@contextmanager
def storing() -> Iterator[None]:
    """Raise Unavailable where the store fails, and log why: a disk that is full, or a folder that is gone."""
    try:
        yield
    except OSError as error:
        logger.error("file_store_failed", reason=error.strerror or str(error), error=type(error).__name__)
        raise Unavailable("The files cannot be stored or read right now.", "storage") from error


async def _joined(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in larger parts, so that each is worth a thread."""
    held = bytearray()
    async for part in parts:
        held += part
        if len(held) >= _AT_ONCE:
            yield bytes(held)
            held = bytearray()
    if held:
        yield bytes(held)


def _require_room(unit: UnitOfWork, organization_id: str, size: int, quota: int) -> None:
    if quota and (unit.scalar(_USED, {"organization": organization_id}) or 0) + size > quota:
        raise QuotaExceeded


_TABLE = sql_table(File)
_FIND = select(*_TABLE.c).where(_TABLE.c.id == bindparam("file"))
_USED = select(func.sum(_TABLE.c.size)).where(
    _TABLE.c.organization_id == bindparam("organization"), sql_text(WITH_CONTENT)
)
