"""Requests to addresses that users have entered.

A name is resolved once, each of its addresses is checked, and the connection goes to one of those that were checked:
so nobody can let the service reach another address by changing what the name means in between. Redirects are not
followed, proxies of the environment are not used, and answers are not read.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from ipaddress import ip_address
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

import httpx2

from normata.core.http.outgoing_addresses import Address, Network, is_allowed, literal, networks_of, url_fault
from normata.settings import Settings

WITHIN = 10.0  # seconds for one request: resolve, connect, TLS, write, and the head of the answer
_CONNECT_WITHIN = 4.0  # seconds for one of several addresses
_MOST_ADDRESSES = 4
_DRAIN_WITHIN = 1.0  # seconds in which the body of an answer must be there, so that its connection can be used again
_DRAINED = 16_384  # bytes
_MOST_READ = 131_072  # bytes for one request: a receiver can send heads of the kind 1xx for ever
# Threads, each of which a dead server of names can hold up for half a minute: as many as connections are wanted at
# once, so that nobody waits for the names of others.
_RESOLVERS = 256

Resolve = Callable[[str, int], Coroutine[Any, Any, Sequence[str]]]


class NoAnswer(Exception):
    """There is no answer. ``reason`` is one word for it, which has nothing of the address or the answer in it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Answer(NamedTuple):
    """The head of an answer: its status, and the pause that it asks for in seconds, null if it does not."""

    status: int
    retry_after: float | None


class Connection:
    """An open connection to one URL, for one request after the other."""

    def __init__(self, url: str, networks: Sequence[Network], resolve: Resolve, trust: ssl.SSLContext) -> None:
        self._url = url
        self._parts = urlsplit(url)
        self._networks = networks
        self._resolve = resolve
        self._addresses: Sequence[Address] = ()
        self._used = False
        self._left = _MOST_READ
        self._resolving: asyncio.Future[Sequence[str]] | None = None
        self._transport = httpx2.AsyncHTTPTransport(
            verify=trust, trust_env=False, limits=httpx2.Limits(max_connections=1, keepalive_expiry=None)
        )

    async def post(self, headers: Mapping[str, str], content: bytes) -> Answer:
        """Send a request, and return the head of its answer. Raises NoAnswer, 10 seconds later at most."""
        self._left = _MOST_READ
        try:
            async with asyncio.timeout(WITHIN):
                response = await self._answered(headers, content)
        except TimeoutError:
            await self._restart()
            raise NoAnswer("TIMEOUT") from None
        await _drain(response)
        return Answer(response.status_code, _seconds(response.headers.get("retry-after")))

    async def aclose(self) -> None:
        """Close the connection."""
        with suppress(Exception):  # nothing of what can go wrong matters any more
            await self._transport.aclose()

    async def resolved(self) -> None:
        """Wait until no thread is resolving the name any more, which may take longer than a request."""
        if self._resolving is not None:
            await asyncio.wait([self._resolving])

    async def _answered(self, headers: Mapping[str, str], content: bytes) -> httpx2.Response:
        if not self._addresses:
            self._addresses = await self._checked()
        was_used, self._used = self._used, True
        for number, address in enumerate(self._addresses):
            try:
                response = await self._send(address, headers, content)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                if number + 1 == len(self._addresses):
                    _refuse(error)
            except (httpx2.TransportError, OSError) as error:
                if not was_used:
                    _refuse(error)
                # The receiver may close an idle connection while the next request is sent, so that is no failure yet.
                return await self._again(address, headers, content)
            else:
                self._addresses = (address,)
                return response
        raise NoAnswer("UNREACHABLE")

    async def _again(self, address: Address, headers: Mapping[str, str], content: bytes) -> httpx2.Response:
        await self._restart()
        try:
            return await self._send(address, headers, content)
        except (httpx2.TransportError, OSError) as error:
            _refuse(error)

    async def _restart(self) -> None:
        """Forget a connection in an unknown state; the next request opens another, to an address that was checked."""
        await self.aclose()
        self._used = False

    async def _send(self, address: Address, headers: Mapping[str, str], content: bytes) -> httpx2.Response:
        host = str(self._parts.hostname)
        is_name = literal(host) is None
        timeouts = {"connect": _CONNECT_WITHIN if len(self._addresses) > 1 else WITHIN}
        request = httpx2.Request(
            "POST",
            httpx2.URL(self._url).copy_with(host=str(address)),
            headers={"Host": self._parts.netloc, "Accept-Encoding": "identity", **headers},
            content=content,
            extensions={
                "timeout": {"read": WITHIN, "write": WITHIN, "pool": WITHIN, **timeouts},
                "trace": self._opened,
                **({"sni_hostname": host} if is_name else {}),
            },
        )
        return await self._transport.handle_async_request(request)

    async def _found(self, host: str, port: int) -> Sequence[str]:
        self._resolving = asyncio.ensure_future(self._resolve(host, port))
        return await asyncio.shield(self._resolving)

    async def _opened(self, step: str, info: Mapping[str, Any]) -> None:
        """Count what is read from a stream that was opened."""
        if step in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            stream = info["return_value"]
            stream.read = partial(self._counted, stream.read)

    async def _counted(self, read: Callable[..., Awaitable[bytes]], *options: Any, **more: Any) -> bytes:
        content = await read(*options, **more)
        self._left -= len(content)
        if self._left < 0:
            raise NoAnswer("BROKEN")
        return content

    async def _checked(self) -> Sequence[Address]:
        """The addresses of the host. Raises NoAnswer if one of them is not allowed, or there are none."""
        if url_fault(self._url, self._networks) is not None:  # the operator's list may have changed
            raise NoAnswer("NOT_ALLOWED")
        is_encrypted = self._parts.scheme == "https"
        port = self._parts.port or (443 if is_encrypted else 80)
        host = str(self._parts.hostname)
        try:
            found = [host] if literal(host) is not None else await self._found(host, port)
            addresses = list(dict.fromkeys(map(ip_address, found)))
        except (OSError, UnicodeError, ValueError):
            raise NoAnswer("UNRESOLVED") from None
        if not addresses:
            raise NoAnswer("UNRESOLVED")
        if not all(is_allowed(one, self._networks, is_encrypted=is_encrypted) for one in addresses):
            raise NoAnswer("NOT_ALLOWED")
        return addresses[:_MOST_ADDRESSES]


