"""Processes in which long reads run, so that those do not hold Python's lock while others are answered.

Each runs one read at a time, and ends with its connection: when its reader has gone, when it takes too long, and once
it has been idle for a while, so that the memory of a large report comes back.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

from normata.core.db.batching import CROWDED
from normata.core.db.monitoring import WaitMonitor, measured_wait
from normata.core.http.failure import Failure
from normata.core.http.fair_queue import FairQueue, QueueFull
from normata.core.log import logger
from normata.errors import Unavailable

IDLE = 60.0  # seconds after which a process that has nothing to do ends
_RETRY = 10.0  # seconds until a process may be started again, after one could not be
_MOST_WAITING = 64  # of one organization
_NICE = 5  # the requests that a worker answers come first
_LENGTH = 8  # bytes of the length of a message

# Says that a writer may interrupt what follows.
Allow = Callable[[], Awaitable[None]]
Answer = Callable[[Any, Allow], Awaitable[Any]]


class NoProcess(Exception):
    """There is no process, and none can be started now; or a writer has interrupted it."""


class ReadProcesses:
    """Up to ``at_once`` processes, started when they are needed with ``fork``; none if that is null.

    Further reads wait up to ``timeout`` seconds; the organizations take turns. ``waits`` gets how long each waits.
    When no process can be started, this is logged once, and tried again after a while.
    """

    def __init__(
        self, fork: Callable[[], socket.socket] | None, at_once: int, *, timeout: float, waits: WaitMonitor
    ) -> None:
        self._fork = fork
        self._queue = FairQueue(at_once, waiting=_MOST_WAITING)
        self._timeout = timeout
        self._waits = waits
        self._clock = time.monotonic
        self._idle: list[_Process] = []
        self._interruptible: list[_Process] = []
        self._is_missing = False  # the last one could not be started
        self._retry_at = 0.0

    @property
    def may_read(self) -> bool:
        """Whether there is a process, or one may be started now."""
        return self._fork is not None and (bool(self._idle) or self._clock() >= self._retry_at)

    async def read(self, organization_id: str, question: object) -> Any:
        """The answer to a question, which another process finds. If this is cancelled, that process ends.

        Raises what finding the answer raises, Unavailable, and NoProcess.
        """
        async with AsyncExitStack() as stack:
            with measured_wait(self._waits):
                try:
                    async with asyncio.timeout(self._timeout):
                        await stack.enter_async_context(self._queue.turn(organization_id))
                except (QueueFull, TimeoutError):
                    raise Unavailable(CROWDED, "crowded") from None
            outcome = await self._outcome(question)
        if isinstance(outcome, Failure):
            raise outcome.error()
        return outcome

    async def _outcome(self, question: object) -> Any:
        """The outcome in an idle process, and if that has died meanwhile, or there is none, in a new one."""
        process = self._take()
        if process is not None:
            with suppress(_Died):
                return await self._ask(process, question)
        process = await self._started()
        try:
            return await self._ask(process, question)
        except _Died as error:
            raise Unavailable("the process of a long read has died", "lost") from error

    async def _started(self) -> _Process:
        """A new process. Raises NoProcess."""
        try:
            process = await _Process.start(self._fork)
        except NoProcess as error:
            self._retry_at = self._clock() + _RETRY
            if not self._is_missing:
                logger.error("read_process_missing", reason=str(error))
            self._is_missing = True
            raise
        self._is_missing = False
        return process

    async def _ask(self, process: _Process, question: object) -> Any:
        try:
            outcome = await process.ask(question, lambda: self._interruptible.append(process))
        except BaseException as error:
            process.close()
            if isinstance(error, _Died) and process.is_interrupted:
                raise NoProcess("a writer has interrupted it") from error
            raise
        finally:
            with suppress(ValueError):
                self._interruptible.remove(process)
        process.end_later(self._idle)
        return outcome

    def interrupt(self) -> bool:
        """End a process that has allowed it, so that it releases the lock of a database; whether there was one.

        Any thread may call it.
        """
        for process in list(self._interruptible):
            if not process.is_interrupted:
                process.interrupt()
                return True
        return False

    def close(self) -> None:
        """End all processes that have nothing to do."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> _Process | None:
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            process.close()
        return None


