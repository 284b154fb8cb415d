"""What is in the database, past the application."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy import Table as SqlTable

from normata.core.changes.jobs import Job
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.model import AuditEvent, EventCheckpoint, EventLeaf, UnsealedEvent
from normata.identity.model import AccessToken
from normata.identity.sign_in_model import Session
from normata.tables import Table
from tests import world
from tests.databases import path_of

Rows = list[dict[str, Any]]

SEALING = {str(table.__tablename__) for table in (UnsealedEvent, EventLeaf, EventCheckpoint)}


@cache
def _every(table: SqlTable) -> Select[Any]:
    return select(*table.c).order_by(*table.primary_key.columns)


def everything(database: Database) -> dict[str, Rows]:
    """Every row of every table, but for what the service does beside requests.

    That is to note when a token or a session was last used, to seal events, and to come back for the job of the whole
    instance. Events of commands are left out, too:
    tests make tokens meanwhile.
    """

    def work(transaction: Transaction) -> dict[str, Rows]:
        tables = [table for table in Table.metadata.sorted_tables if table.name not in SEALING]
        found = {table.name: [row._asdict() for row in transaction.rows(_every(table))] for table in tables}
        for used in (*found[str(AccessToken.__tablename__)], *found[str(Session.__tablename__)]):
            del used["last_used_at"]
        jobs = str(Job.__tablename__)
        found[jobs] = [job for job in found[jobs] if job["owner"]]
        events = str(AuditEvent.__tablename__)
        found[events] = [event for event in found[events] if event["user_id"] is not None]
        return found

    return database.read_now(work)


class Changes:
    """What a database of SQLite holds, to be held against what it held before.

    All is read only where SQLite says that somebody has changed the file: to read it takes longer than a request.
    """

    def __init__(self, database: Database, connection: sqlite3.Connection) -> None:
        self._database = database
        self._connection = connection
        self._version: int | None = None
        self._before: dict[str, Rows] = {}

    def begin(self) -> None:
        """Note what is stored now."""
        version = self._version_now()
        if version != self._version:
            self._version, self._before = version, everything(self._database)

    def require_none(self) -> None:
        """Fail where anything else is stored than was noted."""
        version = self._version_now()
        if version != self._version:
            assert everything(self._database) == self._before
            self._version = version

    def _version_now(self) -> int:
        ((version,),) = self._connection.execute("PRAGMA data_version").fetchall()
        return int(version)


@contextmanager
def watched(database: Database) -> Iterator[Changes]:
    """What a database of SQLite holds, and what changes in it from now on."""
    with closing(sqlite3.connect(path_of(database))) as connection:
        yield Changes(database, connection)


def rows(database: Database, table: type[Table], **wanted: object) -> Rows:
    """The rows of a table that have these values."""
    columns = sql_table(table).c
    statement = select(*columns).where(*(columns[name] == value for name, value in wanted.items()))
    ordered = statement.order_by(*sql_table(table).primary_key.columns)
    return database.read_now(lambda transaction: [row._asdict() for row in transaction.rows(ordered)])


def tokens(database: Database, **wanted: object) -> Rows:
    """The tokens that a test has made; the world has some of its own."""
    return [row for row in rows(database, AccessToken, **wanted) if row["id"] not in world.TOKENS]


def sessions(database: Database, **wanted: object) -> Rows:
    """The sessions that a test has begun; the world has some of its own."""
    return [row for row in rows(database, Session, **wanted) if row["id"] not in world.SESSIONS]


def events(database: Database, **wanted: object) -> Rows:
    """The events of what somebody did over HTTP. Tests make tokens and more as commands do."""
    return [event for event in rows(database, AuditEvent, **wanted) if event["user_id"] is not None]


def row(database: Database, table: type[Table], row_id: str) -> dict[str, Any]:
    """The one row with this id."""
    (found,) = rows(database, table, id=row_id)
    return found


def load(database: Database, bundle: dict[str, list[dict[str, Any]]]) -> None:
    """Load a bundle as ``normata load`` does."""
    world.load(database, bundle)
