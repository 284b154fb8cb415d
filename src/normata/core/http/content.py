"""Content for clients: in the requested content coding, and only if the client does not have it already."""

from __future__ import annotations

import asyncio
import gzip
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.types import Send

from normata.core.http.negotiation import CODINGS, Headers, best_coding, entity_tag, is_current, matches
from normata.core.http.problems import PreconditionFailed

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_WORTH_PACKING = 1_000  # bytes; less fits into one packet anyway
_LARGE = 100_000  # bytes whose hash takes so long that the event loop should not wait for it


class Representation(NamedTuple):
    """Content in one coding; ``entity_tag`` is quoted."""

    entity_tag: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass(slots=True)
class Content:
    """Bytes to send. By default they are JSON that belongs to one caller, so shared caches must not store them.

    ``disposition`` is a Content-Disposition (RFC 6266), empty if there is none. If it ``is_packed``, it is sent
    unchanged, because compression would gain nothing.
    """

    body: bytes
    media_type: bytes = b"application/json"
    cache_control: bytes = b"private, no-cache"
    vary: bytes = b"accept-encoding, authorization"
    disposition: bytes = b""
    is_packed: bool = False
    representations: dict[str, Representation] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Its size in memory, in bytes."""
        packed = sum(len(made.body) for coding, made in self.representations.items() if coding != "identity")
        return len(self.body) + packed + 1_000  # with the Python objects around them

    async def representation(self, headers: Headers) -> Representation:
        """The content in the coding that a client accepts."""
        coding = best_coding(headers.get(b"accept-encoding", b""), CODINGS)
        if self.is_packed or len(self.body) < _WORTH_PACKING:
            coding = "identity"
        made = self.representations.get(coding)
        if made is None:
            # Compression takes milliseconds, which the event loop should not wait for.
            is_quick = coding == "identity" and len(self.body) < _LARGE
            made = self._pack(coding) if is_quick else await asyncio.to_thread(self._pack, coding)
            self.representations[coding] = made
        return made

    def _pack(self, coding: str) -> Representation:
        return self.represented(compressed(self.body, coding), entity_tag(self.body, coding), coding)

    def represented(self, body: bytes, tag: bytes, coding: str) -> Representation:
        """A representation whose body is in a coding already."""
        headers = [
            (b"content-type", self.media_type),
            (b"content-length", str(len(body)).encode()),
            *([] if coding == "identity" else [(b"content-encoding", coding.encode())]),
            *([(b"content-disposition", self.disposition)] if self.disposition else []),
            *self._validators(tag),
        ]
        return Representation(tag, headers, body)

    def _validators(self, entity_tag: bytes) -> list[tuple[bytes, bytes]]:
        """The headers that an answer has whether its body comes along or not (RFC 9110, section 15.4.5)."""
        return [
            (b"etag", entity_tag),
            (b"cache-control", self.cache_control),
            (b"vary", self.vary),
        ]

    async def send(self, headers: Headers, send: Send, *more: tuple[bytes, bytes]) -> None:
        """Send it, or 304 if the client has it already (RFC 9110, section 13.2.2). Raises PreconditionFailed.

        ``more`` are headers of this answer alone.
        """
        made = await self.representation(headers)
        wanted = headers.get(b"if-match")
        if wanted is not None and not matches(wanted, made.entity_tag):
            raise PreconditionFailed
        status, fields, body = 200, made.headers, made.body
        held = headers.get(b"if-none-match")
        if held is not None and is_current(held, made.entity_tag):
            status, fields, body = 304, self._validators(made.entity_tag), b""
        await send({"type": "http.response.start", "status": status, "headers": [*fields, *more] if more else fields})
        await send({"type": "http.response.body", "body": body})


def compressed(body: bytes, coding: str, *, quickly: bool = False) -> bytes:
    """A body in a content coding; ``quickly`` in about half the time, and a quarter larger."""
    match coding:
        case "zstd":
            return zstd.compress(body, level=3)
        case "gzip":
            return gzip.compress(body, compresslevel=4 if quickly else 6, mtime=0)
        case _:
            return body
