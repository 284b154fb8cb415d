"""What bringing coverage up to date publishes: bulk changes, each of one organization.

They are no events. Notifications and dry runs follow from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from normata.core.changes.unit_of_work import Change
from normata.coverage.conflicts import Conflict
from normata.coverage.engine import Level


@dataclass(frozen=True, slots=True)
class CoverageLost(Change):
    """That controls are covered less than they were, because of something else than their own assessments.

    ``controls`` has their ids. It is a bulk change: what has made them fall is a change of its own.
    """

    controls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConflictsFound(Change):
    """That assessments have come into conflict with what matches, or other assessments, say.

    ``controls`` has the ids of the controls. It is a bulk change, as :class:`CoverageLost` is.
    """

    controls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CoverageMoved(Change):
    """Of a dry run: the levels of controls before and after, and what conflicts they had and have, by control.

    It is a bulk change that only :func:`normata.coverage.effects.coverage_effects` heeds. A control that is not adopted
    is at NONE.
    """

    levels: Mapping[str, tuple[Level, Level]] = field(default_factory=dict)
    conflicts: Mapping[str, tuple[Conflict | None, Conflict | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RulesChanged(Change):
    """That an upgrade has changed coverage, or what is in conflict: by other rules, and nobody has done anything.

    It is a bulk change. Who answers for coverage is notified of this, and not of what was lost or is in conflict.
    """
