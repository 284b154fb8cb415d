"""Runs the rules that make rows valid, in order: for one row of a request, or all rows of a load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from normata.core.changes.defaults import give_defaults
from normata.core.changes.merging import find_stored, merge
from normata.core.changes.references import NO_ROWS, References, check_references
from normata.core.changes.rows import Buffer, PendingRow, PendingRows, good
from normata.core.changes.uniqueness import check_unique
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import Table

# A domain's rule for its own table. It gets rows with valid references, adds faults, and may complete rows.
OwnRule = Callable[[UnitOfWork, Sequence[PendingRow], References], None]
OwnRules = Mapping[type[Table], OwnRule]

NO_OWN_RULES: OwnRules = {}


def make_valid(
    unit: UnitOfWork,
    groups: PendingRows,
    *,
    own_rules: OwnRules = NO_OWN_RULES,
    buffer: Buffer = lambda values: values,
    refused: Set[tuple[str, str]] = NO_ROWS,
    stamped: Sequence[str] = (),
    takes_removed: bool = True,
    are_new: bool = False,
    hands_over: bool = True,
) -> None:
    """Complete all rows, and add faults: of references, unique keys, required values and fixed columns.

    See :class:`References` for ``refused``, :func:`merge` for ``stamped``, :func:`check_references` for
    ``takes_removed``, and :func:`check_unique` for ``hands_over``. Rows that ``are_new`` are not searched for in the
    database. It raises nothing: the faults are in the rows.
    """
    for table, rows in groups.items():
        _fault_repeated(rows)
        if not are_new:
            find_stored(unit, table, rows)
        give_defaults(unit, table, good(rows))
        merge(unit, table, good(rows), buffer, stamped)
    references = References(unit, groups, refused)
    for table, rows in groups.items():
        check_references(table, rows, references, takes_removed=takes_removed)
        if table in own_rules:
            own_rules[table](unit, good(rows), references)
    for table, rows in groups.items():
        check_unique(unit, table, good(rows), hands_over=hands_over)


def _fault_repeated(rows: Sequence[PendingRow]) -> None:
    seen: dict[Any, PendingRow] = {}
    for row in rows:
        first = seen.setdefault(row.id, row)
        if first is not row:
            row.add_fault("id", f"is the same as that of {first.source.file}: {first.source.place}")
