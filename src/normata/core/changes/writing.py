"""Writes valid pending rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Column, Delete, Insert, Update, bindparam, delete, insert, update

from normata.core.changes.merging import whole_rows
from normata.core.changes.rows import PendingRow, long_columns, read_row
from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.changes.uniqueness import is_rekeyed
from normata.core.changes.unit_of_work import UnitOfWork, update_of
from normata.core.changes.validity import NO_OWN_RULES, OwnRules, make_valid
from normata.core.db.security import Write
from normata.core.db.transaction import batches
from normata.core.schema.table import Table, sql_table
from normata.core.schema.wire import columns
from normata.errors import DomainError, SlugTaken

_UPDATES = 500  # of different columns; requests choose them, and more must not fill the memory


def write(
    unit: UnitOfWork,
    table: type[Table],
    rows: Sequence[PendingRow],
    progress: Callable[[int], None] = lambda _: None,
    *,
    hands_over: bool = True,
) -> list[PendingRow]:
    """Insert the new rows, update the changed ones, and return both. The caller publishes the changes.

    ``progress`` is called before each batch with the number of its rows. With ``hands_over``, a row may take a unique
    key that another one gives up; that takes the right to delete rows.
    """
    new, changed = new_and_changed(rows)
    # A row that gives up a unique key makes room for the row that takes it; two may even swap keys. References are
    # checked at the end of the transaction, when it is back. A single row need not make room.
    rekeyed = [row for row in changed if is_rekeyed(row)] if hands_over and len(new) + len(changed) > 1 else []
    leaving = {row.id for row in rekeyed}
    for ids in batches(sorted(leaving)):
        unit.rows(_delete(table), {"ids": ids})
    for batch in batches(rekeyed + new):
        progress(len(batch))
        unit.execute_many(_insert(table), whole_rows(unit, table, batch))
    for batch in batches([row for row in changed if row.id not in leaving]):
        progress(len(batch))
        names = _differing(table, batch)
        values = [_new(names, whole) for whole in whole_rows(unit, table, batch)]
        unit.execute_many(_update_of(table, names), values)
    return new + changed


def new_and_changed(rows: Sequence[PendingRow]) -> tuple[list[PendingRow], list[PendingRow]]:
    """The rows that :func:`write` would insert, and those that it would update."""
    return (
        [row for row in rows if row.stored is None],
        [row for row in rows if row.stored is not None and row.changed],
    )


def write_one(unit: UnitOfWork, table: type[Table], row: PendingRow) -> Any:
    """Insert a new row, or update a changed one, and return it in wire form and as stored (3.0 is stored as 3)."""
    [whole] = whole_rows(unit, table, [row])
    if row.stored is None:
        return unit.row(_insert_returning(table), whole)
    names = _differing(table, [row])
    return unit.row(_update_returning(table, names), _new(names, whole))


def _new(names: Sequence[str], whole: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an update of these columns."""
    return {f"new_{name}": whole[name] for name in ("id", *names)}


@cache
def changeable(table: type[Table]) -> tuple[Column[Any], ...]:
    """The columns of a stored row that may change: all except the id and fixed ones.

    If these were set, even to the same value, SQLite would search all rows that refer to them.
    """
    return tuple(column for column in sql_table(table).c if column.name not in ("id", *table.fixed))


def _differing(table: type[Table], rows: Sequence[PendingRow]) -> tuple[str, ...]:
    """The columns in which at least one of these changed rows differs from what is stored.

    SQLite writes each index of a column that is set, whatever the value, and looks for the row of each reference: of
    20,000 controls whose names change, that is most of the time of an import, and of a change of one status a third of
    what SQLite does.
    """
    found: set[str] = set()
    for row in rows:
        before, after = dict((row.before or {}).items()), dict(row.after.items())
        long = long_columns(table) if row.long is not None else {}
        found.update(
            # In JSON 1, 1.0 and true differ, but Python considers them equal.
            name
            for name, value in after.items()
            if name not in before or value != before[name] or long.get(name)
        )
    return tuple(column.name for column in changeable(table) if column.name in found)


@cache
def _delete(table: type[Table]) -> Delete:
    sql = sql_table(table)
    return delete(sql).where(sql.c.id.in_(bindparam("ids", expanding=True)))


