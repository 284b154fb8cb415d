"""From rows to the database: all of them, or none and every reason why.

A load goes through its rows in passes, each of which looks at all of them: read the values, find what is stored, fill
the gaps, check references and uniqueness, write, bring coverage up to date. Faults are gathered up to the first write,
so that one run tells them all. The caller's transaction makes it all or nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from sqlalchemy import Connection, Index, RowMapping, UniqueConstraint, bindparam, insert, select, tuple_, update

from normata.bundle.arrays import ARRAYS
from normata.bundle.filling import Filler
from normata.database import now
from normata.errors import describe
from normata.frameworks import catalog
from normata.frameworks.recompute import affected_organizations, recompute
from normata.models import Table
from normata.records.short_ids import keep_short_ids
from normata.source import Fault, FaultyInput, Row, pointer
from normata.vocabulary import sql_table
from normata.wire import input_model

BATCH = 500  # rows a statement, well below every database's limit of parameters

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Entry:
    """One row on its way into the database.

    ``given`` has the columns that the file states, ``stored`` the row as it is (null for a new one), ``final`` the
    row as it shall be.
    """

    row: Row
    table: type[Table]
    given: dict[str, Any]
    stored: RowMapping | None = None
    final: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(self.given["id"])

    @property
    def changed(self) -> bool:
        return self.stored is None or any(self.stored[name] != value for name, value in self.final.items())

    def fault(self, column: str | None, reason: str) -> Fault:
        return self.row.fault(to_camel(column) if column else None, reason)


@dataclass(slots=True)
class Tally:
    """What a load did to the rows of one array."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0


def load(
    connection: Connection, rows: Sequence[Row], progress: Progress = lambda *_: None, *, sync: bool = False
) -> dict[str, Tally]:
    """Insert or update all ``rows`` by id, and tell by array what was done.

    A field that a row leaves out stays as it is, or is filled in where the row is new. ``progress`` is told the step,
    how many rows are done, and how many there are. With ``sync``, frameworks that are new or changed remember the
    time as that of their last synchronization with their source. Raises FaultyInput; then the caller must roll back.
    """
    faults: list[Fault] = []
    entries = _read_values(rows, faults, progress)
    by_table = _group(entries)
    for table, group in by_table.items():
        _refuse_repeated(group, faults)
        _find_stored(connection, table, group)
    _stop_at(faults)
    _merge(connection, by_table, faults, sync=sync)
    lookup = Lookup(connection, by_table)
    _check_references(by_table, lookup, faults)
    _stop_at(faults)
    catalog.check(connection, by_table, lookup, faults)
    for table, group in by_table.items():
        _check_unique(connection, table, group, faults)
    _stop_at(faults)
    affected = _write(connection, by_table, progress)
    for done, organization_id in enumerate(affected):
        progress("Computing coverage", done, len(affected))
        recompute(connection, organization_id)
    return _tally(by_table)


def _stop_at(faults: list[Fault]) -> None:
    if faults:
        raise FaultyInput(faults)


def _group(entries: Iterable[Entry]) -> dict[type[Table], list[Entry]]:
    """Entries by table, in the order of the arrays: it is the order in which rows may refer to each other at once."""
    groups: dict[type[Table], list[Entry]] = {table: [] for table in ARRAYS.values()}
    for entry in entries:
        groups[entry.table].append(entry)
    return {table: group for table, group in groups.items() if group}


# --- Values


def _read_values(rows: Sequence[Row], faults: list[Fault], progress: Progress) -> list[Entry]:
    entries = []
    for done, row in enumerate(rows):
        if done % 1_000 == 0:
            progress("Checking rows", done, len(rows))
        table = ARRAYS[row.array]
        values = {name: value for name, value in row.values.items() if name not in table.ignored}
        try:
            model = input_model(table).model_validate(values)
        except ValidationError as error:
            faults.extend(_value_fault(row, fault) for fault in error.errors())
        else:
            entries.append(Entry(row, table, {name: _plain(getattr(model, name)) for name in model.model_fields_set}))
    return entries


def _plain(value: Any) -> Any:
    return value.model_dump(by_alias=True) if isinstance(value, BaseModel) else value


def _value_fault(row: Row, fault: Mapping[str, Any]) -> Fault:
    """Pydantic's error as ours. Of a union, such as "an integer or a number", only the field is named."""
    _, message, _ = describe(fault)
    name, *deeper = fault["loc"]
    known = row.fault(str(name), message)
    inner = [step for step in deeper if step not in ("int", "float")]
    return Fault(known.file, known.place + pointer(*inner), known.reason) if inner else known


