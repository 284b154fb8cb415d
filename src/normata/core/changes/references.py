"""References: each must name an existing row of the same organization, or of none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, select

from normata.core.changes.rows import PendingRow, PendingRows, good
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.descriptions import with_article
from normata.core.schema.table import Table, sql_table, table_named

NO_ROWS: Set[tuple[str, str]] = frozenset()


class References:
    """Finds rows that others refer to: those of the input first, then those of the database.

    ``refused`` has the tables and ids of rows of the input with faults.
    """

    def __init__(self, unit: UnitOfWork, groups: PendingRows, refused: Set[tuple[str, str]] = NO_ROWS) -> None:
        self._unit = unit
        self._refused = refused
        self._pending: defaultdict[str, dict[str, PendingRow]] = defaultdict(dict)
        for table, rows in groups.items():
            self._pending[str(table.__tablename__)] = {row.id: row for row in rows}
        self._stored: defaultdict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)

    def fetch(self, table: str, ids: Collection[str]) -> None:
        """Read these rows from the database, unless they were read before."""
        pending, stored = self._pending[table], self._stored[table]
        if table == "organization" and self._unit.scope is not None:
            # The actor's membership in these was just checked.
            stored.update((one, {"id": one}) for one in ids if one in self._unit.scope.readable)
        missing = sorted({row_id for row_id in ids if row_id not in pending and row_id not in stored})
        for batch in batches(missing):
            for row in self._unit.rows(_ties(table_named(table)), {"ids": batch}):
                owner = getattr(row, "organization_id", None)
                # Rows that the actor cannot see are treated as missing.
                if (owner is None or self._unit.may_read(owner)) and self._is_seen(table, row):
                    stored[row.id] = row._asdict()

    def _is_seen(self, table: str, row: Any) -> bool:
        """Whether the actor may refer to a row; a command may to all."""
        user_id = self._unit.actor.user_id
        return self._unit.scope is None or table_named(table).is_seen_by(row._asdict(), user_id)

    def get(self, table: str, row_id: str) -> Mapping[str, Any] | None:
        """A fetched row, with at least its id, organization and fixed columns; null if there is none."""
        row = self._pending[table].get(row_id)
        return row.final if row else self._stored[table].get(row_id)

    def is_faulty(self, table: str, row_id: str) -> bool:
        """Whether the row is in the input and has faults."""
        row = self._pending[table].get(row_id)
        return (table, row_id) in self._refused or (row is not None and row.faulty)


def check_references(
    table: type[Table], rows: Sequence[PendingRow], references: References, *, takes_removed: bool = True
) -> None:
    """Add faults for references to rows that do not exist, or of another organization.

    Without ``takes_removed``, also for references to rows that may not be named newly, such as members who were removed
    or are auditors, unless they are unchanged. A row
    that refers to a faulty row cannot be checked. It is left out of later checks without a fault.
    """
    judged = good(rows)
    for name, target in references_of(table):
        named = [row for row in judged if row.final[name] is not None]
        if not named:
            continue
        references.fetch(target, [row.final[name] for row in named])
        for row in named:
            if references.is_faulty(target, row.final[name]):
                row.faulty = True
                continue
            found = references.get(target, row.final[name])
            is_new = row.stored is None or row.stored[name] != row.final[name]
            reason = objection(row, target, found, takes_removed=takes_removed or not is_new)
            if reason:
                row.add_fault(name, reason)
    _check_lists(table, rows, references)


def _check_lists(table: type[Table], rows: Sequence[PendingRow], references: References) -> None:
    """Add faults for lists that name rows that do not exist, or of another organization."""
    for name, target in _lists_of(table):
        named = [row for row in good(rows) if row.final[name]]
        references.fetch(target, {one for row in named for one in row.final[name]})
        for row in named:
            for one in row.final[name]:
                if references.is_faulty(target, one):
                    row.faulty = True
                elif reason := objection(row, target, references.get(target, one), takes_removed=True):
                    row.add_fault(name, reason)
                    break


@cache
def _lists_of(table: type[Table]) -> tuple[tuple[str, str], ...]:
    """The columns that list ids, and the table of these."""
    columns = sql_table(table).columns
    return tuple((column.name, str(column.info["lists"])) for column in columns if "lists" in column.info)


def referrer(transaction: Transaction, table: type[Table], row_id: str) -> str | None:
    """The id of a row of any table that refers to a row of ``table``; null if there is none."""
    for statement in _referrers(table):
        found: str | None = transaction.scalar(statement, {"row": row_id})
        if found is not None:
            return found
    return None


@cache
def _referrers(table: type[Table]) -> tuple[Select[Any], ...]:
    tables: list[type[Table]] = [mapper.class_ for mapper in Table.registry.mappers]
    return tuple(
        select(sql_table(one).c.id).where(sql_table(one).c[name] == bindparam("row")).limit(1)
        for one in tables
        for name, target in references_of(one)
        if target == table.__tablename__
    )


@cache
def references_of(table: type[Table]) -> tuple[tuple[str, str], ...]:
    """The reference columns of a table, each with the name of the table that it refers to."""
    return tuple(
        (column.name, "organization" if column.name == "organization_id" else column.info["refers_to"])
        for column in sql_table(table).columns
        if "refers_to" in column.info or (column.name == "organization_id" and not column.info.get("derived"))
    )


def objection(row: PendingRow, target: str, found: Mapping[str, Any] | None, *, takes_removed: bool) -> str | None:
    """Why a row may not refer to one of the table ``target``, null if it does not exist; null if it may."""
    words = target.replace("_account", "").replace("_", " ")
    if found is None:
        return f"names no {words} that exists"
    if "organization_id" in row.table.fixed and target != "organization":
        owner = found.get("organization_id")
        if owner is not None and owner != row.final.get("organization_id"):
            return f"names {with_article(words)} of another organization"
    reason = None if takes_removed else table_named(target).unnamed_because(found)
    return reason and f"names {with_article(words)} {reason}"


@cache
def _ties(table: type[Table]) -> Select[Any]:
    columns = sql_table(table).columns
    names = dict.fromkeys(("id", "organization_id", *table.named_if, *table.fixed))
    return select(*(columns[name] for name in names if name in columns)).where(
        columns.id.in_(bindparam("ids", expanding=True))
    )
