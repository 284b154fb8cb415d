"""The rules of frameworks, their controls and their matches, in addition to the rules for all rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import bindparam, func, select, update

from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.changes.validity import OwnRules
from normata.core.db.transaction import batches
from normata.core.schema.table import sql_table
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, Framework, FrameworkAdoption
from normata.frameworks.source_model import SourceDocument
from normata.frameworks.wording_model import ControlWording


def _check_frameworks(_unit: UnitOfWork, rows: Sequence[PendingRow], _references: References) -> None:
    for row in rows:
        if row.final["is_centralized"] != (row.final["organization_id"] is None):
            row.add_fault("is_centralized", "must be true without an organizationId and false with one")


def _check_controls(unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Set the organization and positions of controls, and add faults for parents that are not possible."""
    by_framework: defaultdict[str, list[PendingRow]] = defaultdict(list)
    for row in rows:
        final = row.final
        framework = references.get("framework", final["framework_id"]) or {}
        final["organization_id"] = framework.get("organization_id")
        if final["is_centralized"] is None:
            final["is_centralized"] = final["organization_id"] is None
        by_framework[final["framework_id"]].append(row)
    parents = _parents(unit, rows)
    rooted: set[str] = set()
    for framework_id, controls in by_framework.items():
        for row in controls:
            _check_parent(row, parents, rooted, references)
        _place(unit, framework_id, controls)


