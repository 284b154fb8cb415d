"""The database of a process, which runs work in transactions.

This module knows neither of the databases: ``sqlite`` and ``postgresql`` each have one, and ``opening`` chooses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, MetaData

from normata.core.db.lookup import Lookup
from normata.core.db.security import Security
from normata.core.db.transaction import NO_TENANT, T, TenantScope, Transaction, Work


class BadDatabaseUrl(ValueError):
    """Normata cannot use the database URL; the message is the reason, in one sentence."""


class Database(ABC):
    """One database.

    ``embedded`` is true if the data is a file of this program, which it creates and migrates itself.
    """

    embedded: bool

    @abstractmethod
    async def read(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        """Run ``work`` in one consistent snapshot, and return its result. Raises Unavailable.

        Work that ``is_long`` may compute for more than some milliseconds, so it must not block the event loop.
        """

    async def plan(self, work: Work[T], scope: TenantScope = NO_TENANT) -> T:
        """As :meth:`read`, for work that takes seconds: others' reads do not wait for it. Raises Unavailable."""
        return await self.read(work, scope, is_long=True)

    @abstractmethod
    async def write(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        """Run ``work``, and return its result once its transaction is durable.

        If it raises an error, nothing is stored.

        ``work`` may be run more than once, so it must do nothing but use its transaction; see :meth:`read` for
        ``is_long``. Raises ConstraintViolation, and Unavailable; then nothing is stored, unless the connection was lost
        during the commit, whose outcome is unknown.
        """

    @abstractmethod
    async def dry_run(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        """Run ``work`` as :meth:`write` would, with the same result or error, but store nothing.

        References are checked as the commit would check them, see :meth:`Transaction.check_constraints`. ``work`` may
        run more than once, but does not make others' work run again. Writers wait for it as little as each database
        allows, and never for what ``work`` does before its first write. On SQLite a writer of the same process
        interrupts it between two statements, and it is attempted again; after some attempts, and for writers of other
        processes unless they :meth:`interrupt_others`, it holds the write lock from its first write to its end. On
        PostgreSQL it takes no named locks. Rows that it writes are locked until its end, so changes of the same rows
        wait for that; it waits half a second at most itself, and then raises Unavailable.
        """

    def interrupt_others(self, interrupt: Callable[[], bool]) -> None:
        """Have a writer that finds the write lock of an embedded database taken call ``interrupt``, on any thread.

        It may make a process that runs a dry run release the lock, and returns whether it has.
        """
        del interrupt

    @abstractmethod
    async def look_up(self, lookup: Lookup, *arguments: str | None) -> Sequence[Any]:
        """The current rows of ``lookup``, as named tuples of its columns. Raises Unavailable."""

    @abstractmethod
    async def require_ready(self) -> None:
        """Return if changes can be served now, according to checks apart from requests. Raises Unavailable."""

    @abstractmethod
    def read_now(self, work: Work[T]) -> T:
        """:meth:`read` with every organization in scope, for callers without an event loop: the command line."""

    @abstractmethod
    def write_now(self, work: Work[T]) -> T:
        """:meth:`write` with every organization in scope, for callers without an event loop."""

    @abstractmethod
    def alter_now(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which changes the schema, in one exclusive transaction, and return its result.

        It gets a SQLAlchemy connection: Alembic needs one. Raises Unavailable.
        """

    @abstractmethod
    def exists(self) -> str | None:
        """Null if there is a database to connect to, else what is missing, as a phrase after "there is"."""

    @abstractmethod
    def secure(self, connection: Connection, metadata: MetaData, security: Security) -> None:
        """Let the database itself separate organizations, if it can. Repeating it is harmless."""

    @abstractmethod
    def faults(
        self, transaction: Transaction, metadata: MetaData, security: Security, *, only_schema: bool = False
    ) -> Iterator[str]:
        """The faults of files, references, indexes, triggers, policies and grants, a sentence each.

        With ``only_schema``, checks that take longer with more rows are left out: of files and references.
        """

    @abstractmethod
    def scrub(self) -> bool:
        """Remove deleted and overwritten data from the files of the database. Raises Unavailable.

        Returns false if the files are a server's, which does it later by itself.
        """

    @abstractmethod
    def serving_warnings(self, transaction: Transaction) -> Iterator[str]:
        """Warnings about rights of the URL's login that the service does not need, a sentence each."""

    def warnings(self, transaction: Transaction) -> Iterator[str]:
        """What is no fault of the database, but worth correcting, a sentence each."""
        del transaction
        return iter(())

    def figures(self) -> Mapping[str, float]:
        """Sizes of the files of an embedded database, and when it was last backed up, by the names of metrics."""
        return {}

    @abstractmethod
    async def aclose(self) -> None:
        """:meth:`close`, for callers with an event loop."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources. The database cannot be used afterwards."""
