"""Reads of operations: what they answer, where they run, and for how long."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import structlog
from starlette.types import Receive

from normata.core.changes.revisions import current_revision
from normata.core.db.database import Database
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.http.content import Content
from normata.core.http.formats import FormatName
from normata.core.http.long_reads import LongReads
from normata.core.http.operation import ReadOperation
from normata.core.http.page_cache import Page, place_of
from normata.core.http.read_processes import NoProcess, ReadProcesses
from normata.core.http.request import Means, Request
from normata.core.schema.wire import encode
from normata.errors import Unavailable

_REMEMBERED = 600.0  # seconds for which a reading counts as slow; then it may have become short again
_MOST_REMEMBERED = 10_000


class ClientGone(Exception):
    """The client has closed the connection, and nobody waits for the answer."""


Part = tuple[ReadOperation, Request]
# What is made of the answers: an encoded page, a report in the requested format, or the answers in wire form, for the
# console.
Form = Literal["page", "content", "answers"]


@dataclass(frozen=True, slots=True)
class Reading:
    """Requests to operations that are read in one snapshot, within a tenant scope. All but ``answers`` are of one."""

    form: Form
    parts: Sequence[Part]
    scope: TenantScope

    @property
    def is_dear(self) -> bool:
        """Whether it is a long read."""
        return any(operation.is_dear(request.query) for operation, request in self.parts)

    async def run(self, database: Database) -> Any:
        """Read, and return what the form says. Raises what the operations declare, and Unavailable."""
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
        return Page(revision, Content(encode(answer)), place_of(answer, request.query))

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
    """A reading for another process, which has the same operations, and means of its own."""

    form: Form
    parts: list[tuple[str, Request, dict[str, Any], set[str]]]
    scope: TenantScope

    @classmethod
    def of(cls, reading: Reading) -> PackedReading:
        """The models of some queries are made by functions, so their values go alone."""
        parts = [
            (
                operation.operation_id,
                replace(request, query=None, means=Means()),
                dict(request.query),
                request.query.model_fields_set,
            )
            for operation, request in reading.parts
        ]
        return cls(reading.form, parts, reading.scope)

    def unpacked(self, operations: Mapping[str, ReadOperation], means: Means) -> Reading:
        """The reading, with the ``means`` of this process."""
        parts = []
        for operation_id, request, values, names in self.parts:
            operation = operations[operation_id]
            query = operation.query.model_construct(names, **values)
            parts.append((operation, replace(request, query=query, means=means)))
        return Reading(self.form, parts, self.scope)


class Reads:
    """Runs readings: long ones in their turn, and in processes of their own if there are ``processes``.

    A long reading that takes no longer than ``process_after`` seconds needs no process, however long it might become. A
    reading that takes longer than ``limit`` seconds is given up.
    """

    def __init__(
        self,
        database: Database,
        long_reads: LongReads,
        processes: ReadProcesses | None,
        limit: float,
        process_after: float,
    ) -> None:
        self._database = database
        self._long_reads = long_reads
        self._processes = processes
        self._limit = limit
        self._slow = _SlowReadings(process_after)

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
        if self._processes is not None and self._slow.has(reading):
            ((_, request), *_) = reading.parts
            try:
                return await self._processes.read(request.organization_id, PackedReading.of(reading))
            except NoProcess as error:
                # It is read here, as without processes: slower for others, but answered.
                structlog.get_logger("normata").error("read_process_missing", reason=str(error))
                self._processes = None
        with self._slow.measured(reading):
            return await reading.run(self._database)

    def _turn(self, reading: Reading) -> AbstractAsyncContextManager[None]:
        ((_, request), *_) = reading.parts
        return self._long_reads.turn(request.organization_id, request.caller.user_id)


class _SlowReadings:
    """Which readings of which organizations have lately taken longer than ``least`` seconds; all of them for 0."""

    def __init__(self, least: float) -> None:
        self._least = least
        self._clock = time.monotonic
        self._until: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def has(self, reading: Reading) -> bool:
        """Whether it has."""
        return not self._least or self._clock() < self._until.get(self._key(reading), 0)

    @contextmanager
    def measured(self, reading: Reading) -> Iterator[None]:
        """Measure the block, which runs a reading."""
        began = self._clock()
        try:
            yield
        finally:
            ended, key = self._clock(), self._key(reading)
            if ended - began > self._least:
                self._until[key] = ended + _REMEMBERED
                self._until.move_to_end(key)
                if len(self._until) > _MOST_REMEMBERED:
                    self._until.popitem(last=False)

    def _key(self, reading: Reading) -> tuple[str, ...]:
        ((_, request), *_) = reading.parts
        return request.organization_id, reading.form, *(operation.operation_id for operation, _ in reading.parts)


async def _while_connected(call: Coroutine[Any, Any, Any], receive: Receive) -> Any:
    """The result of ``call``, which is cancelled when the client has gone. Raises ClientGone."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    called, gone = tasks = asyncio.create_task(call), asyncio.create_task(disconnected())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not called.done():
            raise ClientGone
        return called.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if not gone.cancelled():
            gone.exception()  # or asyncio would log it
