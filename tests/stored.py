"""What is in the database, past the application."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from normata.bundle import loading
from normata.database import Database
from normata.identity.model import AccessToken
from normata.models import Table
from tests import world

Rows = list[dict[str, Any]]


def everything(database: Database) -> dict[str, Rows]:
    """Every row of every table; only when a token was last used is left out, which any request may bring up."""

    # Plain SQL: there are many tables, and nothing is to be converted.
    def work(connection: Connection) -> dict[str, Rows]:
        found = {}
        for table in Table.metadata.sorted_tables:
            key = ", ".join(column.name for column in table.primary_key.columns)
            cursor = connection.exec_driver_sql(f"SELECT * FROM {table.name} ORDER BY {key}")
            names = list(cursor.keys())
            found[table.name] = [dict(zip(names, row, strict=True)) for row in cursor]
        for token in found[AccessToken.__tablename__]:
            del token["last_used_at"]
        return found

    return database.read_now(work)


def rows(database: Database, table: type[Table], **wanted: object) -> Rows:
    """The rows of a table that have these values."""
    columns = table.__table__.columns

    def work(connection: Connection) -> Rows:
        statement = select(*columns).where(*(columns[name] == value for name, value in wanted.items()))
        return [dict(row) for row in connection.execute(statement.order_by(columns.id)).mappings()]

    return database.read_now(work)


def row(database: Database, table: type[Table], row_id: str) -> dict[str, Any]:
    """The one row with this id."""
    (found,) = rows(database, table, id=row_id)
    return found


def load(database: Database, bundle: dict[str, list[dict[str, Any]]]) -> None:
    """Load a bundle as ``normata load`` does."""
    database.write_now(lambda connection: loading.load(connection, world.rows(bundle)))
