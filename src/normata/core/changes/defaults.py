"""Defaults: the values of a new row that the input leaves out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, select

from normata.core.changes.rows import PendingRow
from normata.core.changes.short_ids import NUMBERS, raise_to, reserve
from normata.core.changes.uniqueness import unique_keys
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import batches
from normata.core.schema.fields import MAX_NUMBER
from normata.core.schema.table import Table, sql_table
from normata.core.schema.text import slugify


def give_defaults(unit: UnitOfWork, table: type[Table], rows: Sequence[PendingRow]) -> None:
    """Set the missing slugs and numbers of new rows. ``rows`` must be all rows of the table in the input."""
    if _slug_key(table) is not None:
        _give_slugs(unit, table, rows)
    for column in _numbered(table):
        _give_numbers(unit, table, column, rows)


def with_defaults(table: type[Table], supplied: Mapping[str, Any], moment: str) -> dict[str, Any]:
    """A new row with all other defaults, but without derived columns. Fields without a default are null."""
    row: dict[str, Any] = {**_constants(table), **supplied}
    # A missing time follows the other one: a row that was never updated was last updated when it was created.
    created, updated = row.get("created_at"), row.get("updated_at")
    for name, default in (("created_at", created or updated), ("updated_at", updated or created), ("adopted_at", None)):
        if name in row:
            row[name] = row[name] or default or moment
    table.fill(row)
    return row


@cache
def _constants(table: type[Table]) -> dict[str, Any]:
    return {column.name: column.info.get("default") for column in sql_table(table).columns}


# --- Slugs


@cache
def _slug_key(table: type[Table]) -> tuple[str, ...] | None:
    """The columns within whose values a slug is unique; null if a table has no slugs, or they need not be unique.

    A slug in an organization must not be that of an archived record either, which may be restored.
    """
    keys = (columns for columns, _ in unique_keys(table) if "slug" in columns)
    return next((tuple(name for name in columns if name != "slug") for columns in keys), None)


def _give_slugs(unit: UnitOfWork, table: type[Table], rows: Sequence[PendingRow]) -> None:
    title = table.title_column()
    taken: defaultdict[tuple[Any, ...], set[str]] = defaultdict(set)  # by the other columns of the key
    lacking: defaultdict[tuple[Any, ...], list[PendingRow]] = defaultdict(list)
    for row in rows:
        rest = tuple(_value(row, name) for name in _slug_key(table) or ())
        if "slug" in row.supplied:
            taken[rest].add(row.supplied["slug"])
        elif row.stored is None and row.supplied.get(title) and None not in rest:
            lacking[rest].append(row)
    for rest, those in lacking.items():
        wanted = [slugify(row.supplied[title]) for row in those]
        for row, slug in zip(those, _free_slugs(unit, table, rest, wanted, taken[rest]), strict=True):
            row.supplied["slug"] = row.free_slug = slug


def free_slug(unit: UnitOfWork, table: type[Table], row: Mapping[str, Any], wanted: str) -> str:
    """The wanted slug of a row, with a number if another row has it."""
    key = _slug_key(table)
    return wanted if key is None else _free_slugs(unit, table, tuple(row[name] for name in key), [wanted], set())[0]


def _free_slugs(
    unit: UnitOfWork, table: type[Table], rest: tuple[Any, ...], wanted: Sequence[str], taken: set[str]
) -> list[str]:
    """A free slug for each wanted one: itself, else with a number. They are added to ``taken``.

    Only candidates are looked up: at first as many as rows want the slug; if all of those are taken, eight times as
    many.
    """
    if len(wanted) == 1 and not taken and not _stored_slugs(unit, table, rest, wanted):
        taken.update(wanted)  # a request creates one record, whose slug is mostly free
        return [*wanted]
    found: dict[int, str] = {}
    following: Counter[str] = Counter()  # how many candidates of each slug were tried
    looked_up: Counter[str] = Counter()
    lacking = list(enumerate(wanted))
    while lacking:
        candidates: list[str] = []
        for slug, count in Counter(slug for _, slug in lacking).items():
            start = looked_up[slug]
            looked_up[slug] += max(count, 7 * start)
            candidates += (_numbered_slug(slug, number) for number in range(start, looked_up[slug]))
        taken |= _stored_slugs(unit, table, rest, candidates)
        still_lacking: list[tuple[int, str]] = []
        for index, slug in lacking:
            while following[slug] < looked_up[slug]:
                candidate = _numbered_slug(slug, following[slug])
                following[slug] += 1
                if candidate not in taken:
                    taken.add(candidate)
                    found[index] = candidate
                    break
            else:
                still_lacking.append((index, slug))
        lacking = still_lacking
    return [found[index] for index in range(len(wanted))]


def _numbered_slug(slug: str, number: int) -> str:
    return slug if number == 0 else f"{slug}-{number + 1}"


def _stored_slugs(unit: UnitOfWork, table: type[Table], rest: tuple[Any, ...], candidates: Iterable[str]) -> set[str]:
    key = {f"key_{number}": value for number, value in enumerate(rest)}
    return {
        slug
        for batch in batches(sorted(set(candidates)))
        for slug in unit.scalars(_slugs_among(table), {**key, "candidates": batch})
    }


@cache
def _slugs_among(table: type[Table]) -> Select[Any]:
    columns = sql_table(table).columns
    within = (columns[name] == bindparam(f"key_{number}") for number, name in enumerate(_slug_key(table) or ()))
    return select(columns.slug).where(*within, columns.slug.in_(bindparam("candidates", expanding=True)))


# --- Numbers


@cache
def _numbered(table: type[Table]) -> tuple[str, ...]:
    """The columns that an organization's counters number."""
    columns = sql_table(table).columns
    return tuple(name for name in NUMBERS if name in columns and name in table.generated)


def _give_numbers(unit: UnitOfWork, table: type[Table], column: str, rows: Sequence[PendingRow]) -> None:
    lacking: defaultdict[str, list[PendingRow]] = defaultdict(list)
    highest: dict[str, int] = {}
    for row in rows:
        organization_id, number = _value(row, "organization_id"), row.supplied.get(column)
        if organization_id is None:
            continue
        if number is not None and (row.stored is None or row.stored[column] != number):
            highest[organization_id] = max(number, highest.get(organization_id, number))
        elif number is None and row.stored is None:
            lacking[organization_id].append(row)
    # In a fixed order, so that two transactions cannot deadlock.
    for organization_id in sorted(highest.keys() | lacking.keys()):
        if organization_id in highest:
            raise_to(unit, table, column, organization_id, highest[organization_id])
        those = lacking.get(organization_id, [])
        first = reserve(unit, table, column, organization_id, len(those)) if those else None
        for offset, row in enumerate(those):
            if first is None:
                row.add_fault(column, f"is used up: the organization has had number {MAX_NUMBER}")
            else:
                row.supplied[column] = first + offset


def _value(row: PendingRow, column: str) -> Any:
    """The future value of a column."""
    return row.supplied.get(column, None if row.stored is None else row.stored[column])
