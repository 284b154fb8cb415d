"""Final rows: stored rows merged with the input, or new rows with their defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, select

from normata.core.changes.defaults import with_defaults
from normata.core.changes.rows import Buffer, PendingRow, long_columns, without_long
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import Table, sql_table


def find_stored(unit: UnitOfWork, table: type[Table], rows: Sequence[PendingRow]) -> None:
    """Attach the stored rows; add a fault if a row with the same id exists that the actor may not see.

    A database with row-level security does not show such a row here: there the insert breaks the key.
    """
    column = sql_table(table).info.get("organization_column", "organization_id")
    for batch in batches(rows):
        stored = _stored(unit, table, batch, long=False)
        for row in batch:
            found = stored.get(row.id)
            if found is None:
                continue
            if found.get(column) is None or unit.may_read(found[column]):
                row.stored = without_long(table, found)
            else:
                row.add_fault("id", "is taken")


def merge(
    unit: UnitOfWork, table: type[Table], rows: Sequence[PendingRow], buffer: Buffer, stamped: Sequence[str] = ()
) -> None:
    """Compute the final rows, and add faults for missing values and changes of fixed columns.

    In new and changed rows, the columns ``stamped`` get the time of the change.
    """
    for batch in batches(rows):
        stored_long = _stored_long(unit, table, batch)
        for row in batch:
            _merge_row(row, stored_long.get(row.id, {}), unit.moment, buffer, stamped)


def whole_rows(transaction: Transaction, table: type[Table], rows: Sequence[PendingRow]) -> list[dict[str, Any]]:
    """The final rows with their long columns."""
    unchanged = _stored_long(transaction, table, [row for row in rows if row.long is None])
    return [
        {**(unchanged.get(row.id, {}) if row.long is None else dict(row.long.items())), **row.final} for row in rows
    ]


def _merge_row(
    row: PendingRow, stored_long: Mapping[str, Any], moment: str, buffer: Buffer, stamped: Sequence[str]
) -> None:
    table = row.table
    supplied = row.supplied if row.long is None else {**row.supplied, **dict(row.long.items())}
    stored = None if row.stored is None else {**row.stored, **stored_long}
    if stored is None:
        final = with_defaults(table, supplied, moment)
        _fault_missing(row, final)
    else:
        final = {**stored, **supplied}
        _fault_moved(row, stored, final)
    if stored is None or not _same(table, stored, final):
        if stored is not None and "updated_at" in final and "updated_at" not in supplied:
            final["updated_at"] = moment
        final.update({name: moment for name in stamped if name in final})
    if not row.faulty:
        table.derive(final)
    long = long_columns(table)
    changed = stored is None or not _same(table, stored, final)
    row.long = buffer({name: final[name] for name in long}) if long and changed else None
    row.stored_long = buffer({name: stored[name] for name in long}) if long and changed and stored else None
    row.final, row.supplied = without_long(table, final), {}


def _same(table: type[Table], one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one == other and all(
        # In JSON 1, 1.0 and true differ, but Python considers them equal.
        json.dumps(one[name]) == json.dumps(other[name])
        for name, is_document in long_columns(table).items()
        if is_document
    )


def _fault_missing(row: PendingRow, final: Mapping[str, Any]) -> None:
    for name in (*_required(row.table), *row.table.needs(final)):
        if final[name] is None:
            row.add_fault(name, "is required")


@cache
def _required(table: type[Table]) -> list[str]:
    return [
        column.name
        for column in sql_table(table).columns
        if not (column.nullable or column.info.get("derived") or column.name in table.generated)
    ]


def _fault_moved(row: PendingRow, stored: Mapping[str, Any], final: Mapping[str, Any]) -> None:
    for name in row.table.fixed:
        if final.get(name) != stored.get(name):
            row.add_fault(name, f"cannot be changed: the stored row has {stored[name]!r}")


def _stored_long(transaction: Transaction, table: type[Table], rows: Sequence[PendingRow]) -> dict[str, dict[str, Any]]:
    """The long columns of the rows that are stored, by id; nothing if the table has none."""
    stored = [row for row in rows if row.stored is not None]
    return _stored(transaction, table, stored, long=True) if stored and long_columns(table) else {}


def _stored(
    transaction: Transaction, table: type[Table], rows: Sequence[PendingRow], *, long: bool
) -> dict[str, dict[str, Any]]:
    """The long columns of these rows, or all others, by id."""
    found = transaction.rows(_select(table, long=long), {"ids": [row.id for row in rows]})
    return {row_id: dict(zip(_names(table, long=long), values, strict=True)) for row_id, *values in found}


@cache
def _names(table: type[Table], *, long: bool) -> tuple[str, ...]:
    return tuple(column.name for column in sql_table(table).columns if (column.name in long_columns(table)) == long)


@cache
def _select(table: type[Table], *, long: bool) -> Select[Any]:
    columns = sql_table(table).columns
    return select(columns.id.label("key"), *(columns[name] for name in _names(table, long=long))).where(
        columns.id.in_(bindparam("ids", expanding=True))
    )
