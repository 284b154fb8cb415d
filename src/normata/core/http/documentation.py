"""The OpenAPI document as it is served, and the page that shows it without reaching for any other host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import fastapi_offline
from fastapi.openapi.docs import get_redoc_html
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from normata.core.http.content import Content
from normata.core.http.context import context_of
from normata.core.http.pages import content_page, page
from normata.core.schema.wire import encode

_ASSETS = Path(fastapi_offline.__file__).parent / "static"
_A_DAY = b"public, max-age=86400"


def routes(document: Callable[[], dict[str, Any]]) -> Iterator[Route]:
    """The routes of /openapi.json and of /docs."""

    @lru_cache(maxsize=8)
    def openapi_json(root: str) -> Content:
        return Content(encode(document() | {"servers": [{"url": f"{root}/"}]}))

    @cache
    def redoc() -> Content:
        return Content((_ASSETS / "redoc.standalone.js").read_bytes(), b"text/javascript; charset=utf-8", _A_DAY)

    async def docs(request: Request) -> Response:
        root = context_of(request.scope).prefix
        answer = get_redoc_html(
            openapi_url=f"{root}/openapi.json",
            title="Normata",
            redoc_js_url=f"{root}/docs/redoc.js",
            redoc_favicon_url="data:,",
            with_google_fonts=False,
        )
        # The policy makes sure that a closed network is enough: the browser asks no other host, whatever the script
        # would like to load.
        answer.headers["Content-Security-Policy"] = (
            "default-src 'none'; connect-src 'self'; img-src 'self' data:; font-src data:; worker-src blob:;"
            " script-src 'self' 'unsafe-inline' blob:; style-src 'unsafe-inline'; frame-ancestors 'none'"
        )
        return answer

    yield content_page("/openapi.json/", openapi_json)
    yield page("/docs/", docs)
    yield content_page("/docs/redoc.js/", lambda _root: redoc())
