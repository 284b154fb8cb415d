"""Closing connections that a statement may still hold.

A server notices that a client has gone only when it next writes or reads, and not while a commit waits for its
synchronous standby. So a connection that is just dropped can live on at the server for as long as that standby is
silent. asyncpg sends a request to cancel the statement, and `close` waits for it and for the server's answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import asyncpg

from normata.core.db.postgresql.errors import CONNECT_ERRORS


def _nothing() -> None:
    pass


class Closing:
    """Closes connections beside everything else, each within ``timeout`` seconds."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self, connection: asyncpg.Connection[Any], then: Callable[[], None] = _nothing) -> None:
        """Close a connection, and call ``then`` once the server has ended what it did for it, or the time is over."""
        task = asyncio.create_task(self._close(connection, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait for all that are being closed."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def _close(self, connection: asyncpg.Connection[Any], then: Callable[[], None]) -> None:
        try:
            with suppress(TimeoutError, *CONNECT_ERRORS):
                await connection.close(timeout=self._timeout)
        finally:
            connection.terminate()
            then()
