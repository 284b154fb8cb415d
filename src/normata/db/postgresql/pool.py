"""The connections of one process to PostgreSQL: a bounded pool of SQLAlchemy's, leased as asyncpg's own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from sqlalchemy import event, exc
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from normata.db.database import BadDatabaseUrl
from normata.db.postgresql.errors import CONNECT_ERRORS
from normata.db.watching import Watcher, waiting
from normata.errors import Unavailable
from normata.settings import Settings


class Pool:
    """Opens connections, keeps them, and renews those that may lead nowhere.

    A server that has gone without a word leaves all connections as they were, and each would cost a request its whole
    wait. So after one was found to lead nowhere, every connection from before that moment is renewed before it is used.
    """

    def __init__(self, settings: Settings, *, serving: bool, watcher: Watcher) -> None:
        self._dsns = _one_per_host(settings.database_url)
        self._timeout = settings.database_timeout
        self._serving = serving
        self._statement_cache = settings.database_statement_cache
        self._doubted = 0.0
        self._limit = settings.database_pool_size
        self._watcher = watcher
        self._waits = watcher.waits("connection")
        self.engine: AsyncEngine = create_async_engine(
            "postgresql+asyncpg://",
            connect_args={
                "async_creator_fn": self.connect,
                "prepared_statement_cache_size": self._statement_cache,
                # Behind a pooler the next transaction has another session; nameless statements leave nothing behind.
                **({} if self._statement_cache else {"prepared_statement_name_func": str}),
            },
            pool_size=settings.database_pool_size,
            max_overflow=0,
            pool_timeout=self._timeout,
            hide_parameters=True,  # what is logged of a failed statement must not have what people wrote
        )
        event.listen(self.engine.sync_engine, "connect", _note_when)
        event.listen(self.engine.sync_engine, "checkout", self._refuse_doubtful)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """A connection for a block, which must leave it outside of any transaction, or terminate it."""
        with waiting(self._waits):
            leased = await self.engine.raw_connection()
        connection: Any = leased.driver_connection
        try:
            self._tell_of_connections()
            yield connection
        finally:
            if connection.is_closed():
                leased.invalidate()
            leased.close()
            self._tell_of_connections()

    async def connect(self, **_kwargs: Any) -> asyncpg.Connection[Any]:
        """A new connection, to whichever host of the URL fits its ``target_session_attrs``; it is not the pool's.

        asyncpg has one time-out for all hosts together. A host whose machine is gone would use it up, and no other
        would ever be tried. So each gets its share here, and the one that answered last is asked first.
        """
        reason: Exception | None = None
        for dsn in tuple(self._dsns):
            try:
                connection = await asyncpg.connect(
                    dsn,
                    timeout=self._timeout / len(self._dsns),
                    # Of each statement, a ROLLBACK among them: a server that goes without a word may do so between any
                    # two.
                    command_timeout=self._timeout * 2 if self._serving else None,
                    statement_cache_size=self._statement_cache,
                    server_settings={"application_name": "normata"},
                )
            except (ValueError, asyncpg.ClientConfigurationError) as error:
                raise BadDatabaseUrl(f"the database URL cannot be used: {error}") from None
            except CONNECT_ERRORS as error:
                reason = error
            else:
                self._dsns.sort(key=dsn.__ne__)
                return connection
        raise Unavailable(str(reason).splitlines()[0] if str(reason) else type(reason).__name__) from reason

    def doubt(self) -> None:
        """Have every connection from before this moment renewed before it is used again."""
        self._doubted = time.monotonic()

    def is_doubtful(self, made: float) -> bool:
        """Whether a connection that was made then may lead nowhere."""
        return made < self._doubted

    async def close(self) -> None:
        """Close all connections."""
        with suppress(TimeoutError):  # a server that does not answer need not be told
            async with asyncio.timeout(self._timeout):
                await self.engine.dispose()

    def _tell_of_connections(self) -> None:
        pool: Any = self.engine.sync_engine.pool  # a queue, which can count
        self._watcher.connections(used=pool.checkedout(), idle=pool.checkedin(), limit=self._limit)

    def _refuse_doubtful(self, connection: Any, entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
        if self.is_doubtful(entry.info["made"]):
            connection.driver_connection.terminate()
            raise exc.DisconnectionError


def _note_when(_connection: Any, entry: ConnectionPoolEntry) -> None:
    entry.info["made"] = time.monotonic()


def _one_per_host(dsn: str) -> list[str]:
    parts = urlsplit(dsn)
    user, at, hosts = parts.netloc.rpartition("@")
    return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]