def _refuse_repeated(group: Sequence[Entry], faults: list[Fault]) -> None:
    seen: dict[str, Entry] = {}
    for entry in group:
        first = seen.setdefault(entry.id, entry)
        if first is not entry:
            faults.append(entry.fault("id", f"is the same as that of {first.row.file}: {first.row.place}"))


# --- What is stored


def _find_stored(connection: Connection, table: type[Table], group: Sequence[Entry]) -> None:
    stored: dict[str, RowMapping] = {}
    columns = sql_table(table).columns
    for batch in batches([entry.id for entry in group]):
        for row in connection.execute(select(*columns).where(columns.id.in_(batch))).mappings():
            stored[row["id"]] = row
    for entry in group:
        entry.stored = stored.get(entry.id)


def _merge(
    connection: Connection, by_table: Mapping[type[Table], Sequence[Entry]], faults: list[Fault], *, sync: bool
) -> None:
    """Work out the final rows: what is stored with what is given on top, or what is given with its gaps filled."""
    filler = Filler(connection, now())
    for table, group in by_table.items():
        filler.reserve(table, [entry.given for entry in group if entry.stored is None])
        for entry in group:
            if entry.stored is None:
                entry.final = filler.fill(table, entry.given)
                faults.extend(_missing(entry))
            else:
                entry.final = {**entry.stored} | entry.given
                faults.extend(_immovable(entry))
                if entry.changed and "updated_at" in entry.final and "updated_at" not in entry.given:
                    entry.final["updated_at"] = filler.moment
            if sync and entry.changed and "last_sync_at" in entry.final:
                entry.final["last_sync_at"] = filler.moment
            if not faults:
                table.derive(entry.final)


def _missing(entry: Entry) -> Iterator[Fault]:
    for column in sql_table(entry.table).columns:
        if not (column.nullable or column.info.get("derived")) and entry.final.get(column.name) is None:
            yield entry.fault(column.name, "is required")


def _immovable(entry: Entry) -> Iterator[Fault]:
    for name in entry.table.fixed:
        if entry.stored is not None and entry.final.get(name) != entry.stored.get(name):
            yield entry.fault(name, f"cannot be changed: the stored row has {entry.stored[name]!r}")


# --- References


class Lookup:
    """Finds rows that others refer to: those of the load itself first, then those of the database."""

    def __init__(self, connection: Connection, by_table: Mapping[type[Table], Sequence[Entry]]) -> None:
        self._connection = connection
        self._tables: dict[str, type[Table]] = {str(table.__tablename__): table for table in ARRAYS.values()}
        self._loaded = {
            str(table.__tablename__): {entry.id: entry.final for entry in group} for table, group in by_table.items()
        }
        self._stored: dict[str, dict[str, RowMapping]] = defaultdict(dict)

    def fetch(self, table: str, ids: Iterable[str]) -> None:
        """Have these rows at hand."""
        loaded, stored = self._loaded.get(table, {}), self._stored[table]
        missing = sorted({row_id for row_id in ids if row_id not in loaded and row_id not in stored})
        columns = sql_table(self._tables[table]).columns
        wanted = [columns[name] for name in ("id", "organization_id", "framework_id") if name in columns]
        for batch in batches(missing):
            for row in self._connection.execute(select(*wanted).where(columns.id.in_(batch))).mappings():
                stored[row["id"]] = row

    def get(self, table: str, row_id: str) -> RowMapping | dict[str, Any] | None:
        """A row that has been fetched: at least its id and the keys that tie it; null where there is none."""
        return self._loaded.get(table, {}).get(row_id) or self._stored[table].get(row_id)


def _check_references(by_table: Mapping[type[Table], Sequence[Entry]], lookup: Lookup, faults: list[Fault]) -> None:
    for table, group in by_table.items():
        for name, target in _references(table):
            named = [entry for entry in group if entry.final[name] is not None]
            lookup.fetch(target, (entry.final[name] for entry in named))
            for entry in named:
                reason = _bad_reference(entry, target, lookup.get(target, entry.final[name]))
                if reason:
                    faults.append(entry.fault(name, reason))
        if not faults:
            catalog.inherit(table, group, lookup)


def _references(table: type[Table]) -> list[tuple[str, str]]:
    return [
        (column.name, "organization" if column.name == "organization_id" else column.info["refers_to"])
        for column in sql_table(table).columns
        if "refers_to" in column.info or (column.name == "organization_id" and not column.info.get("derived"))
    ]


