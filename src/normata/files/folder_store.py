"""Files in a folder of this machine, or of a file system that several machines share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from typing_extensions import override

from normata.files.store import PIECE, Arrival, FileStore, Place, Stored

_ARRIVING = ".arriving"  # the folder of what is not complete yet


class _FolderArrival(Arrival):
    def __init__(self, root: Path, path: Path, file: BinaryIO) -> None:
        self._root = root
        self._path = path
        self._file = file

    @override
    async def write(self, content: bytes) -> None:
        await asyncio.to_thread(self._file.write, content)

    @override
    async def keep(self, place: Place) -> None:
        await asyncio.to_thread(self.keep_now, place)

    def keep_now(self, place: Place) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        folder = self._root / place.folder
        if not folder.is_dir():
            _make(folder)
        self._path.replace(folder / place.name)
        _sync(folder)


class FolderStore(FileStore):
    """A folder with the files. It is made when the first one comes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.address = str(root)

    @override
    @asynccontextmanager
    async def arrival(self) -> AsyncIterator[Arrival]:
        path = self.root / _ARRIVING / str(uuid4())
        file = await asyncio.to_thread(_begin, path)
        try:
            yield _FolderArrival(self.root, path, file)
        finally:
            await asyncio.to_thread(_end, path, file)

    @override
    async def pieces(self, place: Place, start: int, end: int) -> AsyncIterator[bytes]:
        file = await asyncio.to_thread((self.root / place.folder / place.name).open, "rb")
        try:
            file.seek(start)
            while start < end:
                piece = await asyncio.to_thread(file.read, min(PIECE, end - start))
                if not piece:
                    raise OSError(f"the file {place.name} is shorter than it was")
                start += len(piece)
                yield piece
        finally:
            file.close()

    @override
    def open(self, place: Place) -> BufferedReader:
        return (self.root / place.folder / place.name).open("rb")

    @override
    def path(self, place: Place) -> Path | None:
        path = self.root.absolute() / place.folder / place.name
        return path if path.is_file() else None

    @override
    def put(self, place: Place, source: BinaryIO) -> None:
        path = self.root / _ARRIVING / str(uuid4())
        file = _begin(path)
        try:
            while piece := source.read(PIECE):
                file.write(piece)
            _FolderArrival(self.root, path, file).keep_now(place)
        finally:
            _end(path, file)

    @override
    def has(self, place: Place) -> bool:
        return (self.root / place.folder / place.name).is_file()

    @override
    def remove(self, place: Place) -> None:
        path = self.root / place.folder / place.name
        if path.is_file():
            path.unlink()
            _sync(path.parent)

    @override
    def stored(self) -> Iterator[Stored]:
        for folder in _folders(self.root):
            with os.scandir(folder) as found:
                for entry in found:
                    yield Stored(Place(folder.name, entry.name), entry.stat().st_mtime)

    @override
    def remove_unfinished(self, before: float) -> None:
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
