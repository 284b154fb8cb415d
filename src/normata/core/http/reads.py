"""Reads of operations: what they answer, where they run, and for how long."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from io import SEEK_END
from pathlib import Path
from typing import Any, Literal, NamedTuple

from starlette.types import Receive

from normata.core.changes.revisions import current_revision
from normata.core.db.database import Database
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.http.content import Content
from normata.core.http.formats import FormatName
from normata.core.http.long_reads import LongReads
from normata.core.http.operation import ListOperation, Operation, ReadOperation
from normata.core.http.page_cache import Page, place_of
from normata.core.http.read_processes import NoProcess, ReadProcesses
from normata.core.http.request import Means, PackedRequest, Request
from normata.core.schema.wire import encode
from normata.errors import Unavailable

_REMEMBERED = 600.0  # seconds for which a reading counts as long after it was
_MOST_REMEMBERED = 10_000


class ClientGone(Exception):
    """The client has closed the connection, and nobody waits for the answer."""


Part = tuple[ReadOperation, Request]
# What is made of the answers: an encoded page, a report in the requested format, a file with all rows of a list, or the
# answers in wire form, for the console.
Form = Literal["page", "content", "file", "answers"]


class WrittenFile(NamedTuple):
    """A file that was written: its name for people, the number of its bytes, and their SHA-256 in hexadecimal."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Reading:
    """Requests to operations that are read in one snapshot, within a tenant scope. All but ``answers`` are of one.

    A ``file`` is written ``into`` the file with this path.
    """

    form: Form
    parts: Sequence[Part]
    scope: TenantScope
    into: str = ""

    @property
    def is_dear(self) -> bool:
        """Whether it is a long read."""
        return self.form == "file" or any(operation.is_dear(request.query) for operation, request in self.parts)

    @property
    def is_report(self) -> bool:
        """Whether it is more than a page."""
        return self.form == "file" or any(operation.is_long for operation, _ in self.parts)

    async def run(self, database: Database) -> Any:
        """Read, and return what the form says. Raises what the operations declare, and Unavailable."""
        if self.form == "file":
            return await database.read(self._write, self.scope, is_long=True)
        read = await database.read(self._read, self.scope, is_long=self.is_dear)
        if any(operation.formats is not None for operation, _ in self.parts):
            return await asyncio.to_thread(self._presented, read)  # which may take as long as reading
        return read

    def _read(self, transaction: Transaction) -> Any:
        if self.form != "page":
            return [operation.answer_to(transaction, request) for operation, request in self.parts]
        ((operation, request),) = self.parts
        # From the same snapshot as the page, so that a page is never cached for another revision.
        cached = operation.cached
        revision = current_revision(transaction, request.organization_id, cached) if cached else ""
        answer = operation.answer_to(transaction, request)
        return Page(revision, Content(encode(answer), vary=operation.vary), place_of(answer, request.query))

    def _write(self, transaction: Transaction) -> WrittenFile:
        ((operation, request),) = self.parts
        assert isinstance(operation, ListOperation)  # noqa: S101 - narrows the type
        assert operation.files is not None  # noqa: S101 - as above
        name: FormatName = request.format  # type: ignore[assignment] # as the endpoint has chosen it
        with Path(self.into).open("w+b") as file:
            title = operation.files.write(transaction, request, name, file)
            file.flush()
            size = file.seek(0, SEEK_END)
            file.seek(0)
            return WrittenFile(f"{title}.{name}", size, file_digest(file, "sha256").hexdigest())

    def _presented(self, read: list[Any]) -> Any:
        """Reports in the requested format, or in wire form."""
        if self.form == "content":
            ((operation, request),) = self.parts
            assert operation.formats is not None  # noqa: S101 - narrows the type
            name: FormatName = request.format  # type: ignore[assignment] # empty for other operations
            return operation.formats.content(read[0], name)
        return [
            one if operation.formats is None else operation.formats.present(one)
            for one, (operation, _) in zip(read, self.parts, strict=True)
        ]


class PackedReading(NamedTuple):
    """A reading for another process, which has the same operations."""

    form: Form
    parts: list[tuple[str, PackedRequest]]
    scope: TenantScope
    into: str

    @classmethod
    def of(cls, reading: Reading) -> PackedReading:
        """Pack a reading."""
        parts = [(operation.operation_id, PackedRequest.of(request)) for operation, request in reading.parts]
        return cls(reading.form, parts, reading.scope, reading.into)

    def unpacked(self, operations: Mapping[str, Operation], means: Means) -> Reading:
        """The reading, with the ``means`` of this process."""
        parts = []
        for operation_id, packed in self.parts:
            operation = operations[operation_id]
            assert isinstance(operation, ReadOperation)  # noqa: S101 - narrows the type
            parts.append((operation, packed.unpacked(operation.query, means)))
        return Reading(self.form, parts, self.scope, self.into)