class _Died(Exception):
    """A process has ended without an answer."""


class _Process:
    """The connection to a process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: socket.socket) -> None:
        """``connection`` is a further file of the same connection, for other threads."""
        self._reader = reader
        self._writer = writer
        self._connection = connection
        self.is_interrupted = False
        self._end: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls, fork: Callable[[], socket.socket] | None) -> _Process:
        """Start one, and wait until it listens. Raises NoProcess."""
        if fork is None:
            raise NoProcess
        try:
            connection = fork()
        except OSError as error:
            raise NoProcess(str(error)) from error
        same = connection.dup()
        process = cls(*await asyncio.open_unix_connection(sock=connection), same)
        try:
            await _receive(process._reader)
        except BaseException as error:
            process.close()
            if isinstance(error, EOFError | ConnectionError):
                raise NoProcess("it could not be forked, or died when it began") from error
            raise
        return process

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked; it then does not end by itself."""
        if self._end is not None:
            self._end.cancel()
        return not self._reader.at_eof()

    async def ask(self, question: object, allowed: Callable[[], None]) -> Any:
        """The outcome of a question. ``allowed`` is called when a writer may interrupt it. Raises _Died."""
        try:
            await _send(self._writer, question)
            while (answer := await _receive(self._reader)) is None:
                allowed()
        except (EOFError, ConnectionError) as error:
            raise _Died from error
        else:
            return answer

    def end_later(self, idle: list[_Process]) -> None:
        """Wait among ``idle`` ones for further questions, and end if none comes."""

        def end() -> None:
            idle.remove(self)
            self.close()

        idle.append(self)
        self._end = asyncio.get_running_loop().call_later(IDLE, end)

    def interrupt(self) -> None:
        """Have it end; who waits for it learns that it has died."""
        self.is_interrupted = True
        with suppress(OSError):  # it has ended
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it, whatever it is doing."""
        if self._end is not None:
            self._end.cancel()
        self._connection.close()
        self._writer.close()


def answer_questions(connection: socket.socket, answer: Answer) -> None:
    """Answer the questions that come over a connection, one after the other, until it is closed.

    ``answer`` may say that a writer may interrupt it from then on. It returns anything but null.
    """
    os.nice(_NICE)
    asyncio.run(_answer_questions(connection, answer))


async def _answer_questions(connection: socket.socket, answer: Answer) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=connection)

    async def say() -> None:
        await _send(writer, None)

    await say()  # that it listens
    while True:
        try:
            question = await _receive(reader)
        except (EOFError, ConnectionError):
            return
        gone = asyncio.create_task(reader.read(1))  # nothing comes before the answer but the end
        outcome = asyncio.create_task(_outcome(answer, question, say))
        await asyncio.wait({gone, outcome}, return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            os._exit(0)  # nobody waits for the answer, and a statement may take long to be interrupted
        gone.cancel()
        await asyncio.wait({gone})
        await _send(writer, outcome.result())


async def _outcome(answer: Answer, question: Any, allow: Allow) -> Any:
    """What a question is answered with, which is never null."""
    try:
        return await answer(question, allow)
    except Exception as error:
        return Failure.of(error)


async def _send(writer: asyncio.StreamWriter, message: object) -> None:
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    writer.write(len(content).to_bytes(_LENGTH))
    writer.write(content)
    await writer.drain()


async def _receive(reader: asyncio.StreamReader) -> Any:
    """The next message. Raises EOFError."""
    length = int.from_bytes(await reader.readexactly(_LENGTH))
    return pickle.loads(await reader.readexactly(length))  # noqa: S301 - from a process of this program
