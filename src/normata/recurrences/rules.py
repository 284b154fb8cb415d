"""The rules of loaded recurrences, in addition to those for all rows: their records exist in the organization."""

from __future__ import annotations

from collections.abc import Sequence

from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow, good
from normata.core.changes.unit_of_work import UnitOfWork
from normata.links.rules import fault_ends
from normata.recurrences.kinds import RECURRING

_KINDS = tuple(kind.path for kind in RECURRING)


def check_loaded(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Add faults for records that do not exist, belong to another organization, or are of a kind that never recurs."""
    fault_ends(rows, references, [("kind", "record_id")], _KINDS)
    fault_ends(
        [row for row in good(rows) if row.final["next_id"] is not None], references, [("kind", "next_id")], _KINDS
    )