@cache
def _insert(table: type[Table]) -> Insert:
    sql = sql_table(table)
    return insert(sql).values({column.name: bindparam(column.name, type_=column.type) for column in sql.c})


@cache
def _insert_returning(table: type[Table]) -> Any:
    return _insert(table).returning(*columns(table))


@lru_cache(maxsize=_UPDATES)
def _update_returning(table: type[Table], names: tuple[str, ...]) -> Any:
    return _update_of(table, names).returning(*columns(table))


@lru_cache(maxsize=_UPDATES)
def _update_of(table: type[Table], names: tuple[str, ...]) -> Update:
    """Sets these columns of a row."""
    sql = sql_table(table)
    # A parameter must not have the name of a column that the UPDATE sets.
    values: dict[str, Any] = {name: bindparam(f"new_{name}", type_=sql.c[name].type) for name in names}
    return update(sql).where(sql.c.id == bindparam("new_id")).values(values)


BODY = "body"  # where a fault is: in the body of the request


def valid_rows(
    unit: UnitOfWork,
    table: type[Table],
    rows: Sequence[Row],
    faults: Sequence[Fault] = (),
    *,
    own_rules: OwnRules = NO_OWN_RULES,
    are_new: bool = False,
) -> list[PendingRow]:
    """The pending rows of a request. ``faults`` has the faults found before.

    Rows that ``are_new`` have generated ids, so that none of them is stored yet. Raises SlugTaken if the only fault is
    that a stored row has the slug of one, why a rule refuses one as a whole, and FaultyInput with every fault.
    """
    found = [*faults, *_blank(table, rows)]
    pending = [one for row in rows if (one := read_row(table, row, found)) is not None]
    # A bundle may contain history, so it may name removed members; other input may not.
    make_valid(unit, {table: pending}, own_rules=own_rules, takes_removed=False, are_new=are_new)
    refusal = next((row.refusal for row in pending if row.refusal is not None), None)
    if refusal is not None:
        raise refusal
    taken_by = next((row.slug_holder for row in pending if row.slug_holder is not None), None)
    if len(found) == 1 and taken_by is not None:
        raise SlugTaken(taken_by)
    if found:
        raise FaultyInput(found)
    return pending


class JudgedRow(NamedTuple):
    """A row of a request, pending unless it cannot be read, and its faults."""

    pending: PendingRow | None
    faults: list[Fault]

    @property
    def refusal(self) -> DomainError | None:
        """Why it is refused: what :func:`valid_rows` would raise for it alone; null if it is valid."""
        row = self.pending
        if row is not None and row.refusal is not None:
            return row.refusal
        if row is not None and row.slug_holder is not None and len(self.faults) == 1:
            return SlugTaken(row.slug_holder)
        return FaultyInput(self.faults) if self.faults else None

    @property
    def depends(self) -> bool:
        """Whether it may be valid, but refers to a row of the request that is not."""
        return self.pending is not None and self.pending.faulty and self.refusal is None


def judged_rows(
    unit: UnitOfWork, table: type[Table], rows: Sequence[tuple[Row, Sequence[Fault]]], *, own_rules: OwnRules
) -> list[JudgedRow]:
    """The rows of a request, each with the faults found before, judged by the rules of :func:`valid_rows`.

    No row may take a unique key that another one gives up.
    """
    judged = []
    for row, faults in rows:
        found = [*faults, *_blank(table, [row])]
        judged.append(JudgedRow(read_row(table, row, found), found))
    pending_rows = [one.pending for one in judged if one.pending is not None]
    make_valid(unit, {table: pending_rows}, own_rules=own_rules, takes_removed=False, hands_over=False)
    return judged


def _blank(table: type[Table], rows: Sequence[Row]) -> list[Fault]:
    """Add faults for names that cannot be seen. Only requests are checked, not loads."""
    return [
        row.fault(name, "must not be blank")
        for row in rows
        for name in dict.fromkeys(("identifier", table.title_column()))
        if isinstance(value := row.values.get(name), str) and not value.strip()
    ]


def every_column_of(table: type[Table]) -> Write:
    """The right to change all columns of a table, except those that never change."""
    return update_of(table, *(column.name for column in changeable(table)))