def _check_wordings(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Set the organization of wordings to that of their control."""
    for row in rows:
        control = references.get("control", row.final["control_id"]) or {}
        row.final["organization_id"] = control.get("organization_id")


def _check_baselines(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Set the organization of baselines to that of their framework, unless an organization has its own of another."""
    for row in rows:
        framework = references.get("framework", row.final["framework_id"]) or {}
        owner = framework.get("organization_id")
        if owner is not None and row.final["organization_id"] not in (None, owner):
            row.add_fault("organization_id", "is not the organization that the framework belongs to")
        row.final["organization_id"] = owner or row.final["organization_id"]
        if row.stored is not None and row.final["organization_id"] != row.stored["organization_id"]:
            row.add_fault("organization_id", f"cannot be changed: the stored row has {row.stored['organization_id']!r}")


def _check_baseline_controls(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Add faults for controls of other frameworks than the baseline's, and set the baseline's organization."""
    for row in rows:
        baseline = references.get("baseline", row.final["baseline_id"]) or {}
        control = references.get("control", row.final["control_id"]) or {}
        row.final["organization_id"] = baseline.get("organization_id")
        if baseline.get("framework_id") != control.get("framework_id"):
            row.add_fault("control_id", "names a control of another framework than the baseline's")


def _check_sources(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Set the organization of documents to that of their baseline or framework. Compare their texts with the hashes."""
    for row in rows:
        named = row.final["baseline_id"]
        baseline = {} if named is None else references.get("baseline", named) or {}
        framework = references.get("framework", row.final["framework_id"]) or {}
        row.final["organization_id"] = baseline.get("organization_id") or framework.get("organization_id")
        if baseline and baseline.get("framework_id") != row.final["framework_id"]:
            row.add_fault("baseline_id", "names a baseline of another framework")
        if row.long is not None:  # else nothing has changed
            content = row.long["content"].encode()
            if (len(content), sha256(content).hexdigest()) != (row.final["size"], row.final["sha256"]):
                row.add_fault("content", "is not the document with this size and SHA-256")


def _check_adoptions(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    for row in rows:
        if row.final["baseline_id"] is not None:
            baseline = references.get("baseline", row.final["baseline_id"]) or {}
            if baseline.get("framework_id") != row.final["framework_id"]:
                row.add_fault("baseline_id", "names a baseline of another framework")


def _check_matches(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Set the organization of matches to that of their controls, unless an organization has made the match for itself.

    It is null if both controls are centralized and the match is no organization's own.
    """
    for row in rows:
        organizations = {
            control["organization_id"]
            for name in ("source_control_id", "target_control_id")
            if (control := references.get("control", row.final[name])) and control["organization_id"]
        }
        if len(organizations) > 1:
            row.add_fault("target_control_id", "names a control of another organization than the source's")
            continue
        owner = row.final["organization_id"] or min(organizations, default=None)
        if row.stored is not None and owner != row.stored["organization_id"]:
            row.add_fault("organization_id", f"cannot be changed: the stored row has {row.stored['organization_id']!r}")
        elif organizations and owner not in organizations:
            row.add_fault("organization_id", "is not the organization that one of the controls belongs to")
        row.final["organization_id"] = owner


def retirements(rows: Iterable[PendingRow]) -> dict[str, int]:
    """The counts of retired and returned matches for an event, if there are any."""
    counts = {"retired": 0, "returned": 0}
    for row in rows:
        was = row.stored is not None and row.stored["retired_at"] is not None
        if was != (row.final["retired_at"] is not None):
            counts["returned" if was else "retired"] += 1
    return {name: count for name, count in counts.items() if count}


def assessment_faults(statement: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The faults of an assessment as a whole: columns, each with the reason."""
    # ISO/IEC 27001, 6.1.3 d
    if statement["is_applicable"] is False and not (statement["justification"] or "").strip():
        yield "justification", "is required where the control is not applicable"


def taken_in_faults(
    before: Mapping[str, Any], after: Mapping[str, Any], baseline: str | None
) -> Iterator[tuple[str, str]]:
    """The faults of an assessment that includes a control from outside of a baseline; null if it is within."""
    is_new = any(after[name] != before[name] for name in ("is_applicable", "justification"))
    if baseline is not None and after["is_applicable"] and is_new and not (after["justification"] or "").strip():
        yield "justification", f"is required where a control outside of the baseline {baseline} applies"


def _check_statements(unit: UnitOfWork, rows: Sequence[PendingRow], _references: References) -> None:
    for row in rows:
        _note_assessed(row, unit.moment)
        if row.long is not None:  # else nothing has changed
            for column, reason in assessment_faults({**row.final, **row.long}):
                row.add_fault(column, reason)


def _note_assessed(row: PendingRow, moment: str) -> None:
    """Set the time at which the status was assessed, if it is new and the input has no time."""
    final, stored = row.final, row.stored
    if final["coverage_status"] is None:
        return
    if stored is None:
        final["assessed_at"] = final["assessed_at"] or final["updated_at"]
    elif (final["coverage_status"] != stored["coverage_status"]) and final["assessed_at"] == stored["assessed_at"]:
        final["assessed_at"] = moment


RULES: OwnRules = {
    Framework: _check_frameworks,
    Control: _check_controls,
    ControlWording: _check_wordings,
    Baseline: _check_baselines,
    BaselineControl: _check_baseline_controls,
    SourceDocument: _check_sources,
    FrameworkAdoption: _check_adoptions,
    ControlMatch: _check_matches,
    ControlCoverage: _check_statements,
}


def count_controls(unit: UnitOfWork, framework_ids: Iterable[str]) -> None:
    """Update the stored numbers of controls of these frameworks."""
    for batch in batches(sorted(framework_ids)):
        stale = unit.scalars(_MISCOUNTED, {"ids": batch})
        if stale:
            owners = set(unit.scalars(_COUNT, {"ids": stale}))
            for owner in sorted(owners, key=str):
                counted(unit, owner)


def counted(unit: UnitOfWork, organization_id: str | None) -> None:
    """Publish that the number of controls of an organization's frameworks, or of centralized ones, has changed."""
    unit.publish(Change("count", Framework, organization_id))


# --- Parents


def _parents(unit: UnitOfWork, rows: Sequence[PendingRow]) -> Mapping[str, str | None]:
    """The parent of each of these controls and of their ancestors."""
    pending = {row.id: row.final["parent_id"] for row in rows}
    stored = sorted({parent_id for parent_id in pending.values() if parent_id is not None and parent_id not in pending})
    parents: dict[str, str | None] = {}
    for batch in batches(stored):
        parents.update({row.id: row.parent_id for row in unit.rows(_ANCESTORS, {"ids": batch})})
    return parents | pending


def _check_parent(row: PendingRow, parents: Mapping[str, str | None], rooted: set[str], references: References) -> None:
    parent_id = row.final["parent_id"]
    if parent_id is None:
        return
    parent: Mapping[str, Any] = references.get("control", parent_id) or {}
    if parent.get("framework_id") != row.final["framework_id"]:
        row.add_fault("parent_id", "names a control of another framework")
    elif not _leads_to_top(row.id, parents, rooted):
        row.add_fault("parent_id", "leads round in a circle: the control has an ancestor that is its own ancestor")


def _leads_to_top(control_id: str, parents: Mapping[str, str | None], rooted: set[str]) -> bool:
    """Whether a control has no circle above it. ``rooted`` caches the controls for which that is known."""
    path: set[str] = set()
    step: str | None = control_id
    while step is not None and step not in rooted:
        if step in path:
            return False
        path.add(step)
        step = parents.get(step)
    rooted |= path
    return True


# --- Catalog order


def _place(unit: UnitOfWork, framework_id: str, rows: Sequence[PendingRow]) -> None:
    """Give the controls of one framework their catalog order.

    If the input has all its controls, their order is that of the input; else new controls follow at the end.
    """
    [(count, following)] = unit.rows(_PLACES, {"framework": framework_id})
    complete = count == sum(row.stored is not None for row in rows)
    if complete:
        following = 0
    for row in rows:
        if complete or row.stored is None:
            row.final["position"] = following
            following += 1


_FRAMEWORK, _CONTROL = sql_table(Framework), sql_table(Control)

_PLACES: Any = select(func.count(), func.coalesce(func.max(_CONTROL.c.position) + 1, 0)).where(
    _CONTROL.c.framework_id == bindparam("framework")
)

_ancestor = (
    select(_CONTROL.c.id, _CONTROL.c.parent_id)
    .where(_CONTROL.c.id.in_(bindparam("ids", expanding=True)))
    .cte("ancestor", recursive=True)
)
_ancestor = _ancestor.union(
    select(_CONTROL.c.id, _CONTROL.c.parent_id).join(_ancestor, _CONTROL.c.id == _ancestor.c.parent_id)
)
_ANCESTORS = select(_ancestor.c.id, _ancestor.c.parent_id)

_counted = select(func.count()).where(_CONTROL.c.framework_id == _FRAMEWORK.c.id).scalar_subquery()
_AMONG = _FRAMEWORK.c.id.in_(bindparam("ids", expanding=True))
_MISCOUNTED = select(_FRAMEWORK.c.id).where(_AMONG, _FRAMEWORK.c.control_count != _counted)
_COUNT = update(_FRAMEWORK).where(_AMONG).values(control_count=_counted).returning(_FRAMEWORK.c.organization_id)
