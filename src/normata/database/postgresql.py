"""PostgreSQL: a database server, for many processes on many machines, through asyncpg."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from sqlalchemy import Connection, MetaData, Table, event, exc
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection
from sqlalchemy.sql.compiler import IdentifierPreparer

from normata.database import (
    NOTHING,
    BadDatabaseUrl,
    Database,
    Script,
    Sight,
    Statement,
    T,
    Unavailable,
    Work,
    from_instant,
)
from normata.database.admission import Admission, Counter, question
from normata.database.prepared import Prepared, Statements
from normata.settings import Settings

# Everything that a transaction needs to know goes in one round trip, and only for the transaction: behind a pooler the
# next one may be somebody else's.
_SETTINGS = (
    "SELECT set_config('role', {role}, true), set_config('normata.organizations', {organizations}, true),"
    " set_config('normata.token', '', true), set_config('statement_timeout', {limit}, true),"
    " set_config('lock_timeout', {limit}, true), set_config('idle_in_transaction_session_timeout', {idle}, true)"
)
_ENTER = _SETTINGS.format(role="$1", organizations="($2::text[])::text", limit="$3", idle="$4")
_IN_SIGHT = "(SELECT NULLIF(current_setting('normata.organizations', true), '')::text[])"
_OWN_MEMBERSHIPS = (
    "user_id = ANY (ARRAY(SELECT token.user_id FROM access_token AS token"
    " WHERE token.digest = ANY (string_to_array(current_setting('normata.token', true), ','))))"
)
# Answers for many tokens in one round trip, under the same rights as everything else: it acts as the service's role,
# and has in sight the memberships of the tokens' users and then the organizations of these. A version that needs other
# columns must give it another name, since the version before goes on asking while an upgrade is on its way.
_ADMIT = """\
CREATE OR REPLACE FUNCTION public.normata_admit(digests text[], organizations text[]) RETURNS TABLE (
    number bigint, user_id varchar, user_name varchar, token_id varchar, scope varchar, last_used_at timestamptz,
    expires_at timestamptz, organization_id varchar, revision varchar
) LANGUAGE plpgsql SET search_path = public, pg_temp SET role = '{role}' SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('normata.token', array_to_string(digests, ','), true);
    PERFORM set_config('normata.organizations', ARRAY(
        SELECT membership.organization_id FROM membership JOIN access_token ON access_token.user_id = membership.user_id
        WHERE access_token.digest = ANY (digests)
    )::text, true);
    RETURN QUERY {question};
