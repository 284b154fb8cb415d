"""Where lines of the log are written."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import BinaryIO


class Lines:
    """Writes lines, which are bytes or text; the names of its methods are those that structlog calls.

    On an event loop, what is only information is written at the end of the turn, together. Each write gives Python's
    lock away, and it takes a while to get it back. A warning or an error is written at once, after what came before.
    A process that is killed loses the lines of one turn, which are of some milliseconds.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._gathered: list[bytes] = []
        self._lock = threading.Lock()

    def info(self, line: bytes | str) -> None:
        """Write a line by the end of this turn of the event loop. Where none runs, write it now, as :meth:`error`."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.error(line)
            return
        with self._lock:
            if not self._gathered:
                loop.call_soon(self._write_unless_broken)
            self._gathered.append(_bytes(line))

    def error(self, line: bytes | str) -> None:
        """Write a line now. Raises OSError and ValueError if the log cannot be written."""
        with self._lock:
            self._gathered.append(_bytes(line))
        self._write()

    debug = msg = info
    warn = warning = critical = exception = fatal = error

    def _write_unless_broken(self) -> None:
        with suppress(OSError, ValueError):  # a log that cannot be written must not prevent answers
            self._write()

    def _write(self) -> None:
        with self._lock:
            gathered, self._gathered = self._gathered, []
            if gathered:
                self._stream.write(b"\n".join([*gathered, b""]))
                self._stream.flush()


def _bytes(line: bytes | str) -> bytes:
    return line if isinstance(line, bytes) else line.encode()
