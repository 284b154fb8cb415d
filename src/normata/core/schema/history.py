"""History tables: the rows of a table, each with the time in which it held (SQL:2011 has system-versioned tables).

A row held from ``valid_from`` until before ``valid_to``. Triggers write them in the transaction of the change, whatever
makes it; the service itself may only read them. There are two kinds:

- of a table whose rows change daily, the history has the current rows as well, until ``FOREVER``. So what held at a
  moment is found in one table by one condition, at the cost of storing current rows twice.
- of a catalog, which is large and rarely changes, the history has only rows that have changed or are gone. A row of
  the catalog that is not in it has always been as it is. One that ``was_absent`` did not exist in its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_type_hints

from sqlalchemy import Boolean, Column, Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import Document, timestamp
from normata.core.schema.fields import Timestamp
from normata.core.schema.history_triggers import ChangedRows, EveryRow, add_triggers
from normata.core.schema.table import CODED, Table, sql_table


def history_of_every_row(table: type[Table], *key: str, indexes: Sequence[Sequence[str]] = ()) -> type[Table]:
    """The history of a table with its current rows; the columns ``key`` tell which row is which."""
    documents = tuple(column.name for column in sql_table(table).c if isinstance(column.type, Document))
    add_triggers(sql_table(table), EveryRow(str(table.__tablename__), _names(table), key, documents))
    return _history(table, key, {}, indexes)


def history_of_changed_rows(table: type[Table], *structure: str, known_if: str = "") -> type[Table]:
    """The history of a catalog: its rows, by ``id``, before a column of ``structure`` changed or they were deleted.

    A new row is noted only where somebody may have seen the catalog without it. ``known_if`` is that condition in SQL,
    with ``{row}`` for the new row and ``{schema}`` for the prefix of tables; empty for never.
    """
    add_triggers(sql_table(table), ChangedRows(str(table.__tablename__), _names(table), structure, known_if))
    columns = {"was_absent": mapped_column(Boolean, nullable=False)}
    return _history(table, ("id",), columns, [("valid_to",)])


def _names(table: type[Table]) -> tuple[str, ...]:
    return tuple(column.name for column in sql_table(table).c)


def _info(column: Column[Any]) -> dict[str, Any]:
    """What is declared of a column. One that refers to a row has an id still, but what it named may be gone."""
    info = {name: value for name, value in column.info.items() if name not in ("refers_to", "default")}
    is_id = column.primary_key or column.foreign_keys or "refers_to" in column.info or column.name == "organization_id"
    return info | (CODED if is_id else {})


def _history(
    table: type[Table], key: Sequence[str], more: dict[str, Any], indexes: Sequence[Sequence[str]]
) -> type[Table]:
    """A table with the columns of another one, without its constraints: what a row referred to may be gone."""
    columns = {
        column.name: mapped_column(
            column.type,
            primary_key=column.name in key,
            # Of a row that was absent, only its ids are noted.
            nullable=bool(column.nullable) or (bool(more) and column.name not in key),
            info=_info(column),
            sort_order=int("added" in column.info),
        )
        for column in sql_table(table).c
    }
    hints = get_type_hints(table, include_extras=True)
    members: dict[str, Any] = {
        "__annotations__": {name: hints[name] for name in columns}
        | dict.fromkeys(more, Mapped[bool])
        | {"valid_from": Mapped[Timestamp], "valid_to": Mapped[Timestamp]},
        "__doc__": f"The history of {table.__name__}.",
        "__module__": __name__,
        "__tablename__": f"{table.__tablename__}_history",
        "__table_args__": tuple(Index(None, *names) for names in indexes),
        "published": False,
        "fixed": (),
        "derive": classmethod(lambda _, row: table.derive(row)),
        **columns,
        **more,
        "valid_from": mapped_column(timestamp(), primary_key=True),
        "valid_to": mapped_column(timestamp(), nullable=False),
    }
    return type(f"{table.__name__}History", (Table,), members)
