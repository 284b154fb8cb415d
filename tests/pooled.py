"""A database of PostgreSQL that outlives a test: each test finds it as its template is, with connections to it open.

To make a database, to connect to it and to plan its first statements takes longer than most tests.
"""

from __future__ import annotations

from asyncio import Runner
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from unittest import mock
from uuid import uuid4

import asyncpg
from anyio.from_thread import BlockingPortal, start_blocking_portal

from normata.app import Service, create_app
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.settings import Settings
from tests.client import TestClient
from tests.databases import open_url
from tests.postgres import Server

_MOST_MORE = 2_000  # rows that are worth removing one by one

_kept: dict[str, Kept] = {}


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """A database past the application, for a block; a kept one stays open."""
    if (kept := _kept.get(url)) is not None:
        yield kept.past
        return
    with closing(open_url(url)) as database:
        yield database


def to_lend(settings: Settings) -> Kept | None:
    """The kept database that an application with these settings may have; null where there is none."""
    kept = _kept.get(settings.database_url)
    return kept if kept is not None and kept.suits(settings) else None


class Kept:
    """A database for one test after the other. Before each, :meth:`restore` undoes what was changed.

    PostgreSQL tells of each row which transaction wrote it. So rows that were written since are removed, and those that
    are missing are written again. Whoever changes anything but rows has the next test get a new database.
    ``is_lent`` tells whether an application has its connections just now.
    """

    url: str
    is_lent: bool
    _past: Database | None
    _serving: tuple[Database, BlockingPortal] | None
    _opened_as: dict[str, Any] | None

    def __init__(self, server: Server, template: str) -> None:
        self._server = server
        self._template = template
        self._runner = Runner()
        self._begin()

    def restore(self) -> None:
        """Have it as the template is. Its address is another one where it had to be made anew."""
        assert not self.is_lent
        try:
            is_restored = self._runner.run(self._undo())
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            is_restored = False  # somebody goes on with it
        if not is_restored:
            self._end()
            self._begin()

    def close(self) -> None:
        """Remove it."""
        self._end()
        self._runner.close()

    @property
    def past(self) -> Database:
        """The database past the application. Whoever gets it must leave it open."""
        if self._past is None:
            self._past = open_url(self.url)
        return self._past

    def suits(self, settings: Settings) -> bool:
        """Whether its connections are free, and are as these settings want them."""
        return not self.is_lent and self._opened_as in (None, _about_connections(settings))

    @contextmanager
    def served(self, settings: Settings) -> Iterator[tuple[Service, TestClient]]:
        """A new application, from its start to its end, over connections that are open already; and its client.

        There can be one at a time.
        """
        assert self.suits(settings)
        assert settings.database_url == self.url
        database, portal = self._opened(settings)
        with mock.patch("normata.app.open_database", return_value=database):
            app = create_app(settings)
        client = TestClient(app)
        client.portal = portal
        self.is_lent = True
        try:
            with (
                mock.patch.object(database, "aclose", _stay_open),
                portal.wrap_async_context_manager(app.router.lifespan_context(app)),
            ):
                yield app, client
        finally:
            self.is_lent = False

    def _opened(self, settings: Settings) -> tuple[Database, BlockingPortal]:
        """The database as the service has it, and the event loop of its connections."""
        if self._serving is None:
            portal = self._open.enter_context(start_blocking_portal())
            database = open_database(settings, serving=True)
            self._open.callback(portal.call, database.aclose)
            self._serving = database, portal
            self._opened_as = _about_connections(settings)
        return self._serving

    def _begin(self) -> None:
        self._name = f"normata_{uuid4().hex}"
        self._open = ExitStack()
        self._serving = None
        self._opened_as = None
        self._past = None
        self.is_lent = False
        self.url = self._server.create(self._name, template=self._template)
        self._runner.run(self._note())
        _kept[self.url] = self

    def _end(self) -> None:
        del _kept[self.url]
        if self._past is not None:
            self._past.close()
        self._open.close()
        self._runner.run(self._connection.close(timeout=5))
        self._server.drop(self._name)

    async def _note(self) -> None:
        """Note all that the database has, where nobody else sees it."""
        self._connection = connection = await asyncpg.connect(self.url)
        self._tables = {row["name"]: row for row in await connection.fetch(_TABLES)}
        for name in self._tables:
            await connection.execute(f'CREATE TEMPORARY TABLE "kept {name}" AS TABLE public."{name}"')
        self._count = "SELECT * FROM (" + " UNION ALL ".join(map(_counted, self._tables)) + ") AS found"
        self._lock = "LOCK TABLE " + ", ".join(f'public."{name}"' for name in self._tables) + " IN EXCLUSIVE MODE"
        self._had: dict[str, int] = {row["name"]: row["rows"] for row in await connection.fetch(self._count)}
        self._schema = await connection.fetchval(_SCHEMA)
        self._last: int = await connection.fetchval(_THIS_TRANSACTION)

    async def _undo(self) -> bool:
        """Undo what was written since; false where this is not all that was changed, or too much."""
        connection = self._connection
        async with connection.transaction():
            # What the test before has left under way is waited for.
            await connection.execute(f"SET LOCAL lock_timeout = '5s'; {self._lock}")
            if await connection.fetchval(_SCHEMA) != self._schema:
                return False
            found = await connection.fetch(self._count)
            if sum(row["rows"] for row in found) > sum(self._had.values()) + _MOST_MORE:
                return False
            changed = [
                row["name"] for row in found if row["rows"] != self._had[row["name"]] or (row["last"] or 0) > self._last
            ]
            if changed:
                # Without triggers, and references are not looked at: all of it becomes what it was.
                undone = [statement for name in changed for statement in self._undone(name)]
                await connection.execute("; ".join(["SET LOCAL session_replication_role = replica", *undone]))
                self._last = await connection.fetchval(_THIS_TRANSACTION)
        return True

    def _undone(self, name: str) -> tuple[str, str]:
        table = self._tables[name]
        is_same = " AND ".join(f'there."{column}" = kept."{column}"' for column in table["key"])
        columns = ", ".join(f'"{column}"' for column in table["columns"])
        missing = f'SELECT {columns} FROM "kept {name}" AS kept WHERE NOT EXISTS'
        return (
            f'DELETE FROM public."{name}" WHERE xmin::text::bigint > {self._last}',
            f'INSERT INTO public."{name}" ({columns}) {missing} (SELECT FROM public."{name}" AS there WHERE {is_same})',
        )


