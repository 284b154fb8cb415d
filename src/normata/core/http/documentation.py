"""Serving the OpenAPI document, and its reference as a page: built beforehand, and cached compressed."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson
from markupsafe import escape
from starlette.routing import Route
from typing_extensions import override

from normata.core.http import reference
from normata.core.http.content import Content, Representation, compressed
from normata.core.http.negotiation import CODINGS, Headers, best_coding, entity_tag
from normata.core.http.pages import content_page

# The files by name, compressed with gzip, as served without a prefix.
Files = Mapping[str, bytes]
OPENAPI, REFERENCE = "openapi.json.gz", "reference.html.gz"


def files(document: dict[str, Any]) -> Files:
    """The files of an OpenAPI document."""
    made = {OPENAPI: orjson.dumps(document), REFERENCE: reference.page(document).encode()}
    return {name: gzip.compress(body, 9, mtime=0) for name, body in made.items()}


def routes(read: Callable[[], Files]) -> Iterator[Route]:
    """The routes of /openapi.json and of /docs. ``read`` returns :func:`files`, and may take seconds to do so."""
    reading = asyncio.Lock()  # waiting on this lock, requests occupy no thread

    async def read_files() -> Files:
        async with reading:
            return await asyncio.to_thread(read)

    async def document() -> bytes:
        return (await read_files())[OPENAPI]

    async def page() -> bytes:
        return (await read_files())[REFERENCE]

    @lru_cache(maxsize=8)
    def openapi_json(root: str) -> Content:
        finish = (lambda body: _with_server(body, root)) if root else None
        return _StoredContent(document, finish, b"application/json")

    @lru_cache(maxsize=8)
    def docs(root: str) -> Content:
        finish = (lambda body: _with_links(body, root)) if root else None
        return _StoredContent(page, finish, b"text/html; charset=utf-8")

    yield content_page("/openapi.json/", openapi_json)
    yield content_page("/docs/", docs, (b"content-security-policy", reference.content_security_policy()))


class _StoredContent(Content):
    """Content that is stored compressed: only its representations in codings are cached.

    ``read`` returns the stored content, and ``finish`` makes the body from it; null if it is the body.
    """

    __slots__ = ("_finish", "_read")

    def __init__(
        self, read: Callable[[], Awaitable[bytes]], finish: Callable[[bytes], bytes] | None, media_type: bytes
    ) -> None:
        super().__init__(b"", media_type)
        self._read = read
        self._finish = finish

    @override
    async def representation(self, headers: Headers) -> Representation:
        coding = best_coding(headers.get(b"accept-encoding", b""), CODINGS)
        made = self.representations.get(coding)
        if made is None:
            made = await asyncio.to_thread(self._represent, await self._read(), coding)
            if coding != "identity":
                self.representations[coding] = made
        return made

    def _represent(self, stored: bytes, coding: str) -> Representation:
        if coding == "gzip" and self._finish is None:
            return self.represented(stored, entity_tag(stored, coding), coding)
        body = gzip.decompress(stored) if self._finish is None else self._finish(gzip.decompress(stored))
        # A large body that somebody is waiting for.
        return self.represented(compressed(body, coding, quickly=True), entity_tag(body, coding), coding)


def _with_server(body: bytes, root: str) -> bytes:
    """The document of a service under a prefix."""
    return body.replace(b'"servers":[{"url":"/"}]', b'"servers":[{"url":%b}]' % orjson.dumps(f"{root}/"), 1)


def _with_links(body: bytes, root: str) -> bytes:
    """The page of a service under a prefix: its links to the service begin with a slash."""
    return body.replace(b' href="/', b' href="%b/' % escape(root).encode())
