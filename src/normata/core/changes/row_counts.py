"""Row counts: the rows of a table that an input adds, changes, and leaves as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from normata.core.changes.rows import PendingRow


@dataclass(slots=True)
class RowCounts:
    """The row counts of a load or an upload, or its dry run, for one array."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0

    @classmethod
    def of(cls, rows: Iterable[PendingRow]) -> Self:
        """Count valid rows."""
        counts = cls()
        for row in rows:
            if row.stored is None:
                counts.inserted += 1
            elif row.changed:
                counts.updated += 1
            else:
                counts.unchanged += 1
        return counts

    def written(self) -> dict[str, int]:
        """The counts for an event: new and changed rows."""
        return {"inserted": self.inserted, "updated": self.updated}
