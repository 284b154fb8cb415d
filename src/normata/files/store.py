"""Where the bytes of files are. Each file of each organization has a place of its own.

A place is named by the organization and the SHA-256 of the bytes, and ends with a trace of the file's id: no two files
share bytes, so that removing one can never take those of another, whatever happens at the same time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple

PIECE = 2**18  # bytes that are read at a time


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


class Arrival(ABC):
    """A file that arrives: a temporary one, until it is kept."""

    @abstractmethod
    async def write(self, content: bytes) -> None:
        """Add bytes. Raises OSError if the store cannot take them."""

    @abstractmethod
    async def keep(self, place: Place) -> None:
        """Give the file its place. Once this returns it is stored, and stays whatever happens. Raises OSError."""


class FileStore(ABC):
    """A store of files. It shows a file in its place only once that is complete.

    Everything that it cannot do raises OSError, within a bounded time.
    """

    address: str  # as messages name it

    @abstractmethod
    def arrival(self) -> AbstractAsyncContextManager[Arrival]:
        """A file to write. It is gone afterwards, unless it was kept."""

    @abstractmethod
    def pieces(self, place: Place, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes of a file from one to before another. Raises OSError if there are fewer, too."""

    @abstractmethod
    def open(self, place: Place) -> BufferedReader:
        """A file to read."""

    def path(self, place: Place) -> Path | None:
        """The path of a file, if it is one of this machine and is there."""
        del place
        return None

    @abstractmethod
    def put(self, place: Place, source: BinaryIO) -> None:
        """Store a file with the bytes of another."""

    @abstractmethod
    def has(self, place: Place) -> bool:
        """Whether there are bytes at a place."""

    @abstractmethod
    def remove(self, place: Place) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def stored(self) -> Iterator[Stored]:
        """Every file."""

    @abstractmethod
    def remove_unfinished(self, before: float) -> None:
        """Remove what has not been written to since a time, and was never complete: its process has ended."""
