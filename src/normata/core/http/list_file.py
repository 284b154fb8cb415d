"""Lists as files: all rows of a list from one snapshot, in a temporary file that is sent and then removed.

The file is complete before its first byte is sent. So no slow client holds a snapshot open, no list is too large for
the memory, and what goes wrong is still an error of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from normata.core.db.transaction import TenantScope
from normata.core.http.file_answer import FileAnswer
from normata.core.http.formats import FormatName, FormatQuery
from normata.core.http.negotiation import Headers
from normata.core.http.operation import ListOperation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.reads import Reading, Reads, WrittenFile
from normata.core.http.request import Request

_PIECE = 2**18  # bytes
OF_A_PAGE = ("page", "limit", "cursor")


def format_of(operation: ListOperation, query: FormatQuery, accept: bytes) -> FormatName:
    """The format that a query or an ``Accept`` asks for. Raises NotAcceptable, and InvalidRequest for a page."""
    assert operation.files is not None  # noqa: S101 - narrows the type
    chosen = operation.files.choose(query, accept)
    if chosen != "json":
        message = "does not go with a file, which has all pages"
        paged = [name for name in OF_A_PAGE if name in query.model_fields_set]
        faults = [FieldFault(in_="query", name=name, code="combined", message=message, allowed=None) for name in paged]
        if faults:
            raise InvalidRequest.of(faults)
    return chosen


@asynccontextmanager
async def list_file(
    reads: Reads, operation: ListOperation, request: Request, name: FormatName, receive: Receive
) -> AsyncIterator[FileAnswer]:
    """The file with all rows of a list, as long as the block runs. Raises what the operation declares."""
    assert operation.files is not None  # noqa: S101 - narrows the type
    with NamedTemporaryFile(prefix="normata-list-") as file:
        scope = TenantScope(readable=(request.organization_id,))
        reading = Reading("file", [(operation, replace(request, format=name))], scope, file.name)
        written: WrittenFile = await reads.run(reading, receive)
        chosen = operation.files.by_name[name]
        yield FileAnswer(
            name=written.name,
            media_type=f"{chosen.media_type}{chosen.parameters}",
            size=written.size,
            sha256=written.sha256,
            read=partial(_pieces, Path(file.name)),
        )


class ListFileResponse(Response):
    """The file of a list as the answer of a page. It is there until the answer is sent, or dropped."""

    def __init__(self, answer: FileAnswer, stack: AsyncExitStack) -> None:
        super().__init__()
        self._answer = replace(answer, is_page=True)
        self._stack = stack

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        async with self._stack:
            await self._answer.send({}, send, scope)


def without_accept(headers: Headers) -> Headers:
    """The headers of a request whose query has named the format, which wins over ``Accept``."""
    return {name: value for name, value in headers.items() if name != b"accept"}


async def _pieces(path: Path, start: int, end: int) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        while start < end:
            piece = await asyncio.to_thread(file.read, min(_PIECE, end - start))
            start += len(piece)
            yield piece
