"""What must hold between rows: references lead somewhere that they may, and what is unique is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, UniqueConstraint, select, tuple_

from normata.bundle.arrays import ARRAYS
from normata.bundle.entries import Entry, Groups, good
from normata.database import batches
from normata.frameworks import catalog
from normata.models import Table
from normata.vocabulary import sql_table


class Lookup:
    """Finds rows that others refer to: those of the load itself first, then those of the database."""

    def __init__(self, connection: Connection, groups: Groups, refused: set[tuple[str, str]]) -> None:
        self._connection = connection
        self._refused = refused
        self._tables: dict[str, type[Table]] = {str(table.__tablename__): table for table in ARRAYS.values()}
        self._loaded: dict[str, dict[str, Entry]] = {
            name: {entry.id: entry for entry in groups.get(table, ())} for name, table in self._tables.items()
        }
        self._stored: dict[str, dict[str, RowMapping]] = defaultdict(dict)

    def fetch(self, table: str, ids: Iterable[str]) -> None:
        """Have these rows at hand."""
        loaded, stored = self._loaded[table], self._stored[table]
        missing = sorted({row_id for row_id in ids if row_id not in loaded and row_id not in stored})
        columns = sql_table(self._tables[table]).columns
        wanted = [columns[name] for name in ("id", "organization_id", "framework_id") if name in columns]
        for batch in batches(missing):
            for row in self._connection.execute(select(*wanted).where(columns.id.in_(batch))).mappings():
                stored[row["id"]] = row

    def get(self, table: str, row_id: str) -> RowMapping | dict[str, Any] | None:
        """A row that has been fetched: at least its id and the keys that tie it; null where there is none."""
        entry = self._loaded[table].get(row_id)
        return entry.final if entry else self._stored[table].get(row_id)

    def is_faulty(self, table: str, row_id: str) -> bool:
        """Whether the load has the row, but with faults of its own."""
        entry = self._loaded[table].get(row_id)
        return (table, row_id) in self._refused or (entry is not None and entry.faulty)


def check_references(groups: Groups, lookup: Lookup) -> None:
    """Blame references that lead nowhere, or into another organization.

    What refers to a faulty row cannot be judged, and is left out of what follows without blame.
    """
    for table, group in groups.items():
        for name, target in _references(table):
            named = [entry for entry in good(group) if entry.final[name] is not None]
            lookup.fetch(target, (entry.final[name] for entry in named))
            for entry in named:
                if lookup.is_faulty(target, entry.final[name]):
                    entry.faulty = True
                elif reason := _refusal(entry, target, lookup.get(target, entry.final[name])):
                    entry.blame(name, reason)
        catalog.inherit(table, good(group), lookup)


def _references(table: type[Table]) -> list[tuple[str, str]]:
    return [
        (column.name, "organization" if column.name == "organization_id" else column.info["refers_to"])
        for column in sql_table(table).columns
        if "refers_to" in column.info or (column.name == "organization_id" and not column.info.get("derived"))
    ]


def _refusal(entry: Entry, target: str, found: RowMapping | dict[str, Any] | None) -> str | None:
    words = target.replace("_account", "").replace("_", " ")
    if found is None:
        return f"names no {words} that is stored or loaded"
    if "organization_id" in entry.table.fixed and target != "organization":
        theirs = found.get("organization_id")
        if theirs is not None and theirs != entry.final.get("organization_id"):
            return f"names a {words} of another organization"
    return None


def check_unique(connection: Connection, table: type[Table], group: Sequence[Entry]) -> None:
    """Blame all rows that would break a unique key; the database would name but the first of them."""
    ids = {entry.id for entry in group}
    for columns, live_only in unique_keys(table):
        holders: dict[tuple[Any, ...], Entry] = {}
        for entry in group:
            if live_only and entry.final["archived_at"] is not None:
                continue
            first = holders.setdefault(key_of(entry.final, columns), entry)
            if first is not entry:
                entry.blame(_shown(columns), f"is taken by {first.row.file}: {first.row.place}")
        changed = [key for key, entry in holders.items() if entry.changed]
        for key, row_id in _stored_holders(connection, table, columns, changed, live_only=live_only):
            if row_id not in ids:
                holders[key].blame(_shown(columns), f"is taken by the stored row {row_id!r}")


def key_of(row: Mapping[str, Any], columns: Sequence[str]) -> tuple[Any, ...]:
    """The values of a key."""
    return tuple(row[name] for name in columns)


def unique_keys(table: type[Table]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The unique keys of a table beside the id: their columns, and whether only live rows count."""
    sql = sql_table(table)
    for constraint in sql.constraints:
        if isinstance(constraint, UniqueConstraint) and "id" not in constraint.columns:
            yield tuple(constraint.columns.keys()), False
    for index in sql.indexes:
        if index.unique:
            yield tuple(column.name for column in index.columns), True


def _shown(columns: Sequence[str]) -> str:
    """The column that a person would change: not the organization, and not what is derived of the email address."""
    name = next(name for name in reversed(columns) if name != "organization_id")
    return "email" if name == "email_folded" else name


def _stored_holders(
    connection: Connection,
    table: type[Table],
    columns: Sequence[str],
    keys: Sequence[tuple[Any, ...]],
    *,
    live_only: bool,
) -> Iterator[tuple[tuple[Any, ...], str]]:
    sql = sql_table(table).columns
    key = tuple_(*(sql[name] for name in columns))
    for batch in batches(keys):
        statement = select(sql.id, *(sql[name] for name in columns)).where(key.in_(batch))
        if live_only:
            statement = statement.where(sql.archived_at.is_(None))
        for row_id, *values in connection.execute(statement):
            yield tuple(values), row_id
