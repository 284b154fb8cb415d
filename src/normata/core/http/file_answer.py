"""Answers that are files: sent as they are, in whole or in part (RFC 9110, section 14), and never shown in a page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from normata.core.http.negotiation import Headers, best_media_type, is_current, matches
from normata.core.http.problems import NotAcceptable, PreconditionFailed, RangeNotSatisfiable

_RANGE = re.compile(r"bytes[ \t]*=[ \t]*(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))[ \t]*", re.IGNORECASE)
_PATHS = "http.response.pathsend"  # an extension of ASGI
# Whatever a browser makes of a file, it gets no origin, runs nothing and loads nothing.
_SANDBOX = b"sandbox; default-src 'none'"


class Part(NamedTuple):
    """Some bytes of a file: from ``start`` to before ``end``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """A file to send. ``sha256`` is the hash of its bytes, in hexadecimal digits: the file never changes.

    ``read`` yields its bytes from one place to before another; ``path`` has them, too, if it is a file of this machine.
    Where it ``is_page``, no browser may keep it.
    """

    name: str
    media_type: str
    size: int
    sha256: str
    read: Callable[[int, int], AsyncIterator[bytes]]
    is_page: bool = False
    path: Path | None = None

    async def send(self, headers: Headers, send: Send, scope: Scope) -> None:
        """Send it, a part of it, or 304 if the client has it already.

        Raises NotAcceptable, PreconditionFailed, RangeNotSatisfiable, and what ``read`` raises before the first byte.
        """
        if best_media_type(headers.get(b"accept", b""), (self.media_type.partition(";")[0].lower(),)) is None:
            raise NotAcceptable("The Accept header does not accept the media type of the file.")
        tag = f'"{self.sha256}"'.encode()
        wanted = headers.get(b"if-match")
        if wanted is not None and not matches(wanted, tag):
            raise PreconditionFailed
        fields = [
            (b"etag", tag),
            (b"cache-control", b"no-store" if self.is_page else b"private, no-cache"),
            (b"vary", b"authorization, cookie"),
            (b"content-security-policy", _SANDBOX),
            (b"accept-ranges", b"bytes"),
        ]
        is_head = scope["method"] == "HEAD"
        held = headers.get(b"if-none-match")
        if held is not None and is_current(held, tag):
            await send({"type": "http.response.start", "status": 304, "headers": fields})
            await send({"type": "http.response.body", "body": b""})
            return
        part = None if is_head or not _is_fresh(headers, tag) else requested(headers.get(b"range", b""), self.size)
        start, end = part or Part(0, self.size)
        fields += [
            (b"content-type", self.media_type.encode()),
            (b"content-length", str(end - start).encode()),
            (b"content-disposition", attachment(self.name)),
        ]
        if part is not None:
            fields.append((b"content-range", f"bytes {start}-{end - 1}/{self.size}".encode()))
        begin = {"type": "http.response.start", "status": 200 if part is None else 206, "headers": fields}
        if part is None and not is_head and self.path is not None and _PATHS in scope.get("extensions", {}):
            await send(begin)  # the server sends all of it, three times as fast as in pieces
            await send({"type": _PATHS, "path": str(self.path)})
            return
        begun = False
        if not is_head and start < end:
            async with aclosing(self.read(start, end)) as pieces:  # type: ignore[type-var] # a generator
                async for piece in pieces:
                    if not begun:  # what cannot be read is still an error of its own
                        await send(begin)
                        begun = True
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        if not begun:
            await send(begin)
        await send({"type": "http.response.body", "body": b""})


class FileResponse(Response):
    """A file as the answer of a page."""

    def __init__(self, answer: FileAnswer, headers: Headers) -> None:
        super().__init__()
        self._answer = replace(answer, is_page=True)
        self._sent = headers

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        await self._answer.send(self._sent, send, scope)


def requested(range_: bytes, size: int) -> Part | None:
    """The part of a file that a ``Range`` asks for; null for all of it, as for several parts or another unit.

    Raises RangeNotSatisfiable.
    """
    found = _RANGE.fullmatch(range_.decode("latin-1"))
    if found is None:
        return None
    first, last, of_end = found.groups()
    if of_end is not None:
        start, end = max(0, size - int(of_end)), size
    else:
        start, end = int(first), size if not last else min(int(last) + 1, size)
        if last and int(last) < start:
            return None  # not a valid range, so it is ignored
    if start >= end:
        raise RangeNotSatisfiable(size)
    return Part(start, end)


def _is_fresh(headers: Headers, tag: bytes) -> bool:
    """Whether ``If-Range`` lets the client get a part: it has none, or names this very file (section 13.1.5)."""
    condition = headers.get(b"if-range")
    return condition is None or condition.strip() == tag


def attachment(name: str) -> bytes:
    """The ``Content-Disposition`` of a file to store under a name (RFC 6266, RFC 8187)."""
    plain = re.sub(r"[^ !#-\[\]-~]|%", "_", name)
    coded = quote(name, safe="!#$&+-.^_`|~")
    extended = "" if plain == name else f"; filename*=UTF-8''{coded}"
    return f'attachment; filename="{plain}"{extended}'.encode()
