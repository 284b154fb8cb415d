"""A database, for one process: how work is run in a transaction of it.

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

    ``embedded`` says whether the data is a file of this program's own, which it then makes and migrates by itself.
    """

    embedded: bool

    @abstractmethod
    async def read(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        """What ``work`` returns, from one consistent snapshot. Raises Unavailable.

        Work that ``is_long`` may compute for more than some milliseconds: it must not keep the event loop meanwhile.
        """

    async def plan(self, work: Work[T], scope: TenantScope = NO_TENANT) -> T:
        """As :meth:`read`, for work that takes seconds: others' reads do not wait for it. Raises Unavailable."""
        return await self.read(work, scope, is_long=True)

    @abstractmethod
    async def write(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        """What ``work`` returns, once its transaction is durable; what it raises, with nothing of it stored.

        ``work`` may be run more than once, so it must do nothing but use its transaction; see :meth:`read` for
        ``is_long``. Raises ConstraintViolation, and Unavailable; then nothing is stored, unless the connection was lost
        during the commit: whether that one arrived nobody can tell.
        """

    @abstractmethod
    async def dry_run(self, work: Work[T], scope: TenantScope = NO_TENANT, *, is_long: bool = False) -> T:
        """What ``work`` returns, and what it raises, as if it were written; but nothing of it is stored.

        References are checked as the commit would check them, see :meth:`Transaction.check_constraints`. ``work`` may
        be run more than once, and nobody else's because of it.

        Writers wait for it as little as each database allows, and never for what ``work`` does before its first write.
        On SQLite a writer of the same process interrupts it between two statements, and it is attempted anew; after
        some attempts, and for writers of other processes, it has the lock for writing from its first write to its end.
        On PostgreSQL it takes none of the locks that have names. Rows that it writes are locked until its end, so who
        changes the same rows waits for that; it waits half a second at most itself, and then raises Unavailable.
        """

    @abstractmethod
    async def look_up(self, lookup: Lookup, *arguments: str | None) -> Sequence[Any]:
        """The rows that answer ``lookup`` now, as named tuples of its columns. Raises Unavailable."""

    @abstractmethod
    async def require_ready(self) -> None:
        """Return if changes can be served just now, as far as is known beside the requests. Raises Unavailable."""

    @abstractmethod
    def read_now(self, work: Work[T]) -> T:
        """:meth:`read` with every organization in scope, for callers without an event loop: the command line."""

    @abstractmethod
    def write_now(self, work: Work[T]) -> T:
        """:meth:`write` with every organization in scope, for callers without an event loop."""

    @abstractmethod
    def alter_now(self, work: Callable[[Connection], T]) -> T:
        """What ``work``, which changes the schema, returns, in one transaction that keeps every other such out.

        It gets a SQLAlchemy connection: Alembic needs one. Raises Unavailable.
        """

    @abstractmethod
    def exists(self) -> str | None:
        """Null where there is something to connect to, else what is missing, fit to follow "there is"."""

    @abstractmethod
    def secure(self, connection: Connection, metadata: MetaData, security: Security) -> None:
        """Have the database itself keep organizations apart, where it can. Repeating it is harmless."""

    @abstractmethod
    def faults(
        self, transaction: Transaction, metadata: MetaData, security: Security, *, only_schema: bool = False
    ) -> Iterator[str]:
        """What is wrong with files, references, indexes, triggers, policies and grants, a sentence each.

        With ``only_schema`` nothing is looked at that takes longer where there are more rows: files and references.
        """

    @abstractmethod
    def scrub(self) -> bool:
        """Have the files of the database keep nothing of what was deleted or overwritten. Raises Unavailable.

        False where the files are not this program's own: then their server does it in its own time.
        """

    @abstractmethod
    def serving_warnings(self, transaction: Transaction) -> Iterator[str]:
        """What the login that the URL names could do, and the service never needs: a sentence each."""

    def figures(self) -> Mapping[str, float]:
        """Sizes of the files of an embedded database, and when it was last backed up, by the names of metrics."""
        return {}

    @abstractmethod
    async def aclose(self) -> None:
        """:meth:`close`, for callers with an event loop."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back. The database cannot be used afterwards."""
