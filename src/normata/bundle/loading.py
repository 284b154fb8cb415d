"""From rows to the database: all of them, or none and every reason why.

A load goes through its rows in passes, each of which looks at all of them: read the values, find what is stored, fill
the gaps, check references and uniqueness, write, bring coverage up to date. Faults are gathered up to the first write,
so that one run tells them all. The caller's transaction makes it all or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from normata.bundle.checking import Lookup, check_references, check_unique, unique_keys
from normata.bundle.entries import Entry, Groups, Progress, good, long_columns, read_values, without_long
from normata.bundle.filling import Filler
from normata.bundle.shelf import Shelf
from normata.database import batches, now, write_alone
from normata.frameworks import catalog
from normata.frameworks.recompute import affected_organizations, recompute
from normata.frameworks.revision import advance_after
from normata.models import Table
from normata.records.short_ids import keep_short_ids
from normata.source import Fault, FaultyInput, Row
from normata.vocabulary import LARGEST_NUMBER, sql_table

__all__ = ["Progress", "Tally", "load"]


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
    write_alone(connection)
    faults: list[Fault] = []
    shelf = Shelf()
    groups, refused = read_values(rows, shelf, faults, progress)
    for table, group in groups.items():
        _blame_repeated(group)
        _find_stored(connection, table, group)
    _merge(connection, groups, shelf, sync=sync)
    lookup = Lookup(connection, groups, refused)
    check_references(groups, lookup)
    catalog.check(connection, {table: good(group) for table, group in groups.items()}, lookup)
    for table, group in groups.items():
        check_unique(connection, table, good(group))
    if faults:
        raise FaultyInput(faults)
    tallies = _tally(groups)
    affected = _write(connection, groups, progress)
    for done, organization_id in enumerate(affected):
        progress("Computing coverage", done, len(affected))
        recompute(connection, organization_id)
    return tallies


def _blame_repeated(group: Sequence[Entry]) -> None:
    seen: dict[str, Entry] = {}
    for entry in group:
        first = seen.setdefault(entry.id, entry)
        if first is not entry:
            entry.blame("id", f"is the same as that of {first.row.file}: {first.row.place}")


def _find_stored(connection: Connection, table: type[Table], group: Sequence[Entry]) -> None:
    names = [column.name for column in sql_table(table).columns if column.name not in long_columns(table)]
    for batch in batches(group):
        stored = _stored(connection, table, batch, names)
        for entry in batch:
            if entry.id in stored:
                entry.stored = without_long(table, stored[entry.id])


def _stored(
    connection: Connection, table: type[Table], entries: Sequence[Entry], names: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """These columns of the entries that are stored, by id."""
    columns = sql_table(table).columns
    statement = select(columns.id, *(columns[name] for name in names))
    rows = connection.execute(statement.where(columns.id.in_([entry.id for entry in entries])))
    return {row_id: dict(zip(names, values, strict=True)) for row_id, *values in rows}


def _stored_texts(connection: Connection, table: type[Table], entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """The long columns of the entries that are stored, by id; nothing where the table has none."""
    long = long_columns(table)
    return _stored(connection, table, [entry for entry in entries if entry.stored is not None], long) if long else {}


# --- Final rows


def _merge(connection: Connection, groups: Groups, shelf: Shelf, *, sync: bool) -> None:
    """Work out the final rows: what is stored with what is given on top, or what is given with its gaps filled."""
    filler = Filler(connection, now())
    for table, group in groups.items():
        filler.reserve(table, ({**(entry.stored or {}), **entry.given} for entry in group))
        for batch in batches(good(group)):
            texts = _stored_texts(connection, table, batch)
            for entry in batch:
                _merge_row(entry, texts.get(entry.id, {}), filler, shelf, sync=sync)


def _merge_row(entry: Entry, stored_texts: Mapping[str, Any], filler: Filler, shelf: Shelf, *, sync: bool) -> None:
    table = entry.table
    given = entry.given if entry.texts is None else {**entry.given, **entry.texts.load()}
    stored = None if entry.stored is None else {**entry.stored, **stored_texts}
    if stored is None:
        final = filler.fill(table, given)
        _blame_missing(entry, final)
    else:
        final = {**stored, **given}
        _blame_moved(entry, stored, final)
        if "updated_at" in final and "updated_at" not in given and not _same(table, stored, final):
            final["updated_at"] = filler.moment
    if sync and "last_sync_at" in final and not (stored and _same(table, stored, final)):
        final["last_sync_at"] = filler.moment
    if not entry.faulty:
        table.derive(final)
    changed = not (stored and _same(table, stored, final))
    long = long_columns(table)
    entry.texts = shelf.put({name: final[name] for name in long}) if long and changed else None
    entry.final, entry.given = without_long(table, final), {}


def _same(table: type[Table], one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one == other and all(
        # In a document 1, 1.0 and true differ, though not to Python.
        json.dumps(one[name]) == json.dumps(other[name])
        for name, is_document in long_columns(table).items()
        if is_document
    )


def _blame_missing(entry: Entry, final: Mapping[str, Any]) -> None:
    for name in _required(entry.table):
        if final[name] is None:
            entry.blame(name, "is required")
    for name in ("short_id", "order"):
        if (final.get(name) or 0) > LARGEST_NUMBER:
            entry.blame(name, f"is used up: the organization has had number {LARGEST_NUMBER}")


@cache
def _required(table: type[Table]) -> list[str]:
    return [
        column.name
        for column in sql_table(table).columns
        if not (column.nullable or column.info.get("derived") or column.name in table.filled)
    ]


def _blame_moved(entry: Entry, stored: Mapping[str, Any], final: Mapping[str, Any]) -> None:
    for name in entry.table.fixed:
        if final.get(name) != stored.get(name):
            entry.blame(name, f"cannot be changed: the stored row has {stored[name]!r}")


# --- Writing


def _write(connection: Connection, groups: Groups, progress: Progress) -> list[str]:
    """Write what has changed and return the organizations whose coverage may have changed by that."""
    total = sum(map(len, groups.values()))
    done = 0
    before: dict[str, list[Mapping[str, Any]]] = {}  # by table, and without long columns
    after: dict[str, list[Mapping[str, Any]]] = {}
    for table, group in groups.items():
        columns = sql_table(table).columns
        new = [entry for entry in group if entry.stored is None]
        changed = [entry for entry in group if entry.stored is not None and entry.changed]
        rekeyed = [entry for entry in changed if _is_rekeyed(entry)]
        leaving = {entry.id for entry in rekeyed}
        # A row that leaves a unique key makes room for the row that takes it: two may even swap theirs. References
        # are checked at the end of the transaction, when it is back.
        for batch in batches(sorted(leaving)):
            connection.execute(delete(sql_table(table)).where(columns.id.in_(batch)))
        for statement, key, entries in (
            (insert(sql_table(table)), "id", rekeyed + new),
            (
                update(sql_table(table)).where(columns.id == bindparam("key")),
                "key",
                [entry for entry in changed if entry.id not in leaving],
            ),
        ):
            for batch in batches(entries):
                progress("Writing rows", done, total)
                rows = _whole(connection, table, batch)
                connection.execute(statement, [{key: row.pop("id"), **row} for row in rows])
                done += len(batch)
        name = str(table.__tablename__)
        before[name] = [entry.stored for entry in changed if entry.stored is not None]
        after[name] = [entry.final for entry in new + changed]
        keep_short_ids(connection, table, after[name])
    advance_after(connection, before, after)
    catalog.count_controls(connection, {row["framework_id"] for row in after.get("control", ())})
    return affected_organizations(connection, before, after)


def _whole(connection: Connection, table: type[Table], entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The final rows with their long columns."""
    stored = _stored_texts(connection, table, [entry for entry in entries if entry.texts is None])
    return [
        {**(stored.get(entry.id, {}) if entry.texts is None else entry.texts.load()), **entry.final}
        for entry in entries
    ]


def _is_rekeyed(entry: Entry) -> bool:
    """Whether the row leaves a value of a unique key, or a key of live rows altogether."""
    stored, final = entry.stored, entry.final
    return stored is not None and any(
        any(stored[name] != final[name] for name in columns)
        or (live_only and (stored["archived_at"] is None) != (final["archived_at"] is None))
        for columns, live_only in unique_keys(entry.table)
    )


def _tally(groups: Groups) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    for table, group in groups.items():
        tally = tallies[table.array] = Tally()
        for entry in group:
            if entry.stored is None:
                tally.inserted += 1
            elif entry.changed:
                tally.updated += 1
            else:
                tally.unchanged += 1
    return tallies
