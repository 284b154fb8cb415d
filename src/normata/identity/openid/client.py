"""Requests to the provider: bounded in time and size, and never redirected."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from typing_extensions import override

from normata.core.http.outgoing import trust
from normata.identity.openid.errors import ProviderFailed, ProviderUnreachable

TIMEOUT = 5.0  # seconds from the start of a request to the last byte of its answer
_LARGEST = 1_000_000  # bytes of an answer; the keys of large providers take some thousands


class ProviderClient(httpx2.AsyncClient):
    """The HTTP client for one sign-in: its connections carry one person's tokens, so it is never shared."""

    def __init__(self) -> None:
        super().__init__(
            verify=trust(),
            timeout=TIMEOUT,
            follow_redirects=False,
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "normata"},
        )

    @override
    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        # Read the whole answer. Raises ProviderFailed and ProviderUnreachable.
        options["stream"] = True
        try:
            async with asyncio.timeout(TIMEOUT):
                response = await super().send(request, **options)
                try:
                    body = await _read(response)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise ProviderUnreachable("timeout") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise ProviderUnreachable("unreachable") from error
        if response.status_code >= 500:
            raise ProviderUnreachable(f"status_{response.status_code}")
        return httpx2.Response(response.status_code, content=body, request=request)

    async def json(self, url: str, bearer: str | None = None) -> dict[str, Any]:
        """The JSON object at an address. Raises ProviderFailed, ProviderUnreachable."""
        response = await self.get(url, headers={"Authorization": f"Bearer {bearer}"} if bearer else {})
        if response.status_code != 200:
            raise ProviderFailed(f"status_{response.status_code}")
        return json_object(response)


def json_object(response: httpx2.Response) -> dict[str, Any]:
    """The JSON object of an answer. Raises ProviderFailed."""
    try:
        document = response.json()
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ProviderFailed("no_json")
    return document


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _LARGEST:
            raise ProviderFailed("too_large")
    return bytes(body)
