"""A scanner for tests: it speaks as clamd does, and finds a marker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from tests.files.listening import listening

MARKER = b"normata-test-malware-marker"
LIMIT = 3_000_000  # bytes of a file that it accepts


class Clamd:
    """What it has received of each file. It may be ``hanging``, break ``off``, or be ``busy``."""

    def __init__(self) -> None:
        self.state = "up"
        self.address = ""
        self.received: list[int] = []

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Scan a file."""
        try:
            assert await reader.readexactly(10) == b"zINSTREAM\0"
            writer.write(await self._scanned(reader) + b"\0")
            await writer.drain()
        except ConnectionError:
            pass  # the service has gone
        finally:
            writer.close()

    async def _scanned(self, reader: asyncio.StreamReader) -> bytes:
        content = bytearray()
        self.received.append(0)
        place = len(self.received) - 1
        while size := int.from_bytes(await reader.readexactly(4), "big"):
            content += await reader.readexactly(size)
            self.received[place] = len(content)
            if self.state == "off":
                raise ConnectionResetError
            if len(content) > LIMIT:
                return b"INSTREAM size limit exceeded. ERROR"
        if self.state == "hanging":
            await asyncio.Event().wait()
        if self.state == "busy":
            return b"COMMAND READ TIMED OUT"
        return b"stream: Normata.Test.Marker FOUND" if MARKER in content else b"stream: OK"


@contextmanager
def clamd(path: str | None = None) -> Iterator[Clamd]:
    """A scanner, at a free port or at the path of a socket."""
    scanner = Clamd()
    with listening(scanner.connect, path) as port:
        scanner.address = f"unix:{path}" if path is not None else f"tcp://127.0.0.1:{port}"
        yield scanner
