"""The unit of work, in which every change of people's data is made, from whatever source.

A change is a plain function over a :class:`UnitOfWork`. It reads and writes with its statements, and publishes changes.
Each is checked: its writes against its declaration, its published changes against the organizations that it may change.
Then the subscribers write what follows: the event, the notifications, the revisions of lists. One commit makes all of
this durable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from sqlalchemy import CompoundSelect, Select
from typing_extensions import override

from normata.core.db.database import Database
from normata.core.db.delegating import DelegatingTransaction, InsertRecorder, returns_rows
from normata.core.db.security import Write, together
from normata.core.db.transaction import (
    NO_ORGANIZATION,
    NO_PARAMETERS,
    ConstraintViolation,
    Parameters,
    Statement,
    TenantScope,
    Transaction,
)
from normata.core.db.types import now
from normata.core.schema.table import Table, derived_from, table_named
from normata.errors import InsufficientRole, NotFound

T = TypeVar("T")

_READS = (Select, CompoundSelect)


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change, and the means.

    A request has a user, a token, an id, and a network ``address``. A ``command`` has its own name instead: everybody
    who can run it has access to the database.
    """

    user_id: str | None = None
    user_name: str = ""
    token_id: str | None = None
    request_id: str = ""
    address: str = ""
    command: str = ""