END $$
"""
_QUESTION = question(
    "asked.digest",
    "asked.place",
    asked="unnest(digests, organizations) WITH ORDINALITY AS asked (digest, place, number)",
    number="asked.number",
)
_ADMIT_SIGNATURE = "public.normata_admit(text[], text[])"
_POLICY = "normata_organization"
_SCHEMA_LOCK = 0x6E6F726D617461  # "normata": names the lock among all users of the database

# Classes and codes of SQLSTATE with which the server says that it cannot just now: connection, resources, operator,
# system; serialization, deadlock, lock not available, and read-only (a standby).
_PASSING_CLASSES = frozenset({"08", "53", "57", "58"})
# The last is told where no host of the URL takes writes, as between the loss of a primary and the next.
_CONNECT_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_PASSING_CODES = frozenset({"40001", "40P01", "55P03", "25006"})


# A superuser, a role that says so, and whoever owns a table or acts for its owner.
_IS_NOT_BOUND = (
    "SELECT rolsuper OR rolbypassrls OR EXISTS (SELECT FROM pg_class AS c"
    " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"
    " AND pg_has_role(r.oid, c.relowner, 'USAGE')) FROM pg_roles AS r WHERE rolname = $1"
)
# Tables of organizations that anything but our one policy guards.
_UNGUARDED = (
    "SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relkind IN ('r', 'p')"
    " AND c.relnamespace = 'public'::regnamespace AND (c.relname = 'organization' OR EXISTS (SELECT FROM"
    " pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'organization_id')) AND NOT (c.relrowsecurity"
    " AND ARRAY(SELECT polname::text FROM pg_policy WHERE polrelid = c.oid) = ARRAY['normata_organization'])"
)
# What each of our policies was made from.
_POLICIES = (
    "SELECT c.relname::text AS relname, obj_description(p.oid, 'pg_policy') AS source FROM pg_policy AS p"
    " JOIN pg_class AS c ON c.oid = p.polrelid"
    " WHERE c.relnamespace = 'public'::regnamespace AND c.relrowsecurity AND p.polname = 'normata_organization'"
)


class _StaleConnection(Unavailable):
    """The server has gone since a connection was last used."""


class PostgreSQL(Database):
    """PostgreSQL, over a bounded pool of connections.

    When serving, every transaction acts as the service's role, which row-level security holds to the organizations in
    sight; also where the URL names a role that it would not hold, a superuser or the tables' owner. The command line
    acts as whoever the URL names.
    """

    embedded = False

    def __init__(self, settings: Settings, *, serving: bool = False) -> None:
        self._dsns = _one_per_host(settings.database_url)
        self._role = settings.database_role
        self._serving = serving
        self._timeout = settings.database_timeout
        self._statement_cache = settings.database_statement_cache
        self._runner: asyncio.Runner | None = None
        self._counter = Counter(self._admissions, self._timeout)
        self._desk: asyncpg.Connection[Any] | None = None
        self._engine: AsyncEngine = create_async_engine(
            "postgresql+asyncpg://",
            connect_args={
                "async_creator_fn": self._connect,
                "prepared_statement_cache_size": self._statement_cache,
                # Behind a pooler the next transaction has another session; nameless statements leave nothing behind.
                **({} if self._statement_cache else {"prepared_statement_name_func": str}),
            },
            pool_size=settings.database_pool_size,
            max_overflow=0,
            pool_timeout=self._timeout,
            hide_parameters=True,  # what is logged of a failed statement must not have what people wrote
        )
        self.engine = self._engine.sync_engine
        event.listen(self.engine, "connect", _note_when)
        event.listen(self.engine, "checkout", self._refuse_doubtful)
        self._doubted = 0.0  # when a connection was last found to lead nowhere
        self._statements = Statements(self.engine.dialect)

    async def read(self, work: Work[T], sight: Sight = NOTHING) -> T:
        """See :meth:`Database.read`."""
        return await self._run(work, sight, isolation_level="REPEATABLE READ", postgresql_readonly=True)

    async def admit(self, digest: str, organization_id: str | None) -> Sequence[Admission]:
        """See :meth:`Database.admit`."""
        return await self._counter.admit(digest, organization_id)

    async def write(self, work: Work[T], sight: Sight = NOTHING) -> T:
        """See :meth:`Database.write`."""
        return await self._run(work, sight)

    async def perform(self, script: Callable[[], Script[T]], sight: Sight = NOTHING) -> T:
        """See :meth:`Database.perform`: over asyncpg alone, which takes a quarter of the time."""
        with suppress(_StaleConnection):
            return await self._perform(script(), sight)
        return await self._perform(script(), sight)

    def read_now(self, work: Work[T]) -> T:
        """See :meth:`Database.read_now`."""
        return self._now().run(self.read(work))

    def write_now(self, work: Work[T]) -> T:
        """See :meth:`Database.write_now`."""
        return self._now().run(self.write(work))

    def exists(self) -> str | None:
        """See :meth:`Database.exists`: a server says so itself."""
        return None

    def lock_schema(self, connection: Connection) -> None:
        """See :meth:`Database.lock_schema`."""
        # Who comes second waits for the first to finish, which may take a while; then for tables only as long as the
        # requests that wait behind can bear.
        connection.exec_driver_sql("SET LOCAL lock_timeout = '120s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
        connection.exec_driver_sql("SET LOCAL lock_timeout = '5s'")

    def secure(self, connection: Connection, metadata: MetaData) -> None:
        """See :meth:`Database.secure`: the service's role, what it may do, and row-level security."""
        quote = connection.dialect.identifier_preparer
        role = quote.quote_identifier(self._role)
        self._make_role(connection, role)
        run = connection.exec_driver_sql
        run(f"GRANT USAGE ON SCHEMA public TO {role}")
        run(f"GRANT SELECT ON alembic_version TO {role}")
        admit = _ADMIT.format(role=self._role, question=_QUESTION)
        source = sha256(admit.encode()).hexdigest()
        if run(f"SELECT obj_description(to_regprocedure('{_ADMIT_SIGNATURE}'), 'pg_proc')").scalar() != source:
            run(admit)
            run(f"COMMENT ON FUNCTION {_ADMIT_SIGNATURE} IS '{source}'")
            run(f"GRANT EXECUTE ON FUNCTION {_ADMIT_SIGNATURE} TO {role}")
        made_from = {row.relname: row.source for row in run(_POLICIES)}
        for table in metadata.sorted_tables:
            name = quote.format_table(table)
            run(f"GRANT SELECT ON {name} TO {role}")
            if "service_may" in table.info:
                run(f"GRANT {table.info['service_may']} ON {name} TO {role}")
            condition = _condition(table, quote)
            if condition is None:
                continue
            # To make a policy locks the table against everybody, so one that is right is left alone.
            source = sha256(f"{role} {condition}".encode()).hexdigest()
            if made_from.get(table.name) == source:
                continue
            run(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
            run(f"DROP POLICY IF EXISTS {_POLICY} ON {name}")
            run(f"CREATE POLICY {_POLICY} ON {name} TO {role} USING ({condition})")
            run(f"COMMENT ON POLICY {_POLICY} ON {name} IS '{source}'")

    def damage(self, connection: Connection) -> Iterator[str]:
        """See :meth:`Database.damage`."""
        invalid = "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"
        for (name,) in connection.exec_driver_sql(invalid):
            yield f"the index {name} is not valid; rebuild it with REINDEX"
        if connection.exec_driver_sql(f"SELECT to_regprocedure('{_ADMIT_SIGNATURE}')").scalar() is None:
            yield "the function normata_admit is not there; run `normata migrate`"
        for (name,) in connection.exec_driver_sql(_UNGUARDED):
            yield f"the table {name} is not guarded by its row-level security alone; run `normata migrate`"

    async def aclose(self) -> None:
        """See :meth:`Database.aclose`."""
        if self._desk is not None:
            with suppress(*_CONNECT_ERRORS):
                await self._desk.close(timeout=1)
        with suppress(TimeoutError):  # a server that does not answer need not be said goodbye to
            async with asyncio.timeout(self._timeout):
                await self._engine.dispose()

    def close(self) -> None:
        """See :meth:`Database.close`."""
        runner = self._now()
        runner.run(self.aclose())
        runner.close()
        self._runner = None

    async def _admissions(self, digests: list[str], organizations: list[str | None]) -> Sequence[tuple[int, Admission]]:
        """The admissions of several tokens, each with the number of its token, from 1."""
        fresh = self._desk is None
        try:
            if self._desk is None:
                self._desk = await self._connect()
            rows = await self._desk.fetch(
                "SELECT * FROM public.normata_admit($1, $2)", digests, organizations, timeout=self._timeout
            )
        except _CONNECT_ERRORS as error:
            lost = self._desk is None or _is_lost(error)
            if lost and self._desk is not None:
                self._desk.terminate()
                self._desk = None
            if lost and not fresh and not isinstance(error, TimeoutError):
                return await self._admissions(digests, organizations)  # as of any stale connection
            if lost or _code_is_passing(error):
                raise Unavailable(_words(error)) from error
            raise
        return [(row[0], _admission(row)) for row in rows]

    async def _perform(self, script: Script[T], sight: Sight) -> T:
        begun = False
        try:
            leased = await self._engine.raw_connection()
            connection: Any = leased.driver_connection
            try:
                await connection.execute(self._beginning(sight))
                begun = True
                result = await self._follow(connection, script)
                await connection.execute("COMMIT")
            except BaseException as error:
                # Whether it is in a transaction now nobody can tell, so nobody shall have it after this.
                if not begun or isinstance(error, TimeoutError | asyncio.CancelledError):
                    connection.terminate()
                else:
                    await _roll_back(connection)
                raise
            finally:
                if connection.is_closed():
                    leased.invalidate()
                leased.close()
        except exc.TimeoutError as error:
            raise Unavailable("all connections are in use") from error
        except asyncpg.IntegrityConstraintViolationError as error:
            raise exc.IntegrityError(None, None, error) from error
        except _CONNECT_ERRORS as error:
            if _is_lost(error):
                self._doubted = time.monotonic()  # after a restart of the server each of the pool's is stale
            if not begun and not isinstance(error, TimeoutError) and _is_lost(error):
                raise _StaleConnection(_words(error)) from error
            if _is_lost(error) or _code_is_passing(error):
                raise Unavailable(_words(error)) from error
            raise
        return result

    def _beginning(self, sight: Sight) -> str:
        """What begins a transaction as :data:`_ENTER` does, but in one round trip with its BEGIN.

        Only statements without parameters can go together, so what they are told is written out. That they are a
        SELECT, and not SETs, is for `pg_stat_statements`, which takes SELECTs of other values for the same.
        """
        if not self._serving:
            return "BEGIN"
        role, organizations, limit, idle = self._entrance(sight)
        written = {"role": role, "organizations": _array(organizations), "limit": limit, "idle": idle}
        return "BEGIN;" + _SETTINGS.format(**{name: _literal(value) for name, value in written.items()})

    async def _follow(self, connection: asyncpg.Connection[Any], script: Script[T]) -> T:
        try:
            statement, parameters = next(script)
            while True:
                known = self._statements.find(statement) or await self._prepare(connection, statement)
                found = await connection.fetch(known.sql, *known.values(parameters))
                statement, parameters = script.send(known.rows(found))
        except StopIteration as end:
            return cast("T", end.value)

    async def _prepare(self, connection: asyncpg.Connection[Any], statement: Statement) -> Prepared:
        # Without a name it leaves nothing behind, which behind a pooler would be another's.
        described = await connection.prepare(self._statements.sql(statement), name="")
        return self._statements.add(statement, [attribute.type.oid for attribute in described.get_attributes()])

    async def _run(self, work: Work[T], sight: Sight, **options: Any) -> T:
        try:
            return await self._transact(work, sight, options)
        except exc.TimeoutError as error:
            raise Unavailable("all connections are in use") from error
        except exc.IntegrityError:
            raise
        except exc.DBAPIError as error:
            if _is_passing(error):
                raise Unavailable(_reason(error)) from error
            raise
        except (TimeoutError, ConnectionResetError) as error:
            raise Unavailable("the database did not answer in time") from error

    async def _transact(self, work: Work[T], sight: Sight, options: dict[str, Any]) -> T:
        try:
            return await self._attempt(work, sight, options)
        except _StaleConnection:
            # Nothing has been asked of the server yet, so a new connection may be tried at once: a restart of the
            # server costs nobody a 503 who comes after it.
            return await self._attempt(work, sight, options)

    async def _attempt(self, work: Work[T], sight: Sight, options: dict[str, Any]) -> T:
        def transact(connection: Connection) -> T:
            if self._serving:
                self._enter(connection, sight)
            result = work(connection)
            connection.commit()
            return result

        async with self._engine.connect() as connection:
            if options:
                await connection.execution_options(**options)
            try:
                return await connection.run_sync(transact)
            except TimeoutError:
                self._doubted = time.monotonic()
                await connection.invalidate()  # whether it is in a transaction now nobody can tell
                raise

    def _refuse_doubtful(self, connection: Any, entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
        """Have a connection renewed that is from before another was found to lead nowhere.

        A server that has gone without a word leaves all of the pool like that, and each would cost a request its whole
        wait.
        """
        if entry.info["made"] < self._doubted:
            connection.driver_connection.terminate()
            raise exc.DisconnectionError

    def _enter(self, connection: Connection, sight: Sight) -> None:
        """Begin the transaction and tell it who acts, what is in sight, and how long anything may take."""
        try:
            connection.exec_driver_sql(_ENTER, self._entrance(sight))
        except exc.DBAPIError as error:
            if error.connection_invalidated:
                raise _StaleConnection(_reason(error)) from error
            raise

    def _entrance(self, sight: Sight) -> tuple[str, list[str], str, str]:
        """What goes with :data:`_ENTER`."""
        limit, idle = round(self._timeout * 1000), round(self._timeout * 4000)
        return self._role, list(sight.organizations), str(limit), str(idle)

    async def _connect(self, **_kwargs: Any) -> asyncpg.Connection[Any]:
        """A new connection, to whichever host of the URL fits its ``target_session_attrs``.

        asyncpg has one time-out for all hosts together, which one whose machine is gone would use up: no other host
        would ever be tried. So each gets its share here, and who answered last is asked first.
        """
        reason: Exception | None = None
        for dsn in tuple(self._dsns):
            try:
                connection = await asyncpg.connect(
                    dsn,
                    timeout=self._timeout / len(self._dsns),
                    # Of each statement, whoever sends it: a server that has gone without a word may do so between any
                    # two, a ROLLBACK among them.
                    command_timeout=self._timeout * 2 if self._serving else None,
                    statement_cache_size=self._statement_cache,
                    server_settings={"application_name": "normata"},
                )
            except (ValueError, asyncpg.ClientConfigurationError) as error:
                raise BadDatabaseUrl(f"the database URL cannot be used: {error}") from None
            except _CONNECT_ERRORS as error:
                reason = error
            else:
                self._dsns.sort(key=dsn.__ne__)
                return connection
        raise Unavailable(str(reason).splitlines()[0] if str(reason) else type(reason).__name__) from reason

    def _make_role(self, connection: Connection, role: str) -> None:
        def ask(question: str) -> Any:
            return connection.exec_driver_sql(question, (self._role,)).scalar()

        if not ask("SELECT 1 FROM pg_roles WHERE rolname = $1"):
            # Roles belong to the whole server, where another database may be making this one at this moment.
            with suppress(exc.IntegrityError), connection.begin_nested():
                connection.exec_driver_sql(f"CREATE ROLE {role} NOLOGIN")
        if ask(_IS_NOT_BOUND):
            raise Unavailable(f"the role {self._role} is not bound by row-level security; name another one")
        # Since version 16, who makes a role is a member of it, but may not act as it unasked.
        right = "SET" if (connection.dialect.server_version_info or (0,)) >= (16,) else "MEMBER"
        if not ask(f"SELECT pg_has_role(current_user, $1, '{right}')"):
            connection.exec_driver_sql(f"GRANT {role} TO CURRENT_USER")

    def _now(self) -> asyncio.Runner:
        """One event loop for all calls without one: connections cannot move between loops."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner


def _note_when(_connection: Any, entry: ConnectionPoolEntry) -> None:
    entry.info["made"] = time.monotonic()


async def _roll_back(connection: asyncpg.Connection[Any]) -> None:
    try:
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK")
    except BaseException:
        connection.terminate()
        raise


def _array(items: Sequence[str]) -> str:
    """Texts as PostgreSQL writes an array of them (its manual, 8.15.6)."""
    escaped = (item.replace("\\", "\\\\").replace('"', '\\"') for item in items)
    return "{" + ",".join(f'"{item}"' for item in escaped) + "}"


def _literal(text: str) -> str:
    """A text as SQL writes it, whatever `standard_conforming_strings` is (4.1.2.2)."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _one_per_host(dsn: str) -> list[str]:
    parts = urlsplit(dsn)
    user, at, hosts = parts.netloc.rpartition("@")
    return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]


def _condition(table: Table, quote: IdentifierPreparer) -> str | None:
    """Which rows of a table are in sight; null where they belong to no organization."""
    column = table.c.get(table.info.get("organization_column", "organization_id"))
    if column is None:
        return None
    name = quote.format_column(column)
    if column.nullable:  # what is of no organization is everybody's: centralized frameworks
        condition = f"{name} IS NULL OR {name} = ANY ({_IN_SIGHT}::text[])"
    else:
        # Not by `=`: beside a statement's own condition on the column PostgreSQL would take the two for independent,
        # expect a tenth of the rows, and read all of an organization where an index would find a few.
        condition = f"array_position({_IN_SIGHT}, {name}::text) IS NOT NULL"
    if table.info.get("seen_by_its_user"):
        condition = f"{condition} OR {_OWN_MEMBERSHIPS}"
    return condition


def _admission(row: asyncpg.Record) -> Admission:
    _, user_id, user_name, token_id, scope, last_used_at, expires_at, organization_id, revision = row
    return Admission(
        user_id,
        user_name,
        token_id,
        scope,
        last_used_at and from_instant(last_used_at),
        expires_at and from_instant(expires_at),
        organization_id,
        revision,
    )


def _is_passing(error: exc.DBAPIError) -> bool:
    return error.connection_invalidated or isinstance(error, exc.InterfaceError) or _code_is_passing(error.orig)


def _is_lost(error: BaseException) -> bool:
    """Whether asyncpg's connection is of no more use after this."""
    lost = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresConnectionError)
    if isinstance(error, ValueError):  # asyncpg counts a value that it cannot encode among the errors of its interface
        return False
    return isinstance(error, (*lost, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError))


def _words(error: BaseException) -> str:
    return str(error).partition("\n")[0] or "the database did not answer in time"


def _code_is_passing(error: BaseException | None) -> bool:
    code = getattr(error, "sqlstate", None) or ""
    return code[:2] in _PASSING_CLASSES or code in _PASSING_CODES


def _reason(error: exc.DBAPIError) -> str:
    """The server's own words; never the statement's parameters."""
    cause = getattr(error.orig, "__cause__", None) or error.orig
    return str(cause).splitlines()[0]
