"""Pages of lists as they leave the service, and those that a process keeps."""

from __future__ import annotations

import gzip
import hashlib
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CODINGS = ("zstd", "br", "gzip")  # the best first

_WORTH_PACKING = 1_000  # bytes; less fits into one packet anyway


class Representation(NamedTuple):
    """A page in one content coding; ``entity_tag`` is quoted."""

    entity_tag: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass(slots=True)
class Page:
    """An encoded page, as it was at a revision of its organization (empty where it is not to be kept)."""

    revision: str
    body: bytes
    representations: dict[str, Representation] = field(default_factory=dict)

    def suited(self, coding: str) -> str:
        """The content coding to use where ``coding`` is wanted."""
        return coding if len(self.body) >= _WORTH_PACKING else "identity"

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        packed = sum(len(made.body) for coding, made in self.representations.items() if coding != "identity")
        return len(self.body) + packed + 1_000  # for what is around them

    def packed(self, coding: str) -> Representation:
        """The page in a content coding, made anew."""
        match coding:
            case "zstd":
                body = zstd.compress(self.body, level=3)
            case "br":
                body = brotli.compress(self.body, quality=5)
            case "gzip":
                body = gzip.compress(self.body, compresslevel=6, mtime=0)
            case _:
                body = self.body
        # Representations that differ in their bytes must differ in their tags (RFC 9110, section 8.8.3.3).
        tag = f'"{hashlib.sha256(self.body).hexdigest()[:32]}-{coding}"'.encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *([] if coding == "identity" else [(b"content-encoding", coding.encode())]),
            *validators(tag),
        ]
        return Representation(tag, headers, body)


def validators(entity_tag: bytes) -> list[tuple[bytes, bytes]]:
    """The headers that an answer has whether its body comes along or not (RFC 9110, section 15.4.5).

    A page belongs to one caller, so shared caches keep out, and the caller's own asks each time (RFC 9111).
    """
    return [
        (b"etag", entity_tag),
        (b"cache-control", b"private, no-cache"),
        (b"vary", b"accept-encoding, authorization"),
    ]


class KeptPages:
    """Pages that a process keeps, up to so many bytes: the one that nobody has asked for longest goes first.

    A page is given out only for the revision that its organization has now. Whoever asks has just read that from the
    database, so it does not matter which process has changed something: no old page is ever given out.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pages: OrderedDict[str, Page] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self.bytes = 0

    def find(self, key: str, revision: str) -> Page | None:
        """The page that is kept under ``key``, if it is of this revision."""
        page = self._pages.get(key)
        if page is None or page.revision != revision:
            return None
        self._pages.move_to_end(key)
        return page

    def keep(self, key: str, page: Page) -> None:
        """Keep a page, or know that the one that is kept has grown."""
        self._drop(key)
        size = page.size + len(key)
        if size > self._limit:
            return
        self._pages[key] = page
        self._sizes[key] = size
        self.bytes += size
        while self.bytes > self._limit:
            self._drop(next(iter(self._pages)))

    def _drop(self, key: str) -> None:
        if self._pages.pop(key, None) is not None:
            self.bytes -= self._sizes.pop(key)
