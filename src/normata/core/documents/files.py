"""Input files, opened so that reading them always ends. Bundles and catalogs both come this way."""

from __future__ import annotations

import os
import stat
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MAX_FROM_A_PIPE = 2**30  # bytes
_PIECE = 2**20


class Unreadable(Exception):
    """A file cannot be read. The message is the reason."""


def open_input(path: Path) -> BinaryIO:
    """Open a regular file or a pipe. Raises Unreadable, also later, if a pipe has too much content.

    A device such as ``/dev/zero`` never ends, and opening one may even have effects. The only exception is the
    terminal, where the user ends the input.
    """
    try:
        found = path.stat()
        if not _ends(found):
            raise Unreadable("is neither a regular file nor a pipe")
        file = path.open("rb", buffering=0)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a path with a null character
        raise Unreadable(f"cannot be read: {error}") from error
    return BufferedReader(file if stat.S_ISREG(found.st_mode) else _Pipe(file))


def read_input(path: Path, most: int) -> str:
    """The text of a whole file of at most ``most`` bytes. Raises Unreadable."""
    return as_text(read_bytes(path, most))


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a whole file of at most ``most`` bytes. Raises Unreadable."""
    content = bytearray()
    try:
        with open_input(path) as file:
            while piece := file.read(_PIECE):  # reading all at once would allocate the memory first
                content += piece
                if len(content) > most:
                    raise Unreadable(f"is larger than {most:,} bytes")
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from error
    return bytes(content)


def as_text(content: bytes) -> str:
    """Content as UTF-8 text, with or without a byte-order mark. Raises Unreadable."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8 text: {error}") from error


def _ends(found: os.stat_result) -> bool:
    kind = found.st_mode
    if stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISDIR(kind):  # opening a folder gives the best error message
        return True
    return os.isatty(0) and found.st_rdev == os.fstat(0).st_rdev


class _Pipe(RawIOBase):
    """A pipe with a limited number of bytes, because its writer may never stop."""

    def __init__(self, pipe: RawIOBase) -> None:
        self._pipe = pipe
        self._left = _MAX_FROM_A_PIPE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        size = self._pipe.readinto(buffer)
        self._left -= size or 0
        if self._left < 0:
            raise Unreadable(f"is a pipe that holds more than {_MAX_FROM_A_PIPE:,} bytes: put them into a file")
        return size

    def close(self) -> None:
        self._pipe.close()
        super().close()