class Resolver:
    """Resolves names as the system does, on threads of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_RESOLVERS, thread_name_prefix="resolve")

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a name. Raises OSError and UnicodeError."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: look_up(host, port))


def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name as the system knows them. Raises OSError and UnicodeError."""
    return [str(address[0]) for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Outgoing:
    """Opens connections to URLs that users have entered. ``networks`` are those of the operator's list."""

    def __init__(
        self, networks: Sequence[Network], resolve: Resolve | None = None, trusted: ssl.SSLContext | None = None
    ) -> None:
        self.networks = networks
        self._resolve = resolve or Resolver().resolve
        self._trusted = trusted

    async def connection(self, url: str) -> Connection:
        """A connection to a URL, which is opened by its first request."""
        trusted = await asyncio.to_thread(trust) if self._trusted is None else self._trusted
        return Connection(url, self.networks, self._resolve, trusted)


def outgoing_of(settings: Settings) -> Outgoing:
    """What opens connections as the settings allow."""
    return Outgoing(networks_of(settings.webhook_networks))


def _refuse(error: Exception) -> NoReturn:
    """Raise NoAnswer with the reason of an error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            raise NoAnswer("TLS") from None
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx2.TimeoutException):
        raise NoAnswer("TIMEOUT") from None
    raise NoAnswer("UNREACHABLE" if isinstance(error, httpx2.ConnectError) else "BROKEN") from None


async def _drain(response: httpx2.Response) -> None:
    """Read a short body to its end, so that the connection stays open; close it otherwise."""
    size = 0
    with suppress(TimeoutError, httpx2.TransportError, OSError, NoAnswer):
        async with asyncio.timeout(_DRAIN_WITHIN):
            async for piece in response.aiter_raw():
                size += len(piece)
                if size > _DRAINED:
                    break
    with suppress(httpx2.TransportError, OSError):
        await response.aclose()


def _seconds(header: str | None) -> float | None:
    """The seconds in a Retry-After header (RFC 9110, section 10.2.3); null if it has a date or something else."""
    text = (header or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


@cache
def trust() -> ssl.SSLContext:
    """The trusted certificates: those of the system. Reading them is too slow for the event loop."""
    return httpx2.create_ssl_context()
