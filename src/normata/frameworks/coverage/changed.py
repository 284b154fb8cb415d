"""What has changed for an organization, and bringing its coverage up to date with that."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from normata.changes.unit_of_work import UnitOfWork, delete_of, insert_of, update_of
from normata.db.security import Write
from normata.frameworks.coverage.recompute import recompute
from normata.frameworks.model import EffectiveCoverage

COVERAGE_WRITES: tuple[Write, ...] = (
    insert_of(EffectiveCoverage),
    update_of(EffectiveCoverage, "status", "is_indirect", "own"),
    delete_of(EffectiveCoverage),
)


@dataclass(frozen=True, slots=True)
class Changed:
    """The ids of what has changed: controls whose statements have, and frameworks that were adopted or left."""

    statements: Set[str] = frozenset()
    frameworks: Set[str] = frozenset()


def lock_coverage(unit: UnitOfWork, organization_id: str) -> None:
    """Wait for every other change of the organization's coverage, and keep them out until this one ends."""
    unit.lock(f"coverage {organization_id}")


def bring_up_to_date(unit: UnitOfWork, organization_id: str, changed: Changed) -> None:
    """Store what follows now that something has changed."""
    del changed
    recompute(unit, organization_id)
