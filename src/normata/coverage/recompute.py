"""Brings the stored effective coverage of an organization up to date, in the transaction of the change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, bindparam, delete, func, select, union_all

from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.db.security import Write
from normata.core.db.transaction import Transaction, batches
from normata.core.db.upsert import upsert
from normata.core.schema.table import sql_table
from normata.coverage.applicability import SCOPE_COLUMNS, not_applicable, scopes_of, settle
from normata.coverage.conflicts import Candidate, candidates, current_conflicts, settle_conflicts
from normata.coverage.effects import moves_of
from normata.coverage.engine import Computed, Level, Place, compute_ranked
from normata.coverage.graph import GraphTooLarge, View
from normata.coverage.incremental import Ranked, update
from normata.coverage.published import ConflictsFound, CoverageLost, CoverageMoved, RulesChanged
from normata.coverage.stored_graph import StoredGraph
from normata.frameworks.baselines import baselines_of_adoptions, selected_controls
from normata.frameworks.counting import assessed_status, match_counts
from normata.frameworks.model import (
    Control,
    ControlCoverage,
    ControlMatch,
    EffectiveCoverage,
    Framework,
    FrameworkAdoption,
)
from normata.identity.model import Organization

# The tables that an update of coverage writes, for the declarations of operations.
COVERAGE_WRITES: tuple[Write, ...] = (
    insert_of(EffectiveCoverage),
    update_of(EffectiveCoverage, "status", "is_indirect", "own", "rank", "applies", "conflict"),
    delete_of(EffectiveCoverage),
)

_LEAST = 1_000  # controls that an incremental update may touch in any case


@dataclass(frozen=True, slots=True)
class Touched:
    """The inputs of coverage that a change has touched: ids, of controls except for ``frameworks``.

    ``assessed`` has the controls whose assessment has changed, ``decided`` those of them with another decision whether
    they apply. ``lapsed`` has those whose assessment has lapsed: their loss of coverage is notified. ``controls`` has
    those that are new or deleted, have another parent or type, or have become decomposed or mandatory or ceased to be,
    and their former parents. ``matches`` has both ends of new, changed and deleted matches, before and after.
    ``frameworks`` has those that were adopted or left, or adopted with another baseline.
    """

    assessed: Collection[str] = ()
    decided: Collection[str] = ()
    lapsed: Collection[str] = ()
    controls: Collection[str] = ()
    matches: Collection[str] = ()
    frameworks: Collection[str] = ()


def lock_coverage(unit: UnitOfWork, organization_id: str) -> None:
    """Lock the inputs of an organization's coverage, waiting for other changes of them.

    Without the lock, two simultaneous changes would each compute without the other's writes. A change that writes
    several assessments or matches takes the lock before the first write; otherwise two of them might wait for each
    other's rows.
    """
    unit.lock("content", shared=True)  # a load changes rows from which the coverage of all organizations follows
    unit.lock(f"coverage of {organization_id}")


def bring_up_to_date(unit: UnitOfWork, organization_id: str, touched: Touched) -> int:
    """Store the coverage after a change that has been written, at the cost of what it touches.

    Only rows that differ are written. Returns their number. If a change touches a large part of the adopted frameworks,
    all coverage is computed again.
    """
    lock_coverage(unit, organization_id)
    for most in _limits(unit, organization_id, touched):
        try:
            found = _differences_by(unit, organization_id, touched, most)
        except GraphTooLarge:
            continue
        count = _store(unit, organization_id, found.changes, found.before, touched.assessed)
        _follow_conflicts(unit, organization_id, found.candidates)
        return count
    return recompute(unit, organization_id, reassessed=touched.assessed)


def _limits(unit: UnitOfWork, organization_id: str, touched: Touched) -> Iterator[int]:
    """How many controls an update may touch.

    Most assessments touch few, so few are tried first: to count what is adopted is a statement. Whatever else changes
    is tried once, since to find what it moves takes more than that.
    """
    moves = bool(touched.controls or touched.decided or touched.frameworks)
    if not moves:
        yield _LEAST
    most = most_touched(unit, organization_id)
    if moves or most > _LEAST:
        yield most


def most_touched(transaction: Transaction, organization_id: str) -> int:
    """How many controls may be read to find what follows incrementally: a quarter of what the organization adopted."""
    adopted = transaction.scalar(_ADOPTED_CONTROLS, {"organization": organization_id}) or 0
    return max(_LEAST, adopted // 4)


class _Differences(NamedTuple):
    """The coverage to store, null for rows to remove; the levels as stored so far, and who may be in conflict now."""

    changes: dict[str, Ranked | None]
    before: dict[str, Level]
    candidates: list[Candidate]


def _differences_by(unit: UnitOfWork, organization_id: str, touched: Touched, most: int) -> _Differences:
    moved = {*touched.controls, *_controls_of(unit, touched.frameworks, most)}
    if moved or touched.decided:
        moved |= settle(unit, organization_id, {*moved, *touched.decided}, most)
    reassessed = {*touched.assessed, *touched.lapsed}
    view = View(StoredGraph(unit, organization_id), most)
    changes = update(view, reassessed=reassessed, moved=moved, rematched=touched.matches)
    before = {
        control: node.effective
        for control in changes
        if (node := view.node(control)) is not None and node.effective is not None
    }
    relevelled = {
        control
        for control, found in changes.items()
        if (before.get(control) == Level.FULL) != (found is not None and found.computed.effective == Level.FULL)
    }
    found = candidates(
        view, changes, relevelled=relevelled, reassessed=reassessed.union(moved), rematched=touched.matches
    )
    return _Differences(changes, before, found)


def _controls_of(unit: UnitOfWork, framework_ids: Collection[str], most: int) -> list[str]:
    found: list[str] = []
    for batch in batches(sorted(framework_ids)):
        found += unit.scalars(_CONTROLS_OF.limit(most + 1), {"ids": batch})
    if len(found) > most:
        raise GraphTooLarge
    return found


def recompute(unit: UnitOfWork, organization_id: str, *, reassessed: Collection[str] = ()) -> int:
    """Compute and store all coverage of an organization; only rows that differ are written. Returns their number.

    ``reassessed`` has the controls whose assessment has changed, as far as that is known.
    """
    lock_coverage(unit, organization_id)
    changes, before = _differences(unit, organization_id)
    count = _store(unit, organization_id, changes, before, reassessed)
    table = str(EffectiveCoverage.__tablename__)
    unit.analyze({table: count, f"{table}_history": count})  # the search for conflicts joins the table
    _follow_conflicts(unit, organization_id, None)
    return count


def _differences(unit: UnitOfWork, organization_id: str) -> tuple[dict[str, Ranked | None], dict[str, Level]]:
    """The coverage to store, null for rows to remove, and the levels as stored so far."""
    now = _compute(unit, organization_id)
    stored = _stored(unit, organization_id)
    changes: dict[str, Ranked | None] = dict.fromkeys(stored.keys() - now.keys())
    changes.update((control, found) for control, found in now.items() if stored.get(control) != found)
    return changes, {control: found.computed.effective for control, found in stored.items()}


def _follow_conflicts(unit: UnitOfWork, organization_id: str, controls: Iterable[Candidate] | None) -> None:
    """Store which controls are in conflict now, and publish the new conflicts."""
    found = settle_conflicts(unit, organization_id, controls)
    if unit.is_dry_run and found:
        unit.publish(CoverageMoved("move", EffectiveCoverage, organization_id, conflicts=found))
    new = tuple(sorted(control for control, (_, conflict) in found.items() if conflict is not None))
    if new:
        unit.publish(ConflictsFound("conflict", EffectiveCoverage, organization_id, controls=new))


def recompute_all(unit: UnitOfWork) -> None:
    """Compute the coverage of every organization after an upgrade, and publish the organizations in which it changed.

    Nobody is notified of lost coverage or conflicts: these are not the organization's own changes.
    """
    for organization_id in unit.scalars(_ORGANIZATIONS):
        lock_coverage(unit, organization_id)
        changes, before = _differences(unit, organization_id)
        _write(unit, organization_id, changes)
        conflicts = settle_conflicts(unit, organization_id)
        is_another = any(
            found is not None and found.computed.effective != before.get(control, Level.NONE)
            for control, found in changes.items()
        )
        if is_another or any(now is not None for _, now in conflicts.values()):
            unit.publish(RulesChanged("compute", ControlCoverage, organization_id))
        elif changes or conflicts:
            unit.publish(Change("compute", ControlCoverage, organization_id))


def _store(
    unit: UnitOfWork,
    organization_id: str,
    changes: Mapping[str, Ranked | None],
    before: Mapping[str, Level],
    reassessed: Collection[str],
) -> int:
    """Write the differences, and publish the controls that have lost coverage.

    ``before`` has the levels as stored so far.
    """
    if unit.is_dry_run and changes:
        unit.publish(moves_of(unit, organization_id, changes, before))
    _write(unit, organization_id, changes)
    lost = tuple(
        control
        for control, found in sorted(changes.items())
        if found is not None
        and found.computed.effective < before.get(control, Level.NONE)
        and control not in reassessed
    )
    if lost:
        unit.publish(CoverageLost("lose", EffectiveCoverage, organization_id, controls=lost))
    return len(changes)


def _write(unit: UnitOfWork, organization_id: str, changes: Mapping[str, Ranked | None]) -> None:
    key = {"organization": organization_id}
    gone = [{**key, "control": control} for control, found in changes.items() if found is None]
    upserted = [
        {
            **key,
            "control": control,
            "status": found.computed.effective.name,
            "is_indirect": found.computed.indirect,
            "own": found.computed.own.name,
            "rank": found.rank,
            "applies": found.applies,
        }
        for control, found in changes.items()
        if found is not None
    ]
    for statement, rows in ((_REMOVE, gone), (_UPSERT, upserted)):
        for batch in batches(rows):
            unit.execute_many(statement, batch)


def current_coverage(transaction: Transaction, organization_id: str) -> dict[str, Computed]:
    """The coverage of every control of the adopted frameworks, computed from stored assessments and matches."""
    return {control: found.computed for control, found in _compute(transaction, organization_id).items()}


def coverage_with(
    transaction: Transaction, organization_id: str, framework_id: str, baseline_id: str | None
) -> dict[str, Ranked]:
    """The coverage and applicability if a framework were adopted with a baseline, or without one (null)."""
    return _compute(transaction, organization_id, (framework_id, baseline_id))


def is_current(transaction: Transaction, organization_id: str) -> bool:
    """Whether stored coverage is correct.

    Ranks may differ, because a change does not update those that it does not read.
    """
    now, stored = _compute(transaction, organization_id), _stored(transaction, organization_id)
    if now.keys() != stored.keys():
        return False
    if any(stored[control] != found._replace(rank=stored[control].rank) for control, found in now.items()):
        return False
    conflicts = dict(map(tuple, transaction.rows(_CONFLICTS, {"organization": organization_id})))
    return conflicts == current_conflicts(transaction, organization_id)


def _compute(
    transaction: Transaction, organization_id: str, also: tuple[str, str | None] | None = None
) -> dict[str, Ranked]:
    key = {"organization": organization_id, "also": None if also is None else also[0]}
    baselines = baselines_of_adoptions(transaction, organization_id)
    if also is not None:
        baselines = {name: one for name, one in {**baselines, also[0]: also[1]}.items() if one is not None}
    selected = selected_controls(transaction, baselines.values())
    rows = transaction.rows(_CONTROLS, key)
    assessments = transaction.rows(_STATEMENTS, key)
    places = {row.id: Place(row.parent_id, row.is_group) for row in rows}
    decisions = {row.control_id: row.is_applicable for row in assessments if row.is_applicable is not None}
    left_out = frozenset(not_applicable(places, scopes_of(rows, decisions, baselines, selected)))
    computed, ranks = compute_ranked(
        places,
        ((source_id, target_id, Level[level]) for source_id, target_id, level in transaction.rows(_MATCHES, key)),
        {row.control_id: Level[row.status] for row in assessments if row.status is not None},
        left_out,
    )
    return {
        control: Ranked(found, ranks.get(control, 0), control not in left_out) for control, found in computed.items()
    }


def stored_coverage(transaction: Transaction, organization_id: str) -> dict[str, Computed]:
    """The stored coverage, as lists show it."""
    return {control: found.computed for control, found in _stored(transaction, organization_id).items()}


def _stored(transaction: Transaction, organization_id: str) -> dict[str, Ranked]:
    return _ranked(transaction.rows(_STORED, {"organization": organization_id}))


def _ranked(rows: Iterable[Any]) -> dict[str, Ranked]:
    return {
        row.control_id: Ranked(Computed(Level[row.status], Level[row.own], row.is_indirect), row.rank, row.applies)
        for row in rows
    }


_CONTROL, _MATCH, _ADOPTION = sql_table(Control), sql_table(ControlMatch), sql_table(FrameworkAdoption)
_FRAMEWORK, _STATEMENT, _EFFECTIVE = sql_table(Framework), sql_table(ControlCoverage), sql_table(EffectiveCoverage)
_ORGANIZATIONS = select(Organization.id).order_by(Organization.id)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_adopted = select(_ADOPTION.c.framework_id).where(_ADOPTION.c.organization_id == _ORGANIZATION)
_considered = union_all(_adopted, select(bindparam("also", type_=_ADOPTION.c.framework_id.type)))
_controls = select(_CONTROL.c.id).where(_CONTROL.c.framework_id.in_(_considered))
_CONTROLS = select(*SCOPE_COLUMNS, _CONTROL.c.parent_id).where(_CONTROL.c.framework_id.in_(_considered))
# Without a join to the controls: with a list of ids, SQLite finds the matches in half of the time.
_MATCHES = select(_MATCH.c.source_control_id, _MATCH.c.target_control_id, _MATCH.c.match_level).where(
    _MATCH.c.source_control_id.in_(_controls),
    _MATCH.c.target_control_id.in_(_controls),
    match_counts(_ORGANIZATION),
)
_STATEMENTS = select(_STATEMENT.c.control_id, assessed_status().label("status"), _STATEMENT.c.is_applicable).where(
    _STATEMENT.c.organization_id == _ORGANIZATION
)
_RESULTS = ("status", "is_indirect", "own", "rank", "applies")
_STORED = select(_EFFECTIVE.c.control_id, *(_EFFECTIVE.c[name] for name in _RESULTS)).where(
    _EFFECTIVE.c.organization_id == _ORGANIZATION
)
_CONFLICTS = select(_EFFECTIVE.c.control_id, _EFFECTIVE.c.conflict).where(
    _EFFECTIVE.c.organization_id == _ORGANIZATION, _EFFECTIVE.c.conflict.is_not(None)
)
_CONTROLS_OF = select(_CONTROL.c.id).where(_CONTROL.c.framework_id.in_(_IDS))
_ADOPTED_CONTROLS = select(func.sum(_FRAMEWORK.c.control_count)).where(_FRAMEWORK.c.id.in_(_adopted))

_is_target = (_EFFECTIVE.c.organization_id == _ORGANIZATION) & (_EFFECTIVE.c.control_id == bindparam("control"))
_REMOVE = delete(_EFFECTIVE).where(_is_target)
_UPSERT = upsert(
    _EFFECTIVE,
    {
        "organization_id": _ORGANIZATION,
        "control_id": bindparam("control"),
        **{name: bindparam(name, type_=_EFFECTIVE.c[name].type) for name in _RESULTS},
    },
    key=("organization_id", "control_id"),
    update=_RESULTS,
)
