"""From rows to the database: all of them, or none and every reason why.

A load goes through its rows in passes, each of which looks at all of them: read the values, find what is stored, fill
the gaps, check references and uniqueness, write, bring coverage up to date. Faults are gathered up to the first write,
so that one run tells them all. The caller's transaction makes it all or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, insert, select, update

from normata.bundle.checking import Lookup, check_references, check_unique, unique_keys
from normata.bundle.entries import Entry, Groups, Progress, good, read_values
from normata.bundle.filling import Filler
from normata.database import batches, now
from normata.frameworks import catalog
from normata.frameworks.recompute import affected_organizations, recompute
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
    faults: list[Fault] = []
    groups, refused = read_values(rows, faults, progress)
    for table, group in groups.items():
        _blame_repeated(group)
        _find_stored(connection, table, group)
    _merge(connection, groups, sync=sync)
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
    stored: dict[str, RowMapping] = {}
    columns = sql_table(table).columns
    for batch in batches([entry.id for entry in group]):
        for row in connection.execute(select(*columns).where(columns.id.in_(batch))).mappings():
            stored[row["id"]] = row
    for entry in group:
        entry.stored = stored.get(entry.id)


# --- Final rows


def _merge(connection: Connection, groups: Groups, *, sync: bool) -> None:
    """Work out the final rows: what is stored with what is given on top, or what is given with its gaps filled."""
    filler = Filler(connection, now())
    for table, group in groups.items():
        filler.reserve(table, [{**(entry.stored or {}), **entry.given} for entry in group])
        for entry in good(group):
            if entry.stored is None:
                entry.final = filler.fill(table, entry.given)
                _blame_missing(entry)
            else:
                entry.final = {**entry.stored, **entry.given}
                _blame_moved(entry)
                if "updated_at" in entry.final and "updated_at" not in entry.given and entry.changed:
                    entry.final["updated_at"] = filler.moment
            if sync and "last_sync_at" in entry.final and entry.changed:
                entry.final["last_sync_at"] = filler.moment
            if not entry.faulty:
                table.derive(entry.final)


def _blame_missing(entry: Entry) -> None:
    for column in sql_table(entry.table).columns:
        value = entry.final.get(column.name)
        if value is None and not (column.nullable or column.info.get("derived") or column.name in entry.table.filled):
            entry.blame(column.name, "is required")
        if column.name in ("short_id", "order") and isinstance(value, int) and value > LARGEST_NUMBER:
            entry.blame(column.name, f"is used up: the organization has had number {LARGEST_NUMBER}")


def _blame_moved(entry: Entry) -> None:
    for name in entry.table.fixed:
        if entry.stored is not None and entry.final.get(name) != entry.stored.get(name):
            entry.blame(name, f"cannot be changed: the stored row has {entry.stored[name]!r}")


# --- Writing


def _write(connection: Connection, groups: Groups, progress: Progress) -> list[str]:
    """Write what has changed and return the organizations whose coverage may have changed by that."""
    total = sum(map(len, groups.values()))
    done = 0
    before: dict[str, list[Mapping[str, Any]]] = {}
    after: dict[str, list[Mapping[str, Any]]] = {}
    for table, group in groups.items():
        new = [entry.final for entry in group if entry.stored is None]
        changed = [entry for entry in group if entry.stored is not None and entry.changed]
        rekeyed = [entry for entry in changed if _is_rekeyed(entry)]
        leaving = {entry.id for entry in rekeyed}
        kept = [entry.final for entry in changed if entry.id not in leaving]
        # A row that leaves a unique key makes room for the row that takes it: two may even swap theirs. References
        # are checked at the end of the transaction, when it is back.
        for batch in batches(sorted(leaving)):
            connection.execute(delete(sql_table(table)).where(sql_table(table).c.id.in_(batch)))
        for statement, rows in (
            (insert(sql_table(table)), [*(entry.final for entry in rekeyed), *new]),
            (_update(table), [_bound(final) for final in kept]),
        ):
            for batch in batches(rows):
                progress("Writing rows", done, total)
                connection.execute(statement, list(batch))
                done += len(batch)
        name = str(table.__tablename__)
        before[name] = [{**entry.stored} for entry in changed if entry.stored is not None]
        after[name] = [*new, *(entry.final for entry in changed)]
        keep_short_ids(connection, table, after[name])
    return affected_organizations(connection, before, after)


def _is_rekeyed(entry: Entry) -> bool:
    """Whether the row leaves a value of a unique key, or a key of live rows altogether."""
    stored, final = entry.stored, entry.final
    return stored is not None and any(
        any(stored[name] != final[name] for name in columns)
        or (live_only and (stored["archived_at"] is None) != (final["archived_at"] is None))
        for columns, live_only in unique_keys(entry.table)
    )


def _update(table: type[Table]) -> Any:
    columns = sql_table(table).columns
    values = {
        column.name: bindparam(f"new_{column.name}", type_=column.type) for column in columns if not column.primary_key
    }
    return update(sql_table(table)).where(columns.id == bindparam("key_id")).values(values)


def _bound(final: Mapping[str, Any]) -> dict[str, Any]:
    return {"key_id": final["id"]} | {f"new_{name}": value for name, value in final.items() if name != "id"}


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
