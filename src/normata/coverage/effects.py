"""What a dry run says of coverage: what would follow for controls that the request does not name.

Recomputing says what it moves (:class:`CoverageMoved`), in the transaction of the dry run. That is put together here:
what a control was before the first move, and what it is after the last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import Change, Shown, UnitOfWork
from normata.core.db.transaction import batches
from normata.core.http import dry_run
from normata.core.schema.table import sql_table
from normata.coverage.engine import Level
from normata.coverage.graph import Conflict
from normata.coverage.incremental import Ranked
from normata.coverage.published import CoverageMoved, WordingsChanged
from normata.coverage.staleness import staleness
from normata.frameworks.model import ControlCoverage, EffectiveCoverage
from normata.frameworks.named_controls import named_controls

T = TypeVar("T")

Place: TypeAlias = tuple[str, str]  # the ids of an organization and a control


def moves_of(
    unit: UnitOfWork, organization_id: str, changes: Mapping[str, Ranked | None], before: Mapping[str, Level]
) -> CoverageMoved:
    """What a dry run says of changes that have not been written yet: conflicts are gone with their controls."""
    gone = sorted(control for control, found in changes.items() if found is None)
    return CoverageMoved(
        "move",
        EffectiveCoverage,
        organization_id,
        levels={
            control: (before.get(control, Level.NONE), Level.NONE if found is None else found.computed.effective)
            for control, found in changes.items()
        },
        conflicts={
            row.control_id: (row.conflict, None)
            for batch in batches(gone)
            for row in unit.rows(_CONFLICTS, {"organization": organization_id, "ids": batch})
        },
    )


def coverage_effects(unit: UnitOfWork, shown: Shown, unsupported: Iterable[Place] = ()) -> dict[str, Any]:
    """The members of :class:`normata.core.http.dry_run.DryRun` that tell of coverage, of organizations that are shown.

    ``unsupported`` are the controls whose assessments become stale because their evidence ends. It is called once
    everything is written. A control that is there no longer is left out: a change of its own says so.
    """
    published = [change for change in unit.published if shown is None or change.organization_id in shown]
    levels: dict[Place, tuple[Level, Level]] = {}
    conflicts: dict[Place, tuple[Conflict | None, Conflict | None]] = {}
    stale: list[Place] = [*unsupported]
    for change in published:
        organization_id = change.organization_id or ""
        if isinstance(change, CoverageMoved):
            _follow(levels, organization_id, change.levels)
            _follow(conflicts, organization_id, change.conflicts)
        elif isinstance(change, WordingsChanged):
            stale += ((organization_id, control) for control in change.stale)
        elif change.table is ControlCoverage and change.row is not None and _becomes_stale(change, unit.moment):
            stale.append((organization_id, change.row["control_id"]))
    changed = [place for place, (before, after) in levels.items() if before != after]
    appearing = [place for place, (before, after) in conflicts.items() if before is None and after is not None]
    disappearing = [place for place, (before, after) in conflicts.items() if before is not None and after is None]
    controls = _Controls(unit, {control for _, control in (*changed, *appearing, *disappearing, *stale)})
    return {
        "coverage": controls.affected(
            changed, lambda place: {"from": levels[place][0].name, "to": levels[place][1].name}
        ),
        "conflicts": {
            "appearing": controls.affected(appearing),
            "disappearing": controls.affected(disappearing),
        },
        "stale": controls.affected(stale),
    }


def _follow(known: dict[Place, tuple[T, T]], organization_id: str, moves: Mapping[str, tuple[T, T]]) -> None:
    """Add moves to those before them: what counts is what was before the first, and what is after the last."""
    for control, (before, after) in moves.items():
        first, _ = known.get((organization_id, control), (before, after))
        known[organization_id, control] = first, after


def _becomes_stale(change: Change, moment: str) -> bool:
    """Whether an assessment is stale at a moment, and was not before the change."""
    return _is_stale(change.row, moment) and not _is_stale(change.before, moment)


def _is_stale(row: Mapping[str, Any] | None, moment: str) -> bool:
    # The last two follow from changes of other rows.
    columns = ("review_due_at", "assessed_at", "lapsed_at", "lapse_reason", "evidence_ends_at", "reworded_at")
    return row is not None and bool(staleness(SimpleNamespace(**{name: row.get(name) for name in columns}), moment))


class _Controls:
    """What controls are called, in the order in which lists have them."""

    def __init__(self, unit: UnitOfWork, controls: Collection[str]) -> None:
        rows = named_controls(unit, controls)
        self._rows = {row.id: row for row in rows}
        self._rank = {row.id: rank for rank, row in enumerate(rows)}

    def affected(
        self, places: Iterable[Place], more: Callable[[Place], Mapping[str, Any]] = lambda _: {}
    ) -> dict[str, Any]:
        """The members of :class:`normata.core.http.dry_run.AffectedControls`, each control with ``more``."""
        there = sorted(
            (place for place in places if place[1] in self._rows), key=lambda place: (place[0], self._rank[place[1]])
        )
        return {
            "count": len(there),
            "controls": [self._control(place) | dict(more(place)) for place in there[: dry_run.MAX_EFFECTS]],
        }

    def _control(self, place: Place) -> dict[str, Any]:
        organization_id, control_id = place
        row = self._rows[control_id]
        return {
            "organizationId": organization_id,
            "controlId": control_id,
            "identifier": row.identifier,
            "name": row.name,
            "frameworkId": row.framework_id,
        }


_EFFECTIVE = sql_table(EffectiveCoverage)
_CONFLICTS = select(_EFFECTIVE.c.control_id, _EFFECTIVE.c.conflict).where(
    _EFFECTIVE.c.organization_id == bindparam("organization"),
    _EFFECTIVE.c.control_id.in_(bindparam("ids", expanding=True)),
    _EFFECTIVE.c.conflict.is_not(None),
)
