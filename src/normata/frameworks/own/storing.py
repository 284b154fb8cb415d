"""How rows of a request become rows of the database: by the rules that hold for a load, too."""

from __future__ import annotations

from collections.abc import Sequence

from normata.changes.rows import PendingRow, read_row
from normata.changes.source import Fault, FaultyInput, Row
from normata.changes.unit_of_work import UnitOfWork, update_of
from normata.changes.validity import make_valid
from normata.db.security import Write
from normata.frameworks.rules import RULES
from normata.schema.table import Table, sql_table

BODY = "body"  # what the place of a fault is in


def valid_rows(
    unit: UnitOfWork, table: type[Table], rows: Sequence[Row], faults: Sequence[Fault] = ()
) -> list[PendingRow]:
    """The pending rows that rows of a request make. ``faults`` has what has been found wrong with them already.

    Raises FaultyInput with every fault.
    """
    found = [*faults, *_blank(rows)]
    pending = [one for row in rows if (one := read_row(table, row, found)) is not None]
    make_valid(unit, {table: pending}, own_rules=RULES)
    if found:
        raise FaultyInput(found)
    return pending


def _blank(rows: Sequence[Row]) -> list[Fault]:
    """A load takes what publishers have made; what people type has names that can be seen."""
    return [
        row.fault(name, "must not be blank")
        for row in rows
        for name in ("identifier", "name")
        if isinstance(value := row.values.get(name), str) and not value.strip()
    ]


def every_column_of(table: type[Table]) -> Write:
    """The right to change a row of a table as a whole, but for its id."""
    return update_of(table, *(column.name for column in sql_table(table).c if column.name != "id"))
