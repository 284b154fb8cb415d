"""Where the bytes of files are: a folder. Each file of each organization has a place of its own.

A place is named by the organization and the SHA-256 of the bytes, and ends with a trace of the file's id: no two files
share bytes, so that removing one can never take those of another, whatever happens at the same time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple
from uuid import uuid4

_ARRIVING = ".arriving"  # the folder of what is not complete yet
_PIECE = 2**18  # bytes that are read at a time


class Place(NamedTuple):
    """Where the bytes of a file are: the folder of its organization, and the name in that."""

    folder: str
    name: str


class Stored(NamedTuple):
    """Bytes in the store, with the time of their last change in seconds."""

    place: Place
    changed: float


def folder_of(organization_id: str) -> str:
    """The folder of an organization. Ids may be long, and have any characters."""
    return sha256(organization_id.encode()).hexdigest()[:32]


def place_of(organization_id: str, file_id: str, digest: str) -> Place:
    """The place of a file with this SHA-256."""
    return Place(folder_of(organization_id), f"{digest}-{sha256(file_id.encode()).hexdigest()[:16]}")


class Arrival:
    """A file that arrives: a temporary one, until it is kept."""

    def __init__(self, root: Path, path: Path, file: BinaryIO) -> None:
        self._root = root
        self._path = path
        self._file = file

    async def write(self, content: bytes) -> None:
        """Add bytes. Raises OSError if there is no room."""
        await asyncio.to_thread(self._file.write, content)

    async def keep(self, place: Place) -> None:
        """Give the file its place. Once this returns it is on disk, and stays whatever happens. Raises OSError."""
        await asyncio.to_thread(self._keep, place)

    def _keep(self, place: Place) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        folder = self._root / place.folder
        if not folder.is_dir():
            _make(folder)
        self._path.replace(folder / place.name)
        _sync(folder)


class FileStore:
    """A folder with the files. It is made when the first one comes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @asynccontextmanager
    async def arrival(self) -> AsyncIterator[Arrival]:
        """A file to write. It is gone afterwards, unless it was kept. Raises OSError."""
        path = self.root / _ARRIVING / str(uuid4())
        file = await asyncio.to_thread(_begin, path)
        try:
            yield Arrival(self.root, path, file)
        finally:
            await asyncio.to_thread(_end, path, file)

    async def pieces(self, place: Place, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes of a file from one to before another. Raises OSError, also if there are fewer."""
        file = await asyncio.to_thread((self.root / place.folder / place.name).open, "rb")
        try:
            file.seek(start)
            while start < end:
                piece = await asyncio.to_thread(file.read, min(_PIECE, end - start))
                if not piece:
                    raise OSError(f"the file {place.name} is shorter than it was")
                start += len(piece)
                yield piece
        finally:
            file.close()

    def open(self, place: Place) -> BufferedReader:
        """A file to read. Raises OSError."""
        return (self.root / place.folder / place.name).open("rb")

    def put(self, place: Place, source: BinaryIO) -> None:
        """Store a file with the bytes of another. Raises OSError."""
        path = self.root / _ARRIVING / str(uuid4())
        file = _begin(path)
        try:
            while piece := source.read(_PIECE):
                file.write(piece)
            Arrival(self.root, path, file)._keep(place)
        finally:
            _end(path, file)

    def has(self, place: Place) -> bool:
        """Whether there are bytes at a place."""
        return (self.root / place.folder / place.name).is_file()

    def remove(self, place: Place) -> None:
        """Remove a file, if it is there. Raises OSError."""
        path = self.root / place.folder / place.name
        if path.is_file():
            path.unlink()
            _sync(path.parent)

    def stored(self) -> Iterator[Stored]:
        """Every file. Raises OSError."""
        for folder in _folders(self.root):
            with os.scandir(folder) as found:
                for entry in found:
                    yield Stored(Place(folder.name, entry.name), entry.stat().st_mtime)

    def remove_unfinished(self, before: float) -> None:
        """Remove what has not been written to since a time, and was never complete: its process has ended."""
        with suppress(FileNotFoundError), os.scandir(self.root / _ARRIVING) as found:
            for entry in found:
                if entry.stat().st_mtime < before:
                    Path(entry.path).unlink(missing_ok=True)


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.name != _ARRIVING) if root.is_dir() else []


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sync(folder.parent)


def _begin(path: Path) -> BinaryIO:
    if not path.parent.is_dir():
        _make(path.parent)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _end(path: Path, file: BinaryIO) -> None:
    with suppress(OSError):  # what could not be written cannot be written here either
        file.close()
    path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
