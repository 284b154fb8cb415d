"""A transaction on a connection to PostgreSQL: its begin, and its statements."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import asyncpg
from typing_extensions import override

from normata.core.db.postgresql import trigrams
from normata.core.db.postgresql.bulk import columns, for_many_rows
from normata.core.db.postgresql.errors import raise_translated
from normata.core.db.postgresql.server_status import TIMELINE
from normata.core.db.statements import Statements
from normata.core.db.transaction import NO_PARAMETERS, Parameters, Statement, T, TenantScope, Transaction, Work
from normata.core.db.trigrams import Hits

_ROWS_AT_ONCE = 1_000
# From so many rows on, update the statistics. Until the server does that itself, mostly within a minute, it may expect
# one row where there are hundreds, and read the table again for each row of another.
_MANY = 100

# Items of a list, from which on a plan of its own takes less than what a bad one costs. A page has fewer.
_LONG = 200

Wait = Callable[[Awaitable[Any]], Any]


class Mode(NamedTuple):
    """The mode of a transaction: how it begins, whether it may write, and whether its writes are stored.

    ``lock_timeout`` is in seconds, null for that of all statements.
    """

    begin: str = "BEGIN"
    writes: bool = True
    is_stored: bool = True
    lock_timeout: float | None = None


READING = Mode("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", writes=False)
WRITING = Mode()
# A dry run does not take the named locks, so it can deadlock with a writer. The server resolves a deadlock after a
# second (`deadlock_timeout`), and might abort the writer. The dry run gives up earlier.
DRY_RUN = Mode(is_stored=False, lock_timeout=0.5)

# All settings in one round trip, and only for this transaction, because behind a pooler the next one may be someone
# else's. It is a SELECT rather than several SETs, because `pg_stat_statements` counts SELECTs with different values as
# one statement.
_SETTINGS = (
    "SELECT set_config('role', {role}, true), set_config('normata.readable', {readable}, true),"
    " set_config('normata.writable', {writable}, true), set_config('normata.users', {users}, true),"
    " set_config('statement_timeout',"
    " CASE WHEN timeline = {timeline} THEN {limit} ELSE ({other} || timeline)::int::text END, true),"
    " set_config('lock_timeout', {locks}, true), set_config('idle_in_transaction_session_timeout', {idle}, true),"
    # Statements take milliseconds; to compile one takes longer, which the server decides by its estimate of the rows.
    " set_config('jit', 'off', true)"
)
_SERVER = f" FROM (SELECT {TIMELINE} AS timeline) AS server"
# The error of a transaction for another timeline: failing to convert a text is how a SELECT can refuse. A pooler may
# have sent it to a former primary.
ANOTHER_SERVER = asyncpg.InvalidTextRepresentationError

# Only where they may be changed, to keep other statements short.
_CATALOGS = ", set_config('normata.catalogs', 'on', true)"
_EXTEND = "SELECT set_config('normata.readable', $1, true), set_config('normata.writable', $2, true)"

# For commands, which run as the owner: like pg_dump, refuse a login that row-level security would restrict.
EVERY_ROW = "SELECT set_config('row_security', 'off', true)"


def settings(role: str, scope: TenantScope, timeout: float, timeline: str, mode: Mode) -> str:
    """The SQL that sets the role of a transaction, its tenant scope, and its time-outs.

    A server of another timeline refuses it with ANOTHER_SERVER.

    Only statements without parameters can go in one round trip with BEGIN, so the values are written out.
    """
    values = {
        "role": role,
        "readable": _array(scope.readable),
        "writable": _array(scope.writable),
        "users": _array(scope.users),
        "timeline": timeline,
        "other": "another timeline: ",
        "limit": str(round(timeout * 1000)),
        "locks": str(round(min(timeout, mode.lock_timeout or timeout) * 1000)),
        "idle": str(round(timeout * 4000)),
    }
    filled = _SETTINGS.format(**{name: _literal(value) for name, value in values.items()})
    return f"{filled}{_CATALOGS if scope.catalogs else ''}{_SERVER}"


class PostgreSQLTransaction(Transaction):
    """A transaction that has begun; its creator ends it.

    ``wait`` waits for the driver: within a greenlet of the event loop, or, for work that is long, on another thread.
    """

    def __init__(self, connection: asyncpg.Connection[Any], statements: Statements, wait: Wait) -> None:
        self._connection = connection
        self._statements = statements
        self._wait_for = wait
        self.failure: BaseException | None = None  # as raised by asyncpg

    @override
    def rows(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
        prepared = self._statements.prepare(statement, parameters)
        sql, values = prepared.bind(parameters)
        if _has_long(values):
            found = self._wait(_planned_anew(self._connection, sql, values))
        else:
            found = self.fetch(sql, *values)
        return [] if prepared.rows is None else prepared.rows(found)

    @override
    def hits(self, words: Sequence[str], organization_id: str, kinds: Iterable[str]) -> Hits:
        return trigrams.hits(self, words, organization_id, kinds)

    @override
    def texts_wait(self) -> bool:
        return trigrams.texts_wait(self)

    @override
    def index_texts(self) -> bool:
        return trigrams.index_texts(self)

    @override
    def execute_many(self, statement: Statement, parameters: Sequence[Parameters]) -> None:
        if not parameters:
            return
        prepared = self._statements.prepare(statement, parameters[0])
        if prepared.expands:
            for one in parameters:
                sql, values = prepared.bind(one)
                self.fetch(sql, *values)
            return
        sql, _ = prepared.bind(parameters[0])
        every = [prepared.bind(one)[1] for one in parameters]
        insert = for_many_rows(sql) if len(every) > 1 else None
        if insert is None:
            self._wait(self._connection.executemany(sql, every))
        else:
            self.fetch(insert, *columns(every))

    @override
    def stream(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> Iterator[Any]:
        prepared = self._statements.prepare(statement, parameters)
        sql, values = prepared.bind(parameters)
        # Unnamed, since behind a pooler a name could belong to another session.
        described = self._wait(self._connection.prepare(sql, name=""))
        cursor = self._wait(_opened(described, values))
        while found := self._wait(cursor.fetch(_ROWS_AT_ONCE)):
            if prepared.rows is not None:
                yield from prepared.rows(found)

    @override
    def lock(self, name: str, *, shared: bool = False) -> None:
        self.fetch(f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}($1)", _lock_key(name))

    @override
    def try_lock(self, name: str) -> bool:
        ((is_taken,),) = self.fetch("SELECT pg_try_advisory_xact_lock($1)", _lock_key(name))
        return bool(is_taken)

    @override
    def date(self, moment: str) -> None:
        self.fetch("SELECT set_config('normata.moment', $1, true)", moment)

    @override
    def check_constraints(self) -> None:
        self.fetch("SET CONSTRAINTS ALL IMMEDIATE")

    @override
    def extend(self, scope: TenantScope) -> None:
        self.fetch(_EXTEND, _array(scope.readable), _array(scope.writable))

    @override
    def tables(self) -> frozenset[str]:
        found = self.fetch("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
        return frozenset(name for (name,) in found)

    @override
    def analyze(self, written: Mapping[str, int]) -> None:
        """A table that another transaction has locked is skipped."""
        for table, rows in written.items():
            if rows >= _MANY:
                self.fetch(f"ANALYZE (SKIP_LOCKED) {self._statements.quoted(table)}")

    def fetch(self, sql: str, *values: Any) -> list[Any]:
        """All rows of a plain SQL statement, as the driver returns them."""
        return self._wait(self._connection.fetch(sql, *values))

    def _wait(self, call: Awaitable[T]) -> T:
        try:
            result: T = self._wait_for(call)
        except Exception as error:
            self.failure = error
            raise_translated(error)
        except BaseException as error:
            self.failure = error
            raise
        return result


class PostgreSQLDryRun(PostgreSQLTransaction):
    """A transaction that will be rolled back: it takes no named locks, because it stores nothing."""

    @override
    def lock(self, name: str, *, shared: bool = False) -> None:
        pass

    @override
    def try_lock(self, name: str) -> bool:
        return True


def waits_on(loop: asyncio.AbstractEventLoop) -> Wait:
    """Waits on another thread for coroutines of ``loop``."""

    async def done(call: Awaitable[Any]) -> Any:
        return await call

    return lambda call: asyncio.run_coroutine_threadsafe(done(call), loop).result()


def run_work(work: Work[T], transaction: PostgreSQLTransaction) -> T:
    """Run ``work`` and return its result. Raises its errors, including those of statements that it has caught.

    After a failed statement, the server would treat COMMIT as ROLLBACK.
    """
    result = work(transaction)
    if transaction.failure is not None:
        raise transaction.failure
    return result


def _has_long(values: Sequence[Any]) -> bool:
    """Whether there is a list among the values that a plan for any values would be bad for."""
    return any(isinstance(value, list) and len(value) >= _LONG for value in values)


async def _planned_anew(connection: asyncpg.Connection[Any], sql: str, values: Sequence[Any]) -> list[Any]:
    """All rows of a statement, whose plan is made for these values.

    A plan for any values, which the server may use from the sixth time on, assumes ten items of a list. Where it also
    takes a table for a small one, since nothing has counted its new rows yet, it compares each row with each item.
    """
    described = await connection.prepare(sql, name="")  # one that has no name is planned anew
    return list(await described.fetch(*values))


async def _opened(described: Any, values: Sequence[Any]) -> Any:
    return await described.cursor(*values)


def _lock_key(name: str) -> int:
    """The number of a named lock, unique among all users of the database."""
    return int.from_bytes(sha256(name.encode()).digest()[:8], signed=True)


def _array(items: Sequence[str]) -> str:
    """Texts as PostgreSQL writes an array of them (its manual, 8.15.6)."""
    escaped = (item.replace("\\", "\\\\").replace('"', '\\"') for item in items)
    return "{" + ",".join(f'"{item}"' for item in escaped) + "}"


def _literal(text: str) -> str:
    """A text as SQL writes it, whatever `standard_conforming_strings` is (4.1.2.2)."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