def _bad_reference(entry: Entry, target: str, found: RowMapping | dict[str, Any] | None) -> str | None:
    words = target.replace("_account", "").replace("_", " ")
    if found is None:
        return f"names no {words} that is stored or loaded"
    if "organization_id" in entry.table.fixed and target != "organization":
        theirs = found.get("organization_id")
        if theirs is not None and theirs != entry.final.get("organization_id"):
            return f"names a {words} of another organization"
    return None


# --- Uniqueness


def _check_unique(connection: Connection, table: type[Table], group: Sequence[Entry], faults: list[Fault]) -> None:
    """Find all rows that would break a unique constraint; the database would name but the first of them."""
    ids = {entry.id for entry in group}
    for columns, live_only in _unique_keys(table):
        holders: dict[tuple[Any, ...], Entry] = {}
        for entry in group:
            if live_only and entry.final["archived_at"] is not None:
                continue
            key = tuple(entry.final[name] for name in columns)
            first = holders.setdefault(key, entry)
            if first is not entry:
                reason = f"is taken by {first.row.file}: {first.row.place}"
                faults.append(entry.fault(_shown(columns), reason))
        changed = [key for key, entry in holders.items() if entry.changed]
        for key, row_id in _stored_holders(connection, table, columns, live_only, changed):
            if row_id not in ids:
                faults.append(holders[key].fault(_shown(columns), f"is taken by the stored row {row_id!r}"))


def _shown(columns: Sequence[str]) -> str:
    """The column that a person would change: the last, such as the slug of (organization, slug)."""
    return "email" if columns[-1] == "email_folded" else columns[-1]


def _unique_keys(table: type[Table]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The unique keys beside the id: their columns, and whether only live rows count."""
    sql = sql_table(table)
    for constraint in sql.constraints:
        if isinstance(constraint, UniqueConstraint) and "id" not in constraint.columns:
            yield tuple(constraint.columns.keys()), False
    for index in sql.indexes:
        if index.unique:
            yield _index_columns(index), True


def _index_columns(index: Index) -> tuple[str, ...]:
    return tuple(column.name for column in index.columns)


def _stored_holders(
    connection: Connection,
    table: type[Table],
    columns: Sequence[str],
    live_only: bool,
    keys: Sequence[tuple[Any, ...]],
) -> Iterator[tuple[tuple[Any, ...], str]]:
    sql = sql_table(table).columns
    for batch in batches(keys):
        statement = select(sql.id, *(sql[name] for name in columns)).where(
            tuple_(*(sql[name] for name in columns)).in_(batch)
        )
        if live_only:
            statement = statement.where(sql.archived_at.is_(None))
        for row_id, *key in connection.execute(statement):
            yield tuple(key), row_id


# --- Writing


def _write(connection: Connection, by_table: Mapping[type[Table], Sequence[Entry]], progress: Progress) -> list[str]:
    """Write what has changed and return the organizations whose coverage may have changed by that."""
    total = sum(map(len, by_table.values()))
    done = 0
    for table, group in by_table.items():
        new = [entry.final for entry in group if entry.stored is None]
        for batch in batches(new):
            progress("Writing rows", done, total)
            connection.execute(insert(table), batch)
            done += len(batch)
        changed = [entry.final for entry in group if entry.stored is not None and entry.changed]
        for batch in batches(changed):
            progress("Writing rows", done, total)
            connection.execute(_update(table), [_bound(final) for final in batch])
            done += len(batch)
        keep_short_ids(connection, table, [*new, *changed])
    return affected_organizations(
        connection,
        {
            str(table.__tablename__): [entry.final for entry in group if entry.changed]
            for table, group in by_table.items()
        },
    )


def _update(table: type[Table]) -> Any:
    columns = sql_table(table).columns
    values = {
        column.name: bindparam(f"new_{column.name}", type_=column.type) for column in columns if not column.primary_key
    }
    return update(sql_table(table)).where(columns.id == bindparam("key_id")).values(values)


def _bound(final: Mapping[str, Any]) -> dict[str, Any]:
    return {"key_id": final["id"]} | {f"new_{name}": value for name, value in final.items() if name != "id"}


def _tally(by_table: Mapping[type[Table], Sequence[Entry]]) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    for table, group in by_table.items():
        tally = tallies[table.array] = Tally()
        for entry in group:
            if entry.stored is None:
                tally.inserted += 1
            elif entry.changed:
                tally.updated += 1
            else:
                tally.unchanged += 1
    return tallies


def batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """``items`` in runs that fit one statement."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
