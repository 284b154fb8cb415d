"""Unique keys: no two rows may share one, neither in the input nor with a stored row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Select, UniqueConstraint, bindparam, null, select

from normata.core.changes.rows import PendingRow
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import batches
from normata.core.schema.table import Table, sql_table

Key = tuple[str, ...]


def check_unique(unit: UnitOfWork, table: type[Table], rows: Sequence[PendingRow], *, hands_over: bool = True) -> None:
    """Add faults for all rows that would violate a unique key; the database would report only the first of them.

    With ``hands_over``, a row may take a key that another one of them gives up.
    """
    ids = {row.id for row in rows}
    for columns, live_only in unique_keys(table):
        holders: dict[tuple[Any, ...], PendingRow] = {}
        # Who has a key already has it, whatever others want.
        for row in rows if hands_over else sorted(rows, key=lambda row: not _keeps(row, columns)):
            if live_only and row.final[_ended(table)] is not None:
                continue
            if row.final[_own(columns)] is None:
                continue  # null is never a duplicate
            first = holders.setdefault(_key_of(row.final, columns), row)
            if first is not row:
                row.add_fault(_shown(table, columns), f"is taken by {first.source.file}: {first.source.place}")
                if not hands_over and _own(columns) == "slug" and _keeps(first, columns):
                    row.slug_holder = first.id
        # A generated slug was just checked, also against archived rows.
        is_slug = _own(columns) == "slug"
        changed = [key for key, row in holders.items() if row.changed and not (is_slug and row.free_slug)]
        for key, holder in _stored_holders(unit, table, columns, changed, live_only=live_only):
            if holder.id not in (ids if hands_over else {holders[key].id}):
                # The id of the other row is only given to those who can see that row.
                is_seen = unit.may_read(holder.owner)
                by = f" by the stored row {holder.id!r}" if is_seen else ""
                if is_slug and is_seen:
                    holders[key].slug_holder = holder.id
                holders[key].add_fault(_shown(table, columns), f"is taken{by}")


def _keeps(row: PendingRow, columns: Key) -> bool:
    """Whether a stored row has the key that it will have."""
    return row.stored is not None and all(row.stored[name] == row.final[name] for name in columns)


def is_rekeyed(row: PendingRow) -> bool:
    """Whether a stored row changes a value of a unique key, or leaves a key of live rows."""
    stored, final = row.stored, row.final
    return stored is not None and any(
        any(stored[name] != final[name] for name in columns)
        or (live_only and (stored[_ended(row.table)] is None) != (final[_ended(row.table)] is None))
        for columns, live_only in unique_keys(row.table)
    )


@cache
def unique_keys(table: type[Table]) -> tuple[tuple[Key, bool], ...]:
    """The unique keys of a table beside the id: their columns, and whether only live rows count."""
    return tuple(_unique_keys(table))


def _unique_keys(table: type[Table]) -> Iterator[tuple[Key, bool]]:
    sql = sql_table(table)
    for constraint in sql.constraints:
        if isinstance(constraint, UniqueConstraint) and "id" not in constraint.columns:
            yield tuple(constraint.columns.keys()), False
    for index in sql.indexes:
        if index.unique:
            yield tuple(column.name for column in index.columns), True


def _key_of(row: Mapping[str, Any], columns: Key) -> tuple[Any, ...]:
    return tuple(row[name] for name in columns)


def _own(columns: Key) -> str:
    """The distinguishing column of a key: the last one that is not the organization."""
    return next(name for name in reversed(columns) if name != "organization_id")


def _shown(table: type[Table], columns: Key) -> str:
    """The column that a person would change: for a derived column, the one that it is derived from."""
    name, known = _own(columns), sql_table(table).columns
    if not known[name].info.get("derived"):
        return name
    return next(column.name for column in known if name.startswith(column.name + "_"))


def _stored_holders(
    unit: UnitOfWork, table: type[Table], columns: Key, keys: Sequence[tuple[Any, ...]], *, live_only: bool
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The stored rows that have one of these keys, with their keys."""
    own = columns.index(_own(columns))
    values: defaultdict[tuple[Any, ...], list[Any]] = defaultdict(list)  # by the other columns of the key
    for key in keys:
        values[key[:own] + key[own + 1 :]].append(key[own])
    statement = _holders(table, columns, live_only=live_only)
    for rest, those in values.items():
        named = {f"key_{number}": value for number, value in enumerate(rest)}
        for batch in batches(those):
            for row in unit.rows(statement, {**named, "values": batch}):
                yield (*rest[:own], row.own, *rest[own:]), row


@cache
def _holders(table: type[Table], columns: Key, *, live_only: bool) -> Select[Any]:
    sql = sql_table(table)
    owner = sql.c.get(sql.info.get("organization_column", "organization_id"))
    name = _own(columns)
    rest = (column for column in columns if column != name)
    statement = select(sql.c.id, sql.c[name].label("own"), (null() if owner is None else owner).label("owner")).where(
        *(sql.c[column] == bindparam(f"key_{number}") for number, column in enumerate(rest)),
        sql.c[name].in_(bindparam("values", expanding=True)),
    )
    return statement.where(sql.c[_ended(table)].is_(None)) if live_only else statement


def _ended(table: type[Table]) -> str:
    """The column with the time from which a row is not live."""
    return "archived_at" if "archived_at" in sql_table(table).c else "removed_at"
