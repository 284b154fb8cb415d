"""Answers as JSON."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.core.schema.wire import encode


class EncodedJson(Response):
    """A body that is encoded JSON. It belongs to one caller, so shared caches must not store it (RFC 9111)."""

    media_type = "application/json"

    def __init__(self, body: bytes, status_code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(body, status_code, {"Cache-Control": "private, no-cache"} | (headers or {}))


class JsonResponse(EncodedJson):
    """A body to encode as JSON."""

    def __init__(self, content: Any, status_code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(encode(content), status_code, headers)
