"""Servers of tests, on a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

_LARGEST = 2**22  # bytes that are read at once

Connect = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def listening(connect: Connect, path: str | None = None) -> Iterator[int]:
    """Serve connections at the path of a socket, else at the port that this yields."""
    loop = asyncio.new_event_loop()

    async def listen() -> asyncio.Server:
        if path is not None:
            return await asyncio.start_unix_server(connect, path, limit=_LARGEST)
        return await asyncio.start_server(connect, "127.0.0.1", 0, limit=_LARGEST)

    async def end() -> None:
        server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    server = loop.run_until_complete(listen())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield 0 if path is not None else server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
