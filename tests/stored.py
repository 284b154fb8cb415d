"""What is in the database, past the application."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy import Table as SqlTable

from normata.db.database import Database
from normata.db.transaction import Transaction
from normata.events.model import AuditEvent, EventCheckpoint, EventLeaf, UnsealedEvent
from normata.identity.model import AccessToken
from normata.identity.sign_in_model import Session
from normata.schema.table import sql_table
from normata.tables import Table
from tests import world

Rows = list[dict[str, Any]]

SEALING = {str(table.__tablename__) for table in (UnsealedEvent, EventLeaf, EventCheckpoint)}


@cache
def _every(table: SqlTable) -> Select[Any]:
    return select(*table.c).order_by(*table.primary_key.columns)


def everything(database: Database) -> dict[str, Rows]:
    """Every row of every table, but for what the service does beside requests.

    That is to note when a token was last used, and to seal events. Events of commands are left out as well: tests make
    tokens meanwhile.
    """

    def work(transaction: Transaction) -> dict[str, Rows]:
        tables = [table for table in Table.metadata.sorted_tables if table.name not in SEALING]
        found = {table.name: [row._asdict() for row in transaction.rows(_every(table))] for table in tables}
        for token in found[str(AccessToken.__tablename__)]:
            del token["last_used_at"]
        events = str(AuditEvent.__tablename__)
        found[events] = [event for event in found[events] if event["user_id"] is not None]
        return found

    return database.read_now(work)


def rows(database: Database, table: type[Table], **wanted: object) -> Rows:
    """The rows of a table that have these values."""
    columns = sql_table(table).c
    statement = select(*columns).where(*(columns[name] == value for name, value in wanted.items()))
    ordered = statement.order_by(columns.id)
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