COMMAND = Actor(command="normata")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row of ``table``.

    ``action`` is a verb: ``restore``. ``organization_id`` is the row's organization, null if it is centralized or
    belongs to nobody. ``row`` is the row after the change, by column names, null if it is deleted; ``before`` the row
    before, null if it is new. If a statement changes a row without reading it, ``before`` is null as well, and
    ``changed`` names the columns that it has set. All of these are null for a bulk change, which only says that rows of
    the table have changed; ``counts`` may have their numbers. ``reason`` is the one that the actor entered.
    """

    action: str
    table: type[Table]
    organization_id: str | None
    row_id: str | None = None
    row: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None
    changed: Collection[str] | None = None
    counts: Mapping[str, Any] | None = None
    reason: str | None = None


class UndeclaredWrite(AssertionError):
    """A change writes what it has not declared, or does not publish what it writes. It is a bug; nothing is stored."""


class UnitOfWork(DelegatingTransaction):
    """A transaction in which an ``actor`` makes a change at ``moment`` (the wire's text).

    ``scope`` is the tenant scope: ``writable`` are the organizations in which the actor's role is large enough for this
    change. It is null for commands, which reach all of them. ``is_retry`` is true if the database has just refused the
    same change, so that earlier reads of its rows may be wrong. ``is_dry_run`` is true if nothing will be stored: a
    change may leave out writes of many rows on which neither its answer nor its consequences depend.
    """

    def __init__(
        self,
        transaction: Transaction,
        actor: Actor,
        scope: TenantScope | None,
        writes: Sequence[Write] | None,
        moment: str | None = None,
        *,
        is_retry: bool = False,
        is_dry_run: bool = False,
    ) -> None:
        super().__init__(transaction)
        self.is_retry = is_retry
        self.is_dry_run = is_dry_run
        self.actor = actor
        self.scope = scope
        self.moment = moment or now()
        self._may_move = moment is None
        self._is_dated = False
        self._allowed = None if writes is None else _allowed(tuple(writes))
        self._written: set[str] = set()
        self._held: set[tuple[str, bool]] = set()
        self.published: list[Change] = []
        self.reached: str | None = None  # the organization of the last check

    @property
    def change_id(self) -> str:
        """The id of this change: its moment, and its request. Its events have both."""
        return f"{self.moment}_{self.actor.request_id}"

    def publish(self, change: Change) -> None:
        """Publish a change to the subscribers.

        Raises InsufficientRole if the actor may not change its organization, and NotFound if they may not see it.
        """
        self.require_reach(change.organization_id)
        self.published.append(change)

    def require_reach(self, organization_id: str | None) -> None:
        """Raise InsufficientRole if the actor may not change an organization, and NotFound if they may not see it.

        A change whose UPDATE finds no row reads the row and calls this: with row-level security an UPDATE does not find
        a row that the actor may only read, and without it finds all.
        """
        owner = NO_ORGANIZATION if organization_id is None else organization_id
        if self.scope is not None and owner not in self.scope.writable:
            raise InsufficientRole if self.may_read(organization_id) else NotFound
        self.reached = organization_id

    def extend_reach(self, organizations: Collection[str]) -> None:
        """Add organizations to the scope of the change, because it affects their data.

        Only a change of centralized catalogs may do that. Its answer must not contain anything of their data.
        """
        if self.scope is None:
            return
        if not self.scope.catalogs:
            raise AssertionError(
                "this change does not change catalogs, and reaches the organizations that it was given"
            )
        more = tuple(sorted(set(organizations) - set(self.scope.writable)))
        if more:
            self.scope = replace(
                self.scope, readable=(*self.scope.readable, *more), writable=(*self.scope.writable, *more)
            )
            self._transaction.extend(self.scope)

    def may_read(self, organization_id: str | None) -> bool:
        """Whether the actor may read an organization's data."""
        return self.scope is None or organization_id in self.scope.readable

    @override
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        table = self._declared(statement)
        found = self._transaction.rows(statement, parameters)
        # A statement that would return the written rows and returned none has written nothing.
        if table is not None and (found or not returns_rows(statement)):
            self._written.add(table)
        return found

    @override
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        self._note(statement)
        self._transaction.execute_many(statement, parameters)

    @override
    def stream(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        self._note(statement)
        return self._transaction.stream(statement, parameters)

    @override
    def lock(self, name: str, *, shared: bool = False) -> None:
        """Take a lock, unless it is already held. What others wrote until then came before this change."""
        if (name, shared) not in self._held:
            self._transaction.lock(name, shared=shared)
            self._held.add((name, shared))
            if self._may_move and not self._written:
                self.moment = now()

    def require_published(self) -> None:
        """Raise UndeclaredWrite if a table was written without a published change."""
        silent = {name for name in self._written if table_named(name).published}
        silent -= {str(change.table.__tablename__) for change in self.published}
        if silent:
            raise UndeclaredWrite(f"rows of {', '.join(sorted(silent))} were written, but no change was published")

    def following(self, writes: Sequence[Write]) -> UnitOfWork:
        """A unit of work of the same actor and moment, in the same transaction, with other writes."""
        unit = UnitOfWork(self._transaction, self.actor, self.scope, writes, self.moment)
        unit._is_dated = self._is_dated
        return unit

    def _note(self, statement: Statement) -> None:
        table = self._declared(statement)
        if table is not None:
            self._written.add(table)

    def _declared(self, statement: Statement) -> str | None:
        """The table that a statement writes, null for none. Raises UndeclaredWrite."""
        if isinstance(statement, _READS):
            return None
        table: str = statement.table.name  # type: ignore[union-attr] # statements write plain tables only
        if self._allowed is not None and (table, statement.__visit_name__) not in self._allowed:
            raise UndeclaredWrite(f"the change does not declare that it may {statement.__visit_name__} {table}")
        if not self._is_dated and statement.table.info.get("is_dated"):  # type: ignore[union-attr] # as above
            self._transaction.date(self.moment)
            self._is_dated = True
        return table


@lru_cache(maxsize=1_000)
def _allowed(writes: tuple[Write, ...]) -> frozenset[tuple[str, str]]:
    return frozenset((write.table, write.action.lower()) for write in writes)


# The organizations whose rows a caller may see; null for all. A null among them stands for rows without one.
Shown: TypeAlias = Set[str | None] | None

# Consequences of a change that are no changes of rows, by their names in the answer of a dry run.
Effects: TypeAlias = Callable[[UnitOfWork, Shown], Mapping[str, Any]]


class Preview(NamedTuple, Generic[T]):
    """What a change would do: its result, what it would publish, the rows that it would add to a table, and effects."""

    result: T
    changes: Sequence[Change]
    added: Sequence[Any]
    effects: Mapping[str, Any]


class Subscriber(Protocol):
    """Writes what follows from changes, in their own transaction. What it publishes, those after it see as well."""

    @property
    def writes(self) -> Sequence[Write]:
        """The rights that it needs."""

    def __call__(self, unit: UnitOfWork, changes: Sequence[Change], actor: Actor, moment: str, /) -> None:
        """Write what follows from ``changes``, which are of one unit of work."""


class Changes:
    """Makes changes: runs each in a unit of work, calls the ``subscribers``, and commits.

    ``watched`` is the table whose new rows a preview shows. ``effects`` reads what else a preview shows of a change,
    once that is written; null for nothing.
    """

    def __init__(
        self,
        database: Database,
        subscribers: Sequence[Subscriber],
        watched: type[Table],
        effects: Effects | None = None,
    ) -> None:
        self._database = database
        self._subscribers = subscribers
        self._watched = str(watched.__tablename__)
        self._effects = effects

    async def make(
        self,
        work: Callable[[UnitOfWork], T],
        *,
        actor: Actor,
        scope: TenantScope,
        writes: Sequence[Write],
        is_long: bool = False,
    ) -> T:
        """The result of ``work``, once all its changes and their consequences are durable.

        ``work`` may run more than once. If it loses a race for a unique key, or refers to a row that was just deleted,
        only the database detects that; run again, ``work`` sees the winner's rows and can raise the right error. See
        :meth:`Database.read` for ``is_long``. Raises the errors of ``work``, Unavailable, and ConstraintViolation if
        that happens twice.
        """

        def unit(transaction: Transaction, *, is_retry: bool = False) -> T:
            return self._run(transaction, work, actor, scope, writes, is_retry=is_retry)

        try:
            return await self._database.write(unit, scope, is_long=is_long)
        except ConstraintViolation:
            return await self._database.write(partial(unit, is_retry=True), scope, is_long=is_long)

    async def plan(self, work: Callable[[UnitOfWork], T], *, actor: Actor, scope: TenantScope) -> T:
        """The result of ``work``, which reads and computes for seconds without writing, so that no writer waits.

        The result may be out of date when a change uses it. Raises the errors of ``work``, Unavailable, and
        UndeclaredWrite if it writes.
        """
        return await self._database.plan(lambda transaction: work(UnitOfWork(transaction, actor, scope, ())), scope)

    async def dry_run(
        self,
        work: Callable[[UnitOfWork], T],
        *,
        actor: Actor,
        scope: TenantScope,
        writes: Sequence[Write],
        is_long: bool = False,
        shown: Shown = None,
    ) -> Preview[T]:
        """What :meth:`make` would return and publish, the rows that it would add to the watched table, and its effects.

        Everything runs, the subscribers too, and nothing of it is stored. Effects are those in the organizations that
        are ``shown``. Raises what :meth:`make` raises.
        """

        def unit(transaction: Transaction, *, is_retry: bool = False) -> Preview[T]:
            watching = InsertRecorder(transaction, self._watched)
            units: list[UnitOfWork] = []

            def noted(unit: UnitOfWork) -> T:
                units.append(unit)
                return work(unit)

            result = self._run(watching, noted, actor, scope, writes, is_retry=is_retry, is_dry_run=True)
            effects = {} if self._effects is None else self._effects(units[0], shown)
            return Preview(result, units[0].published, watching.added, effects)

        try:
            return await self._database.dry_run(unit, scope, is_long=is_long)
        except ConstraintViolation:
            return await self._database.dry_run(partial(unit, is_retry=True), scope, is_long=is_long)

    def make_now(self, work: Callable[[UnitOfWork], T], *, actor: Actor = COMMAND) -> T:
        """:meth:`make` for commands: with every organization in scope, and without an event loop."""
        return self._database.write_now(lambda transaction: self._run(transaction, work, actor, None, None))

    def _run(
        self,
        transaction: Transaction,
        work: Callable[[UnitOfWork], T],
        actor: Actor,
        scope: TenantScope | None,
        writes: Sequence[Write] | None,
        *,
        is_retry: bool = False,
        is_dry_run: bool = False,
    ) -> T:
        unit = UnitOfWork(transaction, actor, scope, writes, is_retry=is_retry, is_dry_run=is_dry_run)
        result = work(unit)
        follow(unit, self._subscribers)
        return result


def follow(unit: UnitOfWork, subscribers: Sequence[Subscriber]) -> None:
    """Let subscribers write what follows from a finished unit of work.

    Raises UndeclaredWrite if it has unpublished writes.
    """
    unit.require_published()
    if unit.published:
        for subscriber in subscribers:
            checked = unit.following(subscriber.writes)
            subscriber(checked, unit.published, unit.actor, unit.moment)
            unit.published += checked.published


def all_writes(declared: Sequence[Write], subscribers: Sequence[Subscriber]) -> tuple[Write, ...]:
    """The writes of the service: those that its changes and subscribers declare."""
    return together(declared, *(subscriber.writes for subscriber in subscribers))


def insert_of(table: type[Table]) -> Write:
    """The right to add rows to a table."""
    return Write(str(table.__tablename__), "INSERT")


def update_of(table: type[Table], *columns: str) -> Write:
    """The right to change these columns of a table. Raises UndeclaredWrite if a derived column is missing.

    Setting only a name would leave its search and sort columns unchanged.
    """
    forgotten = derived_from(table, columns) - set(columns)
    if forgotten:
        names = ", ".join(sorted(forgotten))
        raise UndeclaredWrite(f"{names} of {table.__tablename__} follow from {', '.join(columns)}: write them as well")
    return Write(str(table.__tablename__), "UPDATE", frozenset(columns))


def delete_of(table: type[Table]) -> Write:
    """The right to remove rows of a table."""
    return Write(str(table.__tablename__), "DELETE")
