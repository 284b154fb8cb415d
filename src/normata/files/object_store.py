"""Files in an object store that speaks S3's interface.

Credentials, region and endpoint are in the usual variables ``AWS_…``. None of them is ever part of a message.
"""

from __future__ import annotations

import io
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store
from typing_extensions import override

from normata.files.abandoned_uploads import abort_abandoned
from normata.files.store import Arrival, FileStore, Place, Stored

if TYPE_CHECKING:
    from obstore import AsyncWritableFile
    from typing_extensions import Buffer

_ARRIVING = ".arriving"  # what begins with this is not complete yet
_PART = 5 * 2**20  # bytes that are sent together: S3 has no smaller parts
_READ = 2 * 2**20  # bytes that are read together
_PAGE = 1_000  # names in one answer of the store


def endpoint() -> str:
    """The address of the object store; empty for that of AWS."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


class ObjectStore(FileStore):
    """A bucket, or the part of it whose names begin with a prefix. A request to it may take some seconds.

    A small file is written to its place at once. A larger one is sent in parts under another name, copied to its place
    by the store, and then removed from there, since its place is known only once all of it has arrived.
    """

    def __init__(self, bucket: str, prefix: str, timeout: float) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self.timeout = timeout
        self.address = f"s3://{bucket}/{prefix}".rstrip("/")

    @cached_property
    def store(self) -> S3Store:
        """The client. It is made when it is needed first, because its threads do not outlive a fork."""
        return S3Store(
            self.bucket,
            prefix=self.prefix or None,
            disable_bulk_delete=True,  # few stores but AWS's have it
            client_options={
                "timeout": timedelta(seconds=self.timeout),
                "connect_timeout": timedelta(seconds=self.timeout),
                "allow_http": endpoint().startswith("http://"),
            },
            # What has timed out is not attempted again, so that an answer comes in time.
            retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=self.timeout / 2)},
        )

    @override
    @asynccontextmanager
    async def arrival(self) -> AsyncIterator[Arrival]:
        arrival = _ObjectArrival(self.store)
        try:
            yield arrival
        finally:
            await arrival.end()

    @override
    async def pieces(self, place: Place, start: int, end: int) -> AsyncIterator[bytes]:
        while start < end:
            until = min(start + _READ, end)
            with _failing():
                piece = await obstore.get_range_async(self.store, _path(place), start=start, end=until)
            if len(piece) < until - start:
                raise OSError(f"the file {place.name} is shorter than it was")
            start = until
            yield piece.to_bytes()

    @override
    def open(self, place: Place) -> io.BufferedReader:
        with _failing():
            size = obstore.head(self.store, _path(place))["size"]
        return io.BufferedReader(_Reading(self.store, _path(place), size), _READ)

    @override
    def put(self, place: Place, source: BinaryIO) -> None:
        first = source.read(_PART)
        parts = chain([first], iter(partial(source.read, _PART), b""))
        with _failing():
            if len(first) < _PART:
                obstore.put(self.store, _path(place), first, use_multipart=False)
            else:
                obstore.put(self.store, _path(place), parts, chunk_size=_PART, max_concurrency=1)

    @override
    def has(self, place: Place) -> bool:
        try:
            with _failing():
                obstore.head(self.store, _path(place))
        except FileNotFoundError:
            return False
        return True

    @override
    def remove(self, place: Place) -> None:
        with _failing(), suppress(FileNotFoundError):
            obstore.delete(self.store, _path(place))

    @override
    def stored(self) -> Iterator[Stored]:
        for path, changed in self._all(None):
            folder, _, name = path.partition("/")
            if folder != _ARRIVING and name:
                yield Stored(Place(folder, name), changed)

    @override
    def remove_unfinished(self, before: float) -> None:
        for path, changed in self._all(_ARRIVING):
            if changed < before:
                with _failing(), suppress(FileNotFoundError):
                    obstore.delete(self.store, path)
        abort_abandoned(endpoint(), self.bucket, self.prefix, before, self.timeout)

    def _all(self, prefix: str | None) -> Iterator[tuple[str, float]]:
        with _failing():
            for page in obstore.list(self.store, prefix, chunk_size=_PAGE):
                for one in page:
                    yield one["path"], one["last_modified"].timestamp()


class _ObjectArrival(Arrival):
    """The first part is held until there is more: then it has to be sent before its place is known."""

    def __init__(self, store: S3Store) -> None:
        self._store = store
        self._path = f"{_ARRIVING}/{uuid4()}"
        self._held = bytearray()
        self._sent: AsyncWritableFile | None = None
        self._has_failed = False

    @override
    async def write(self, content: bytes) -> None:
        if self._sent is None:
            self._held += content
            if len(self._held) <= _PART:
                return
            self._sent = obstore.open_writer_async(self._store, self._path, buffer_size=_PART, max_concurrency=1)
            content, self._held = bytes(self._held), bytearray()
        with self._noting_failure():
            await self._sent.write(content)

    @override
    async def keep(self, place: Place) -> None:
        with self._noting_failure():
            if self._sent is None:
                await obstore.put_async(self._store, _path(place), bytes(self._held), use_multipart=False)
                return
            await self._sent.close()
            await obstore.copy_async(self._store, self._path, _path(place))

    async def end(self) -> None:
        """Remove what was sent. After a failure of the store a job does, or the answer would take even longer."""
        if self._sent is None or self._has_failed:
            return
        with suppress(OSError), _failing():
            if not await self._sent.closed():
                await self._sent.close()  # what was sent in parts can be removed only once it is one object
            await obstore.delete_async(self._store, self._path)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        self._has_failed = True
        with _failing():
            yield
        self._has_failed = False


class _Reading(io.RawIOBase):
    """A file that is read in pieces."""

    def __init__(self, store: S3Store, path: str, size: int) -> None:
        self._store = store
        self._path = path
        self._size = size
        self._at = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def readall(self) -> bytes:
        return b"".join(iter(partial(self.read, _READ), b""))  # the base class would ask for 8 KiB at a time

    @override
    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        end = min(self._at + len(view), self._size)
        if end == self._at:
            return 0
        with _failing():
            piece = obstore.get_range(self._store, self._path, start=self._at, end=end)
        view[: len(piece)] = piece.to_bytes()
        self._at += len(piece)
        return len(piece)


def _path(place: Place) -> str:
    return f"{place.folder}/{place.name}"


@contextmanager
def _failing() -> Iterator[None]:
    """Raise OSError where the store fails. Its reason has no answer of the server, which may name a key."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(2, _reason(error).partition(": Error")[0]) from error
    except BaseError as error:
        raise OSError(_reason(error)) from error


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0].partition("<")[0].rstrip(" :")
