"""How many rows of a table an input adds, changes, and leaves as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from normata.core.changes.rows import PendingRow


@dataclass(slots=True)
class RowCounts:
    """What a load or an upload does, or would do, to the rows of one array."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0

    @classmethod
    def of(cls, rows: Iterable[PendingRow]) -> Self:
        """Count rows that the rules have found valid."""
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
        """The counts for an event: how many rows are new, and how many have changed."""
        return {"inserted": self.inserted, "updated": self.updated}
