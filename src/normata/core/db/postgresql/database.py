"""PostgreSQL: a database server, for many processes on many machines, through asyncpg."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, MetaData
from sqlalchemy.util import await_only, greenlet_spawn
from typing_extensions import override

from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.monitoring import Monitor
from normata.core.db.postgresql import security as rights
from normata.core.db.postgresql import trigrams
from normata.core.db.postgresql.bulk import list_from_array
from normata.core.db.postgresql.errors import CONNECT_ERRORS, is_lost, may_be_wrong_server, raise_translated, translate
from normata.core.db.postgresql.lookup import Lookups
from normata.core.db.postgresql.pool import STALE_AT_MOST, Lease, Pool
from normata.core.db.postgresql.runner import Runner
from normata.core.db.postgresql.server_status import commit
from normata.core.db.postgresql.transaction import (
    ANOTHER_SERVER,
    DRY_RUN,
    EVERY_ROW,
    READING,
    WRITING,
    Mode,
    PostgreSQLDryRun,
    PostgreSQLTransaction,
    run_work,
    settings,
    waits_on,
)
from normata.core.db.security import Security
from normata.core.db.statements import statements_for
from normata.core.db.transaction import NO_TENANT, T, TenantScope, Transaction, Work
from normata.errors import Unavailable, UnavailableReason
from normata.settings import Settings

_SCHEMA_LOCK = 0x6E6F726D617461  # "normata" in ASCII: the key of the advisory lock

# The type that SQLAlchemy assumes for numbers. asyncpg returns floats and Decimals; for `numeric`, SQLAlchemy converts
# both to the type of the column without asking the server.
_NUMERIC = 1700


_REPLACED: tuple[str, UnavailableReason] = ("another server has become the primary meanwhile", "unconfirmed")


class _StaleConnection(Unavailable):
    """The server was lost since a connection was last used."""


class _AnotherServer(_StaleConnection):
    """The connection leads to a server other than the expected primary."""


class PostgreSQL(Database):
    """PostgreSQL, over a bounded pool of connections.

    When serving, every transaction acts as the service's role, which row-level security limits to the tenant scope,
    even if the URL names a role without this limit: a superuser or the tables' owner. Commands act as the role of the
    URL.
    """

    embedded = False

    def __init__(self, configuration: Settings, *, monitor: Monitor, serving: bool = False) -> None:
        self._role = configuration.database_role
        self._timeout = configuration.database_timeout
        self._pool = Pool(configuration, serving=serving, monitor=monitor)
        self._statements = statements_for(self._pool.engine.dialect, _NUMERIC, list_from_array)
        self._lookups = Lookups(self._pool, self._statements, self._timeout)
        # For long work. Only two, since more would compete for Python's lock.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="normata-long")
        self._runner: Runner | None = None

    @override
    async def read(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        return await self._run(work, READING, scope, is_long=is_long)

    @override
    async def write(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        return await self._run(work, WRITING, scope, is_long=is_long)

    @override
    async def dry_run(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:

        def checked(transaction: Transaction) -> T:
            result = work(transaction)
            transaction.check_constraints()
            return result

        return await self._run(checked, DRY_RUN, scope, is_long=is_long)

    @override
    async def look_up(self, lookup: Lookup, *arguments: str | None) -> Sequence[Any]:
        return await self._lookups.look_up(lookup, arguments)

    @override
    async def require_ready(self) -> None:
        """Requires that the primary has committed recently."""
        if self._pool.heartbeat is not None:
            await self._pool.heartbeat.ready()

    @override
    def read_now(self, work: Work[T]) -> T:
        return self._now().run(lambda: self.read(work))

    @override
    def write_now(self, work: Work[T]) -> T:
        return self._now().run(lambda: self.write(work))

    @override
    def alter_now(self, work: Callable[[Connection], T]) -> T:

        def altered(connection: Connection) -> T:
            # The second process waits until the first has finished, which may take a while. It waits for tables only as
            # long as the requests behind it can.
            connection.exec_driver_sql("SET LOCAL lock_timeout = '120s'")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
            connection.exec_driver_sql("SET LOCAL lock_timeout = '5s'")
            return work(connection)

        return self._now().run(lambda: self._alter(altered))

    @override
    def exists(self) -> str | None:
        """The server reports it itself."""
        return None

    @override
    def secure(self, connection: Connection, metadata: MetaData, security: Security) -> None:
        """The service's role, what it may do, and row-level security."""
        rights.secure(connection, self._role, metadata, security)

    @override
    def faults(
        self, transaction: Transaction, metadata: MetaData, security: Security, *, only_schema: bool = False
    ) -> Iterator[str]:
        # The server checks its files and references itself.
        return rights.faults(_own(transaction).fetch, self._role, metadata, security, only_schema=only_schema)

    @override
    def scrub(self) -> bool:
        """Returns false: a server vacuums by itself, and keeps its log as it is configured."""
        return False

    @override
    def serving_warnings(self, transaction: Transaction) -> Iterator[str]:
        """Warns if row-level security does not apply to the login."""
        return rights.serving_warnings(_own(transaction).fetch, self._role)

    @override
    def warnings(self, transaction: Transaction) -> Iterator[str]:
        """Warns if searches have no index."""
        return trigrams.warnings(_own(transaction).fetch)

    @override
    async def aclose(self) -> None:
        await self._lookups.close()
        await self._pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    @override
    def close(self) -> None:
        runner = self._now()
        runner.run(self.aclose)
        runner.close()
        self._runner = None

    async def _run(self, work: Work[T], mode: Mode, scope: TenantScope, *, is_long: bool) -> T:
        for _ in range(STALE_AT_MOST):
            # Nothing was sent to the server yet, so a new connection is tried at once. After a restart of the server,
            # no request fails with 503 for that.
            with suppress(_StaleConnection):
                return await self._attempt(work, mode, scope, is_long=is_long)
        return await self._attempt(work, mode, scope, is_long=is_long)

    async def _attempt(self, work: Work[T], mode: Mode, scope: TenantScope, *, is_long: bool) -> T:
        heartbeat = self._pool.heartbeat
        if heartbeat is None:
            return await self._transact(work, mode, EVERY_ROW, is_long=is_long)
        server = await heartbeat.confirmed(writing=mode.writes)
        own = settings(self._role, scope, self._timeout, server.timeline, mode)
        try:
            result = await self._transact(work, mode, own, is_long=is_long)
        except _AnotherServer:
            heartbeat.doubt(server)
            raise
        except Unavailable:
            raise
        except Exception:
            if not await heartbeat.is_still(server):  # the work's error may come from old data
                raise _AnotherServer(*_REPLACED) from None
            raise
        if await heartbeat.is_still(server):
            return result
        if not (mode.writes and mode.is_stored):
            raise _AnotherServer(*_REPLACED)
        raise Unavailable(*_REPLACED)  # nobody knows whether the new primary has the change

    async def _transact(self, work: Work[T], mode: Mode, own: str, *, is_long: bool) -> T:
        transaction: PostgreSQLTransaction | None = None
        in_work = False
        try:
            async with self._pool.lease() as lease:
                connection = lease.connection
                try:
                    await connection.execute(f"{mode.begin};{own}")
                    wait = waits_on(asyncio.get_running_loop()) if is_long else await_only
                    make = PostgreSQLTransaction if mode.is_stored else PostgreSQLDryRun
                    transaction = make(connection, self._statements, wait)
                    in_work = True
                    result: T = await (
                        asyncio.get_running_loop().run_in_executor(self._threads, run_work, work, transaction)
                        if is_long
                        else greenlet_spawn(run_work, work, transaction)
                    )
                    in_work = False
                    if mode.is_stored:
                        await commit(connection)
                    else:
                        await connection.execute("ROLLBACK")
                except BaseException as error:
                    # An error of the work itself, such as a full disk, says nothing about the server.
                    in_work = in_work and transaction is not None and transaction.failure is None
                    cause = (transaction and transaction.failure) or error
                    is_elsewhere = transaction is None and isinstance(cause, ANOTHER_SERVER)
                    if is_elsewhere or (may_be_wrong_server(cause) and not in_work):
                        self._pool.doubt()  # after a restart of the server, all connections of the pool are stale
                    # The connection may still be in a transaction, so it must not be reused.
                    if transaction is None or isinstance(cause, TimeoutError | asyncio.CancelledError):
                        lease.abandon()
                    else:
                        await self._roll_back(lease)
                    raise
        except Exception as error:
            if in_work:
                raise
            if transaction is None and isinstance(error, ANOTHER_SERVER):
                raise _AnotherServer("the server that answers is not the primary", "unconfirmed") from error
            if transaction is None and is_lost(error) and not isinstance(error, TimeoutError):
                raise _StaleConnection(*translate(error).args) from error
            raise_translated(error)
        return result

    async def _roll_back(self, lease: Lease) -> None:
        try:
            if lease.connection.is_in_transaction():
                await lease.connection.execute("ROLLBACK")
        except CONNECT_ERRORS as error:  # the caller gets the error of the transaction, not this one
            lease.abandon()
            if is_lost(error):
                self._pool.doubt()
        except BaseException:
            lease.abandon()
            raise

    async def _alter(self, work: Callable[[Connection], T]) -> T:
        try:
            async with self._pool.engine.begin() as connection:
                # PostgreSQL cannot alter a table with unchecked references.
                await connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")
                return await connection.run_sync(work)
        except Exception as error:
            raise_translated(error)

    def _now(self) -> Runner:
        if self._runner is None:
            self._runner = Runner()
        return self._runner


def _own(transaction: Transaction) -> PostgreSQLTransaction:
    assert isinstance(transaction, PostgreSQLTransaction)  # noqa: S101 - narrows the type; a database makes its own
    return transaction
