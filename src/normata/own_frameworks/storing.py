"""How rows of a request become frameworks, controls and matches: by the rules that hold for a load, too."""

from __future__ import annotations

from collections.abc import Sequence

from normata.core.changes import storing
from normata.core.changes.rows import PendingRow
from normata.core.changes.source import Fault, Row
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import Table
from normata.frameworks.rules import RULES


def valid_rows(
    unit: UnitOfWork, table: type[Table], rows: Sequence[Row], faults: Sequence[Fault] = ()
) -> list[PendingRow]:
    """See :func:`normata.core.changes.storing.valid_rows`; with the rules of frameworks."""
    return storing.valid_rows(unit, table, rows, faults, own_rules=RULES)
