"""Erasing the content of a row, such as the bytes of a file. The row with its hashes stays, and so do its events."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import Select, Update, bindparam, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.db.security import Write
from normata.core.schema.table import Table, sql_table
from normata.core.schema.wire import listed_columns


def erase_content(unit: UnitOfWork, table: type[Table], row_id: str) -> Any | None:
    """Note on a row that its content is erased, clear the columns with it, and return the row.

    The columns are those that lists leave out. An event of the row records it. Null if there is no content any more.
    """
    before = unit.row(_find(table), {"row": row_id})
    if before is None:
        return None
    after: Any = unit.row(_erase(table), {"row": row_id, "moment": unit.moment})
    unit.publish(Change("erase", table, after.organization_id, row_id, after._asdict(), before._asdict()))
    return after


def erasing_content_of(table: type[Table]) -> Write:
    """The write of :func:`erase_content`."""
    return update_of(table, *_cleared(table), "erased_at")


def _cleared(table: type[Table]) -> list[str]:
    return [column.name for column in sql_table(table).c if column.info.get("unlisted")]


def _listed(table: type[Table]) -> list[Any]:
    return [sql_table(table).c[column.name] for column in listed_columns(table)]


@cache
def _find(table: type[Table]) -> Select[Any]:
    columns = sql_table(table).c
    with_content = columns.id == bindparam("row"), columns.erased_at.is_(None)
    return select(*_listed(table)).where(*with_content).with_for_update()


@cache
def _erase(table: type[Table]) -> Update:
    sql = sql_table(table)
    cleared: dict[str, Any] = dict.fromkeys(_cleared(table))
    moment = bindparam("moment", type_=sql.c.erased_at.type)
    statement = update(sql).where(sql.c.id == bindparam("row")).values(cleared | {"erased_at": moment})
    return statement.returning(*_listed(table))
