"""How rows of a request become rows of the database: by the rules that hold for a load, too."""

from __future__ import annotations

from collections.abc import Sequence

from normata.core.changes.rows import PendingRow, read_row
from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.changes.unit_of_work import UnitOfWork, update_of
from normata.core.changes.validity import NO_OWN_RULES, OwnRules, make_valid
from normata.core.changes.writing import changeable
from normata.core.db.security import Write
from normata.core.schema.table import Table

BODY = "body"  # what the place of a fault is in


def valid_rows(
    unit: UnitOfWork,
    table: type[Table],
    rows: Sequence[Row],
    faults: Sequence[Fault] = (),
    *,
    own_rules: OwnRules = NO_OWN_RULES,
    are_new: bool = False,
) -> list[PendingRow]:
    """The pending rows that rows of a request make. ``faults`` has what has been found wrong with them already.

    Rows that ``are_new`` have ids that were made for them, so that none of them can be stored. Raises FaultyInput with
    every fault.
    """
    found = [*faults, *_blank(table, rows)]
    pending = [one for row in rows if (one := read_row(table, row, found)) is not None]
    # A bundle may hold what has long been history; people who write name nobody who has gone.
    make_valid(unit, {table: pending}, own_rules=own_rules, takes_removed=False, are_new=are_new)
    if found:
        raise FaultyInput(found)
    return pending


def _blank(table: type[Table], rows: Sequence[Row]) -> list[Fault]:
    """A load takes what publishers have made; what people type has names that can be seen."""
    return [
        row.fault(name, "must not be blank")
        for row in rows
        for name in dict.fromkeys(("identifier", table.title_column()))
        if isinstance(value := row.values.get(name), str) and not value.strip()
    ]


def every_column_of(table: type[Table]) -> Write:
    """The right to change a row of a table as a whole, but for what never changes."""
    return update_of(table, *(column.name for column in changeable(table)))
