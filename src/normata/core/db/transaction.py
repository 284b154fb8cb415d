"""A transaction as the domain sees it: statements in, rows out, the same on every database.

Domain code is plain, synchronous functions over a :class:`Transaction`. How a statement travels is the database
package's business: SQLite runs the function on a thread, PostgreSQL in a greenlet over asyncpg. SQLAlchemy builds and
compiles the statements and converts the values; the driver executes them, at a fraction of what it costs over
SQLAlchemy's own connections.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import CompoundSelect, Delete, Insert, Select, Update

T = TypeVar("T")

# A SELECT of however many columns, of whatever types.
Statement: TypeAlias = Select[*tuple[Any, ...]] | CompoundSelect[*tuple[Any, ...]] | Insert | Update | Delete
Parameters = Mapping[str, Any]

NO_PARAMETERS: Parameters = {}


class ConstraintViolation(Exception):
    """A statement, or the commit, would have broken a unique key or a reference. Nothing of the transaction is stored.

    The message is the database's own. It names the constraint and no values.
    """


class NotPermitted(Exception):
    """The login, or the role that it acts as, has not the right to do this. The message is the database's own."""


@dataclass(frozen=True, slots=True)
class TenantScope:
    """The organizations whose rows a transaction may read, and those whose rows it may change.

    ``users`` are the users whose own rows it may read and change as well: their tokens, their sessions. What belongs to
    no organization counts as that of NO_ORGANIZATION where somebody has to answer for it, as in the log of events. With
    ``catalogs`` it may change centralized catalogs, see who has adopted what, and give any list another revision.

    PostgreSQL holds every statement to it with row-level security, over and above what the statement itself asks for.
    SQLite cannot; there the statements' own conditions hold, and what a change publishes is checked.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    catalogs: bool = False


NO_TENANT = TenantScope()
NO_ORGANIZATION = ""  # stands in a scope for what belongs to no organization


class Transaction(ABC):
    """One transaction. Rows are named tuples: by position, by name, or unpacked.

    Values of a statement are literals in it or named parameters (``bindparam``). A statement that is made once (in a
    module, or by a cached function) is compiled once. Of those that are made each time, and differ in literals only,
    the first is compiled; to recognize the others costs a part of that.
    Raises ConstraintViolation and :class:`normata.errors.Unavailable`.
    """

    @abstractmethod
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        """Execute ``statement`` and return all its rows; none if it returns no rows."""

    @abstractmethod
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        """Execute ``statement``, which returns no rows, once with each of ``parameters``, all with the same names."""

    @abstractmethod
    def stream(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        """The rows of ``statement``, some at a time: for more than memory should hold."""

    @abstractmethod
    def lock(self, name: str, *, shared: bool = False) -> None:
        """Wait for every other transaction that holds the lock ``name``, and hold it until this one ends.

        Those that hold it ``shared`` do not wait for each other. For work that reads what it will write back, such as
        loads. SQLite has one writer anyway.
        """

    @abstractmethod
    def try_lock(self, name: str) -> bool:
        """Take the lock ``name`` as :meth:`lock` does, or return false at once where another transaction holds it."""

    @abstractmethod
    def check_constraints(self) -> None:
        """Check now what the commit would check: references, and that no statement has failed.

        Raises ConstraintViolation. SQLite has no way to check references before the commit. There the rules of a change
        have looked at them, and nobody else has written since.
        """

    @abstractmethod
    def extend(self, scope: TenantScope) -> None:
        """Have the tenants of ``scope`` in scope from here on: those of the transaction so far, and more."""

    @abstractmethod
    def tables(self) -> frozenset[str]:
        """The names of the tables that the database has."""

    @abstractmethod
    def analyze(self, written: Mapping[str, int]) -> None:
        """Have the database count what tables hold, so that it plans by what this transaction has written.

        ``written`` tells how many rows of each table that was. For bulk changes: until the database counts by itself,
        its plans take a large table for a small one. Where few rows were written, that does no harm, and the table is
        left alone; what is few, each database knows.
        """

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

_BATCH = 500  # values in one statement, well below every database's limit of parameters


def batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """``items`` in runs that fit one statement."""
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
