"""The interface of a transaction for features: statements in, rows out, the same on every database.

Features are plain, synchronous functions over a :class:`Transaction`. SQLite runs the function on a thread, PostgreSQL
in a greenlet over asyncpg. SQLAlchemy builds and compiles the statements and converts the values; the driver executes
them, at a fraction of the cost of SQLAlchemy's own connections.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import CompoundSelect, Delete, Insert, Select, Update

from normata.core.db.trigrams import NO_HITS, Hits
from normata.core.db.types import now

T = TypeVar("T")

# A SELECT with any columns, or a statement that writes.
Statement: TypeAlias = Select[*tuple[Any, ...]] | CompoundSelect[*tuple[Any, ...]] | Insert | Update | Delete
Parameters = Mapping[str, Any]

NO_PARAMETERS: Parameters = {}


class ConstraintViolation(Exception):
    """A statement, or the commit, would violate a unique key or a reference. Nothing of the transaction is stored.

    The message is the database's own. It has the name of the constraint, and no values.
    """


class NotPermitted(Exception):
    """The login, or the role that it acts as, does not have the right to do this. The message is the database's own."""


@dataclass(frozen=True, slots=True)
class TenantScope:
    """The organizations whose rows a transaction may read, and those whose rows it may change.

    ``users`` are the users whose own rows it may read and change as well: their tokens, their sessions. Rows without an
    organization belong to NO_ORGANIZATION where an owner is needed, as in the log of events. With ``catalogs`` it may
    change centralized catalogs, read all adoptions, and set another revision of any list.

    PostgreSQL limits every statement to it with row-level security, in addition to the statement's own conditions.
    SQLite cannot; there only the statements' own conditions apply, and published changes are checked.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    catalogs: bool = False


NO_TENANT = TenantScope()
NO_ORGANIZATION = ""  # stands for rows without an organization in a scope


class Transaction(ABC):
    """One transaction. Rows are named tuples: by position, by name, or unpacked.

    Values of a statement are literals in it or named parameters (``bindparam``). A statement that is built once (in a
    module, or by a cached function) is compiled once. Of statements that are built each time, and differ only in
    literals, the first is compiled; recognizing the others costs a part of that. Raises ConstraintViolation and
    :class:`normata.errors.Unavailable`.
    """

    @abstractmethod
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        """Execute ``statement`` and return all its rows; none if it returns no rows."""

    @abstractmethod
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        """Execute ``statement``, which returns no rows, once with each of ``parameters``, all with the same names."""

    @abstractmethod
    def stream(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        """The rows of ``statement``, some at a time, for results that are too large for memory."""

    @abstractmethod
    def lock(self, name: str, *, shared: bool = False) -> None:
        """Take the lock ``name``, waiting for other transactions that hold it, and hold it until this one ends.

        ``shared`` holders do not wait for each other. For work that reads what it will write back, such as loads.
        SQLite has only one writer.
        """

    @abstractmethod
    def try_lock(self, name: str) -> bool:
        """Take the lock ``name`` as :meth:`lock` does, or return false immediately if another transaction holds it."""

    @abstractmethod
    def date(self, moment: str) -> None:
        """Set the moment (in wire form) from which on what this transaction writes holds, for history tables."""

    @abstractmethod
    def check_constraints(self) -> None:
        """Check now what the commit would check: references, and that no statement has failed.

        Raises ConstraintViolation. SQLite cannot check references before the commit. There the rules of a change have
        checked them, and nobody else has written since.
        """

    @abstractmethod
    def extend(self, scope: TenantScope) -> None:
        """Set the tenant scope to ``scope``, which includes the scope so far."""

    @abstractmethod
    def tables(self) -> frozenset[str]:
        """The names of the tables in the database."""

    @abstractmethod
    def analyze(self, written: Mapping[str, int]) -> None:
        """Update the database's statistics, so that plans consider the writes of this transaction.

        ``written`` has the number of written rows by table. For bulk changes: until the database updates its statistics
        itself, its plans assume a small table. If few rows were written, this is not needed, and the table is skipped;
        each database decides what is few.
        """

    def hits(self, words: Sequence[str], organization_id: str, kinds: Iterable[str]) -> Hits:
        """What an index says of the rows of tables whose texts may have all folded words: nothing if none helps.

        See :mod:`normata.core.db.trigrams`.
        """
        del words, organization_id, kinds
        return NO_HITS

    def texts_wait(self) -> bool:
        """Whether so many texts were written that it is time for :meth:`index_texts`."""
        return False

    def index_texts(self) -> bool:
        """Index some of the texts that were written, and return whether there are more.

        It is called from time to time. SQLite's index needs no such call.
        """
        return False

    def time_of_reading(self) -> str:
        """The moment (in wire form) that what is read is about: now, unless it is of the past."""
        return now()

    def present(self) -> Transaction:
        """The transaction that reads the present: this one, unless it reads the past."""
        return self

    def row(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Any | None:
        """The first row, or null."""
        return next(iter(self.rows(statement, parameters)), None)

    def scalars(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        """The first column of every row."""
        return [row[0] for row in self.rows(statement, parameters)]

    def scalar(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Any | None:
        """The first column of the first row; null if there is no row."""
        return next(iter(self.scalars(statement, parameters)), None)


Work = Callable[[Transaction], T]

_BATCH = 500  # values in one statement; databases allow many more parameters


def batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """``items`` in runs that fit one statement."""
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
