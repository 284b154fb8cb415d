"""The connections of one process to PostgreSQL: a bounded pool of SQLAlchemy's, leased as asyncpg's own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import asyncpg
from sqlalchemy import event, exc
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from normata.core.db.monitoring import Monitor, measured_wait
from normata.core.db.postgresql.heartbeat import Heartbeat, Server
from normata.core.db.postgresql.server_status import BackgroundClosing, Hosts, open_to_primary
from normata.errors import Unavailable
from normata.settings import Settings

# Stale connections that a transaction or lookup may get before a good one: one from before a restart, and one to a
# primary that was just replaced.
STALE_AT_MOST = 2

_COMMAND_PATIENCE = 1.0  # seconds

# SQLAlchemy would print a traceback if a connection is lost, or the process interrupted, while it is being closed. The
# connection is gone either way, and the caller reports what that means.
logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())


class Lease:
    """A connection that is in use."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self.connection = connection
        self.is_abandoned = False

    def abandon(self) -> None:
        """Do not reuse the connection, because something may still be in progress on it."""
        self.is_abandoned = True


class Pool:
    """Opens connections to the primary, keeps them open, and renews those that may be lost.

    If a server vanishes, all connections stay open, and each would make a request wait for its time-out. So after one
    was found to be lost, every earlier connection is renewed before it is used. Once another server is the primary,
    connections to the previous one are neither used nor counted. The service has a heartbeat that finds the primary. A
    command asks the hosts once for each connection.
    """

    def __init__(self, settings: Settings, *, serving: bool, monitor: Monitor) -> None:
        self._hosts = Hosts(settings, serving=serving)
        self._timeout = settings.database_timeout
        # A command ends soon, and its connections with it. Whoever interrupts it should not have to wait.
        self._closing = BackgroundClosing(self._timeout if serving else min(_COMMAND_PATIENCE, self._timeout))
        self._open: set[asyncpg.Connection[Any]] = set()
        self._opening: set[asyncio.Task[asyncpg.Connection[Any]]] = set()
        self._server: Server | None = None
        self.heartbeat = Heartbeat(self._hosts, self._adopt, self._renew) if serving else None
        self._doubted = 0.0
        self._limit = settings.database_pool_size
        self._monitor = monitor
        self._waits = monitor.waits("connection")
        self.engine: AsyncEngine = create_async_engine(
            "postgresql+asyncpg://",
            connect_args={
                "async_creator_fn": self.connect,
                "prepared_statement_cache_size": settings.database_statement_cache,
                # Behind a pooler the next transaction may use another session. Unnamed statements leave nothing in it.
                **({} if settings.database_statement_cache else {"prepared_statement_name_func": str}),
            },
            pool_size=settings.database_pool_size,
            max_overflow=0,
            pool_timeout=self._timeout,
            hide_parameters=True,  # values of users must not get into logs
        )
        event.listen(self.engine.sync_engine, "connect", _note_when)
        event.listen(self.engine.sync_engine, "checkout", self._refuse_doubtful)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Lease]:
        """A connection for a block, which must leave it outside of any transaction, or abandon it."""
        pool = self.engine.sync_engine.pool
        with measured_wait(self._waits):
            leased = await self.engine.raw_connection()
        connection: Any = leased.driver_connection
        lease = Lease(connection)
        try:
            self._report_connections()
            yield lease
        finally:
            if pool is not self.engine.sync_engine.pool:
                connection.terminate()  # it leads to the previous server
            if lease.is_abandoned and not connection.is_closed():
                # It counts as in use until the server has stopped working for it.
                self._closing.close(connection, partial(self._give_back, leased))
            else:
                self._give_back(leased)

    async def connect(self, **_kwargs: Any) -> asyncpg.Connection[Any]:
        """A new connection to the primary; it is not the pool's. Raises Unavailable and BadDatabaseUrl."""
        if self.heartbeat is None:
            return await open_to_primary(self._hosts)
        while True:
            server = await self.heartbeat.confirmed()
            try:
                connection = await self._open_to(server)
            except Unavailable:
                self.heartbeat.wake()
                raise
            if connection is not None:
                return connection

    def doubt(self) -> None:
        """Renew every earlier connection before it is used again, and confirm the primary."""
        self._renew()
        if self.heartbeat is not None:
            self.heartbeat.wake()

    def is_doubtful(self, made: float) -> bool:
        """Whether a connection opened at this time may be lost."""
        return made < self._doubted

    async def close(self) -> None:
        """Close all connections."""
        if self.heartbeat is not None:
            await self.heartbeat.close()
        await self._closing.finish()
        with suppress(TimeoutError):  # the server may not answer; then it is not notified
            async with asyncio.timeout(self._timeout):
                await self.engine.dispose()

    async def _open_to(self, server: Server) -> asyncpg.Connection[Any] | None:
        """A new connection to a server; null if another one becomes the primary meanwhile."""
        opening = asyncio.create_task(self._hosts.open(server.address, within=self._timeout))
        self._opening.add(opening)
        try:
            await asyncio.wait([opening])
        except BaseException:
            opening.cancel()
            opening.add_done_callback(_terminate)
            raise
        finally:
            self._opening.discard(opening)
        if opening.cancelled():
            return None
        connection = opening.result()
        if server is not self._server:
            connection.terminate()
            return None
        self._open.add(connection)
        connection.add_termination_listener(self._open.discard)
        return connection

    def _renew(self) -> None:
        self._doubted = time.monotonic()

    def _adopt(self, server: Server) -> None:
        """Use only connections to a new primary. Work on others fails immediately, as if they were lost."""
        is_first, self._server = self._server is None, server
        if is_first:
            return
        self._renew()
        for opening in self._opening:
            opening.cancel()
        for connection in tuple(self._open):
            connection.terminate()
        self.engine.sync_engine.dispose(close=False)  # a new pool, so that the old connections do not count

    def _give_back(self, leased: PoolProxiedConnection) -> None:
        connection: Any = leased.driver_connection
        if connection is None or connection.is_closed():
            leased.invalidate()
        leased.close()
        self._report_connections()

    def _report_connections(self) -> None:
        pool: Any = self.engine.sync_engine.pool  # a queue, which can count
        self._monitor.connections(used=pool.checkedout(), idle=pool.checkedin(), limit=self._limit)

    def _refuse_doubtful(self, connection: Any, entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
        if self.is_doubtful(entry.info["made"]):
            connection.driver_connection.terminate()
            raise exc.DisconnectionError


def _terminate(opening: asyncio.Task[asyncpg.Connection[Any]]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().terminate()


def _note_when(_connection: Any, entry: ConnectionPoolEntry) -> None:
    entry.info["made"] = time.monotonic()
