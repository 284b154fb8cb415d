"""Requests to the provider: bounded in time and size, and never redirected."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from typing import Any
from urllib.parse import quote_plus

import httpx2
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.auth import encode_client_secret_basic

from normata.identity.openid.configuration import Configuration
from normata.identity.openid.errors import ProviderFailed, ProviderUnreachable

TIMEOUT = 5.0  # seconds for one request, from its beginning to the last byte of the answer
_LARGEST = 1_000_000  # bytes of an answer; keys of large providers take some thousands


class Exchange(AsyncOAuth2Client):  # type: ignore[misc] # the library has no types
    """The OAuth client for one sign-in: it holds the tokens of one person, so it is never shared."""

    def __init__(self, configuration: Configuration, authentication: str | None = None) -> None:
        super().__init__(
            client_id=configuration.client_id,
            client_secret=configuration.client_secret,
            token_endpoint_auth_method=authentication,
            redirect_uri=configuration.redirect_uri,
            code_challenge_method="S256",
            verify=trust(),
            timeout=TIMEOUT,
            follow_redirects=False,
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "normata"},
        )
        self.register_client_auth_method(("client_secret_basic", _basic))

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request, and read the answer whole. Raises ProviderFailed, ProviderUnreachable."""
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
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        response = await self.request("GET", url, withhold_token=True, headers=headers)
        if response.status_code != 200:
            raise ProviderFailed(f"status_{response.status_code}")
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


@cache
def trust() -> ssl.SSLContext:
    """Which certificates are trusted: those of the system. To read them takes long enough to hold up other requests."""
    return httpx2.create_ssl_context()


def _basic(client: Any, method: str, uri: str, headers: Any, body: Any) -> Any:
    """RFC 6749, section 2.3.1: both are encoded as in a form first, which the library leaves out."""
    encoded = _Encoded(quote_plus(client.client_id), quote_plus(client.client_secret))
    return encode_client_secret_basic(encoded, method, uri, headers, body)


class _Encoded:
    def __init__(self, client_id: str, client_secret: str) -> None:
        self.client_id = client_id
        self.client_secret = client_secret