def _about_connections(settings: Settings) -> dict[str, Any]:
    """What settings say of the database and of connections to it."""
    return {name: value for name, value in settings if name.startswith("database_")}


async def _stay_open() -> None:
    """What closes a database does this instead."""


def _counted(name: str) -> str:
    return f"SELECT '{name}' AS name, count(*) AS rows, max(xmin::text::bigint) AS last FROM public.\"{name}\""


_THIS_TRANSACTION = "SELECT pg_current_xact_id()::text::bigint"
_TABLES = """
SELECT relname::text AS name,
  ARRAY(SELECT attname::text FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns,
  ARRAY(SELECT attname::text FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
        WHERE indrelid = c.oid AND indisprimary) AS key
FROM pg_class AS c WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY relname
"""
# What is no row, by where it is told. Whoever changes it leaves the mark of another transaction there.
_ELSEWHERE = {
    "pg_class": "WHERE relnamespace = 'public'::regnamespace",
    "pg_attribute": "JOIN pg_class AS c ON c.oid = attrelid WHERE relnamespace = 'public'::regnamespace",
    "pg_proc": "WHERE pronamespace = 'public'::regnamespace",
    "pg_namespace": r"WHERE nspname NOT LIKE 'pg\_%'",
    "pg_constraint": "",
    "pg_trigger": "",
    "pg_policy": "",
    "pg_database": "WHERE datname = current_database()",
    "pg_db_role_setting": "JOIN pg_database AS d ON d.oid = setdatabase WHERE datname = current_database()",
}
_SCHEMA = "SELECT " + " || ' ' || ".join(
    f"(SELECT concat(count(*), '-', max({catalog}.xmin::text::bigint)) FROM {catalog} {those})"
    for catalog, those in _ELSEWHERE.items()
)
