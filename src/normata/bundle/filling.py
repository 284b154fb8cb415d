"""What a new row is given where a bundle leaves it out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, func, select

from normata.identity.model import Organization
from normata.models import Table
from normata.records.base import Restorable
from normata.records.short_ids import last_short_id
from normata.vocabulary import slugify, sql_table


class Filler:
    """Fills the gaps of new rows: constants, times, slugs, and numbers that go on where the organization's last ended.

    ``moment`` is the time of the load, as the wire has it.
    """

    def __init__(self, connection: Connection, moment: str) -> None:
        self._connection = connection
        self.moment = moment
        self._slugs: dict[tuple[type[Table], str], set[str]] = {}
        self._last: dict[tuple[type[Table], str, str], int] = {}
        self._reserved: defaultdict[tuple[type[Table], str, str], set[int]] = defaultdict(set)

    def reserve(self, table: type[Table], rows: Iterable[Mapping[str, Any]]) -> None:
        """Know what the new rows of a table bring along, so that nothing filled in collides with a later one."""
        if not _is_numbered(table):
            return
        for row in rows:
            scope = row.get("organization_id", "")
            if row.get("slug") is not None:
                self._known_slugs(table, scope).add(row["slug"])
            if row.get("short_id") is not None:
                self._reserved[table, scope, "short_id"].add(row["short_id"])

    def fill(self, table: type[Table], given: Mapping[str, Any]) -> dict[str, Any]:
        """The complete row, but for derived columns and what only the sender can know; that stays null."""
        row: dict[str, Any] = {**_defaults(table), **given}
        _fill_times(row, self.moment)
        table.fill(row)
        scope = row.get("organization_id", "")
        if not _is_numbered(table) or scope is None:
            return row
        title = row[table.title_column() if issubclass(table, Restorable) else "name"]
        if title and "slug" in row and row["slug"] is None:
            row["slug"] = self._free_slug(table, scope, slugify(title))
        for number in ("short_id", "order"):
            if number in row and row[number] is None:
                row[number] = self._next(table, scope, number)
        return row

    def _free_slug(self, table: type[Table], organization_id: str, wanted: str) -> str:
        taken = self._known_slugs(table, organization_id)
        slug, attempt = wanted, 1
        while slug in taken:
            attempt += 1
            slug = f"{wanted}-{attempt}"
        taken.add(slug)
        return slug

    def _known_slugs(self, table: type[Table], scope: str) -> set[str]:
        key = (table, scope)
        columns = sql_table(table).columns
        if key not in self._slugs:
            self._slugs[key] = set()
            if "slug" in columns:
                stored = select(columns.slug)
                self._slugs[key].update(
                    self._connection.scalars(stored.where(columns.organization_id == scope) if scope else stored)
                )
        return self._slugs[key]

    def _next(self, table: type[Table], organization_id: str, name: str) -> int:
        key = (table, organization_id, name)
        if key not in self._last:
            self._last[key] = self._stored_last(table, organization_id, name)
        number = self._last[key] + 1
        while number in self._reserved[key]:
            number += 1
        self._last[key] = number
        return number

    def _stored_last(self, table: type[Table], organization_id: str, name: str) -> int:
        if name == "short_id":
            return last_short_id(self._connection, table, organization_id)
        columns = sql_table(table).columns
        highest = select(func.max(columns[name])).where(columns.organization_id == organization_id)
        return self._connection.scalar(highest) or 0


@cache
def _defaults(table: type[Table]) -> dict[str, Any]:
    return {column.name: column.info.get("default") for column in sql_table(table).columns}


def _is_numbered(table: type[Table]) -> bool:
    """Whether slugs and numbers are made: of records within their organization, of organizations anywhere."""
    return issubclass(table, Restorable) or table is Organization


def _fill_times(row: dict[str, Any], moment: str) -> None:
    """A time that is missing follows the one that is there: what was never updated was last updated when created."""
    created, updated = row.get("created_at"), row.get("updated_at")
    if "created_at" in row:
        row["created_at"] = created or updated or moment
    if "updated_at" in row:
        row["updated_at"] = updated or created or moment
    if "adopted_at" in row:
        row["adopted_at"] = row["adopted_at"] or moment
