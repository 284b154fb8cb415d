"""The attacks: each is a loop with a time limit. They run in their own process, from an address of their own."""

import asyncio
import os
import random
import resource
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple

from benchmarks.speed.data import ORGANIZATION
from normata.identity.tokens.tokens import generate

ADDRESS = "127.0.0.2"
IDLE = 1_024  # connections that send nothing

_PATIENCE = 30.0  # seconds to wait for an answer; the service's own timeouts are shorter
_RESTORE = "/integration-checks/nothing/restore/"
_FILES = IDLE + 1_024

# An HTTP/2 connection (RFC 9113) with a header block that adds one header to the table and refers to it 48,000 times
# (RFC 7541): 48 kB that expand to 5 MB, and much more work if repeated headers are joined one by one.
_FRAME = 16_000
_FIRST = bytes.fromhex("828684410161") + b"\x40\x01x\x64" + b"a" * 100
_SETTINGS = bytes.fromhex("000000040000000000")


def _frame(kind: int, flags: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + (1).to_bytes(4) + payload


_HEADERS = _frame(1, 1, _FIRST)  # the block continues
_CONTINUATIONS = [_frame(9, 4 if last else 0, b"\xbe" * _FRAME) for last in (False, False, True)]
_HTTP2 = b"".join((b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", _SETTINGS, _HEADERS, *_CONTINUATIONS))


class _Target(NamedTuple):
    """The service to attack, the end time, and a valid token. Outcomes are counted by attack."""

    port: int
    until: float
    token: str
    outcomes: Counter[tuple[str, str]]


def run(port: int, seconds: float, token: str, results: Connection) -> None:
    """Attack for some seconds, then send the numbers of outcomes of each attack."""
    os.nice(10)  # real attackers would not share processors with the service
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (hard if hard < _FILES and hard != resource.RLIM_INFINITY else _FILES, hard)
    )
    target = _Target(port, time.monotonic() + seconds, token, Counter())
    asyncio.run(_all(target))
    results.send(dict(target.outcomes))


async def _all(target: _Target) -> None:
    loops = [
        _again(target, "HTTP/2 header block", lambda: _HTTP2, at_once=4, pause=0.2),
        _again(target, "idle connections", lambda: b"", at_once=IDLE, pause=0.0),
        _again(target, "stalled head", lambda: b"GET /controls/ HTTP/1.1\r\nHost: a\r\nX-", at_once=50, pause=0.0),
        _again(target, "stalled body", lambda: _post(target, "Content-Length: 500", b"{"), at_once=50, pause=0.0),
        _again(target, "380 kB Accept-Encoding", _large_header, at_once=4, pause=0.1),
        _again(target, "long Accept-Encoding", lambda: _long_header(target), at_once=4, pause=0.02),
        _again(target, "bad chunk", lambda: _post(target, _CHUNKED, b"zz\r\n{}\r\n"), at_once=4, pause=0.02),
        _again(target, "no Host", lambda: b"GET /controls/ HTTP/1.1\r\n\r\n", at_once=4, pause=0.02),
        _again(
            target, "two Hosts", lambda: b"GET /controls/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", at_once=4, pause=0.02
        ),
        _again(target, "bad tokens", _bad_token, at_once=100, pause=0.0),
        *(_hang_ups(target) for _ in range(4)),
    ]
    await asyncio.gather(*loops)


_CHUNKED = "Transfer-Encoding: chunked"


def _post(target: _Target, header: str, body: bytes) -> bytes:
    head = f"POST {_RESTORE} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {target.token}\r\n{header}\r\n"
    return head.encode() + b"Content-Type: application/json\r\n\r\n" + body


def _large_header() -> bytes:
    return (
        b"GET /controls/ HTTP/1.1\r\nHost: a\r\nAccept-Encoding: "
        + random.randbytes(190_000).hex().encode()
        + b"\r\n\r\n"
    )


def _long_header(target: _Target) -> bytes:
    """A header of the maximum length, different each time."""
    head = f"GET /controls/?organizationId={ORGANIZATION}&limit=5 HTTP/1.1\r\nHost: a\r\n"
    accepted = f"Accept-Encoding: gzip, {random.randbytes(6_000).hex()}\r\n"
    return f"{head}{accepted}Authorization: Bearer {target.token}\r\n\r\n".encode()


def _bad_token() -> bytes:
    """A well-formed token, so that the service must query the database."""
    return f"GET /controls/ HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {generate()}\r\n\r\n".encode()


async def _again(target: _Target, name: str, request: Callable[[], bytes], *, at_once: int, pause: float) -> None:
    """Send requests repeatedly, each on a new connection, ``at_once`` at the same time, and count the outcomes."""

    async def one_after_the_other() -> None:
        await asyncio.sleep(random.random())
        while time.monotonic() < target.until:
            target.outcomes[name, await _outcome(target, _send_and_read(target, request()))] += 1
            await asyncio.sleep(pause)

    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))


async def _hang_ups(target: _Target) -> None:
    """Close connections in the middle of a body, repeatedly."""
    while time.monotonic() < target.until:
        target.outcomes["hang-up", await _outcome(target, _hang_up(target))] += 1
        await asyncio.sleep(0.02)


async def _outcome(target: _Target, attack: Awaitable[str]) -> str:
    try:
        async with asyncio.timeout(min(_PATIENCE, max(0.0, target.until - time.monotonic()) + 0.1)):
            return await attack
    except TimeoutError:
        return "ended by the clock" if time.monotonic() >= target.until else "left waiting"
    except OSError as error:
        return type(error).__name__


async def _send_and_read(target: _Target, request: bytes) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(ADDRESS, 0))
    try:
        with suppress(ConnectionError):  # the service may refuse before receiving all of it
            writer.write(request)
            await writer.drain()
        answer = await reader.read(4_096)
        return answer[9:12].decode() if answer.startswith(b"HTTP/1.1 ") else "closed" if not answer else "no HTTP/1.1"
    finally:
        writer.transport.abort()


async def _hang_up(target: _Target) -> str:
    _, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(ADDRESS, 0))
    try:
        writer.write(_post(target, "Content-Length: 500", b'{"organizationId": "'))
        await writer.drain()
        await asyncio.sleep(0.01)
    finally:
        writer.transport.abort()
    return "done"
