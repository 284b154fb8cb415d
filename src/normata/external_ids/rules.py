"""The rules of loaded external ids, in addition to those for all rows: their records exist in the organization."""

from __future__ import annotations

from collections.abc import Sequence

from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow
from normata.core.changes.unit_of_work import UnitOfWork
from normata.links.rules import fault_ends
from normata.records.archive.queries import KINDS


def check_loaded(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Add faults for records that do not exist, or belong to another organization."""
    fault_ends(rows, references, [("kind", "record_id")], tuple(KINDS))