class Answered(NamedTuple):
    """What a reading answers, and how long it took to find that."""

    answer: Any
    seconds: float

    @classmethod
    async def by(cls, reading: Reading, database: Database) -> Answered:
        """Run the reading. Raises what :meth:`Reading.run` raises."""
        began = time.monotonic()
        answer = await reading.run(database)
        return cls(answer, time.monotonic() - began)


class Reads:
    """Runs readings: long ones in their turn, and in ``processes`` of their own, if there are any.

    A long reading that takes no longer than ``process_after`` seconds needs no process, however long it might become.
    A report is first run in one, to find out. A reading that takes longer than ``limit`` seconds is given up.
    """

    def __init__(
        self,
        database: Database,
        long_reads: LongReads,
        processes: ReadProcesses,
        limit: float,
        process_after: float,
    ) -> None:
        self._database = database
        self._long_reads = long_reads
        self._processes = processes
        self._limit = limit
        self._short = _ShortReadings(process_after)

    async def run(self, reading: Reading, receive: Receive | None = None) -> Any:
        """What a reading answers. Raises TooManyRequests, and what :meth:`Reading.run` raises.

        A long one ends when its client has gone, with ClientGone: ``receive`` is that of a request without a body, or
        null.
        """
        if not reading.is_dear:
            return await self._within_limit(reading.run(self._database))
        call = self._run_in_turn(reading)
        return await (call if receive is None else _while_connected(call, receive))

    async def _run_in_turn(self, reading: Reading) -> Any:
        async with self._turn(reading):
            return await self._within_limit(self._run_long(reading))

    async def _within_limit(self, call: Coroutine[Any, Any, Any]) -> Any:
        try:
            async with asyncio.timeout(self._limit) as deadline:
                return await call
        except TimeoutError:
            if not deadline.expired():
                raise
            raise Unavailable(f"a read has taken longer than {self._limit:g} s", "slow") from None

    async def _run_long(self, reading: Reading) -> Any:
        answered = None
        if self._processes.may_read and not self._short.has(reading):
            with suppress(NoProcess):  # it is read here then: slower for others, but answered
                answered = await self._processes.read(_organization_of(reading), PackedReading.of(reading))
        if answered is None:
            answered = await Answered.by(reading, self._database)
        self._short.note(reading, answered.seconds)
        return answered.answer

    def _turn(self, reading: Reading) -> AbstractAsyncContextManager[None]:
        ((_, request), *_) = reading.parts
        return self._long_reads.turn(_organization_of(reading), request.caller.user_id)


class _ShortReadings:
    """Which readings of which organizations take up to ``most`` seconds; none of them for 0.

    Reports that were never run may be large: in a worker, the memory that they take would stay. A page is small,
    however long it was searched for. A reading that was long counts as long until it is short after ten minutes without
    a long one, since some searches are short and others are not.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self._clock = time.monotonic
        self._last_long: OrderedDict[tuple[str, ...], float | None] = OrderedDict()  # null: it is short

    def has(self, reading: Reading) -> bool:
        """Whether it does."""
        unknown = 0.0 if reading.is_report else None
        return self._most > 0 and self._last_long.get(self._key(reading), unknown) is None

    def note(self, reading: Reading, seconds: float) -> None:
        """Remember how long a reading has taken."""
        key, moment = self._key(reading), self._clock()
        if seconds > self._most:
            self._last_long[key] = moment
        else:
            last_long = self._last_long.setdefault(key, None)
            if last_long is not None and moment >= last_long + _REMEMBERED:
                self._last_long[key] = None
        self._last_long.move_to_end(key)
        if len(self._last_long) > _MOST_REMEMBERED:
            self._last_long.popitem(last=False)

    def _key(self, reading: Reading) -> tuple[str, ...]:
        return _organization_of(reading), reading.form, *(operation.operation_id for operation, _ in reading.parts)


def _organization_of(reading: Reading) -> str:
    ((_, request), *_) = reading.parts
    return request.organization_id


async def _while_connected(call: Coroutine[Any, Any, Any], receive: Receive) -> Any:
    """The result of ``call``, which is cancelled when the client has gone. Raises ClientGone."""
    called = asyncio.create_task(call)
    async with until_gone(receive) as gone:
        try:
            await asyncio.wait((called, gone), return_when=asyncio.FIRST_COMPLETED)
            if not called.done():
                raise ClientGone
            return called.result()
        finally:
            called.cancel()
            await asyncio.wait((called,))


@asynccontextmanager
async def until_gone(receive: Receive) -> AsyncIterator[asyncio.Task[None]]:
    """A task that is done once the client has closed the connection, and that ends with the block."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.create_task(disconnected())
    try:
        yield gone
    finally:
        gone.cancel()
        await asyncio.wait((gone,))
        if not gone.cancelled():
            gone.exception()  # or asyncio would log it
