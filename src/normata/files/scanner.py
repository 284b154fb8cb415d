"""Asks clamd whether there is malware in a file, while the file arrives (``INSTREAM``, see clamd(8))."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from urllib.parse import urlsplit

from normata.core.log import logger
from normata.errors import MalwareFound, Unavailable

_FOUND = " FOUND"
_GOOD = "stream: OK"
_WORD = 0.5  # seconds for a scanner that has broken off to say why

_BROKE_OFF = "the scanner broke off, perhaps because the file is larger than its StreamMaxLength"

_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Scanner:
    """A scanner at an address; without one, nothing is scanned. ``timeout`` is in seconds, for each step."""

    def __init__(self, address: str, timeout: float) -> None:
        self._address = address
        self._timeout = timeout

    @asynccontextmanager
    async def scan(self) -> AsyncIterator[Scan]:
        """The scan of a file. Raises Unavailable if the scanner does not answer."""
        if not self._address:
            yield Scan(None, self._timeout)
            return
        with _answering():
            async with asyncio.timeout(self._timeout):
                connection = await self._connect()
        _, writer = connection
        try:
            writer.write(b"zINSTREAM\0")
            yield Scan(connection, self._timeout)
        finally:
            writer.transport.abort()

    def scan_now(self, parts: Iterable[bytes]) -> None:
        """Scan a file, in a process without an event loop. Raises MalwareFound and Unavailable."""

        async def work() -> None:
            async with self.scan() as scan:
                for part in parts:
                    await scan.write(part)
                await scan.finish()

        asyncio.run(work())

    async def _connect(self) -> _Connection:
        parts = urlsplit(self._address)
        if parts.scheme == "unix":
            return await asyncio.open_unix_connection(parts.path)
        return await asyncio.open_connection(parts.hostname, parts.port)


class Scan:
    """The scan of a file whose parts are written one after the other. Without a connection it finds nothing."""

    def __init__(self, connection: _Connection | None, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout

    async def write(self, content: bytes) -> None:
        """Send a part, which is not empty. Raises Unavailable."""
        if self._connection is not None:
            with _answering():
                await self._send(self._connection, len(content).to_bytes(4, "big") + content)

    async def finish(self) -> None:
        """Wait for what it finds in all parts together. Raises MalwareFound and Unavailable."""
        if self._connection is None:
            return
        with _answering():
            await self._send(self._connection, bytes(4))
            async with asyncio.timeout(self._timeout):
                answer = await _answer(self._connection)
            if answer != _GOOD and not answer.endswith(_FOUND):
                raise OSError(f"the scanner answered {answer!r}")
        if answer != _GOOD:
            raise MalwareFound(answer.removeprefix("stream: ").removesuffix(_FOUND))

    async def _send(self, connection: _Connection, content: bytes) -> None:
        _, writer = connection
        try:
            writer.write(content)
            async with asyncio.timeout(self._timeout):
                await writer.drain()
        except ConnectionError as error:
            answer = ""
            with suppress(OSError):  # it may have said why, such as that a file is too large for it
                async with asyncio.timeout(_WORD):
                    answer = await _answer(connection)
            reason = f"the scanner answered {answer!r} too early" if answer else _BROKE_OFF
            raise OSError(reason) from error


async def _answer(connection: _Connection) -> str:
    reader, _ = connection
    try:
        answer = await reader.readuntil(b"\0")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise OSError(_BROKE_OFF) from error
    return answer[:-1].decode("utf-8", "replace").strip()


@contextmanager
def _answering() -> Iterator[None]:
    """Raise Unavailable where the scanner fails, and log why."""
    try:
        yield
    except OSError as error:
        reason = "the scanner did not answer in time" if isinstance(error, TimeoutError) else str(error)
        logger.error("scanner_failed", reason=reason)
        raise Unavailable("The file cannot be checked for malware right now.", "scanner") from error
