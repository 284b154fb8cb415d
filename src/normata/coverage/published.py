"""What bringing coverage up to date publishes: bulk changes, each of one organization.

Notifications and dry runs follow from them. Only changed wordings are an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from normata.core.changes.unit_of_work import Change
from normata.coverage.engine import Level
from normata.coverage.graph import Conflict


@dataclass(frozen=True, slots=True)
class CoverageLost(Change):
    """Controls have lost coverage for a reason other than their own assessments.

    ``controls`` has their ids. It is a bulk change: its cause is published as a change of its own.
    """

    controls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConflictsFound(Change):
    """Assessments have come into conflict with matches or other assessments.

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
class WordingsChanged(Change):
    """An import has changed the wording of controls of frameworks that the organization has adopted.

    ``stale`` has the ids of the controls whose assessments are stale by that. Its ``counts`` make it an event.
    """

    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RulesChanged(Change):
    """An upgrade with other rules has changed coverage or conflicts, without an action of a user.

    It is a bulk change. Admins and owners are notified of this, and not of lost coverage or conflicts.
    """
