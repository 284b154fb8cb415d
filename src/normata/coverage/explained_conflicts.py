"""The explanation of a conflict: what an assessment cannot be right beside, and whose assessments that rests on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import BindParameter, bindparam, func, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage import proofs
from normata.coverage.engine import Level
from normata.coverage.explained import MAX_SHOWN, ConflictMatch, ExplainedConflict, MappingName, OtherAssessment
from normata.coverage.explained_names import Names
from normata.coverage.graph import View
from normata.coverage.hierarchy import IsIdOf, below_groups, is_requirement_where
from normata.coverage.influence import Without
from normata.coverage.stored_graph import StoredGraph
from normata.frameworks.counting import applies, assessed_status, match_counts
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, MappingDocument

_MAX_READ = 1_000  # controls


def explain_conflict(
    transaction: Transaction, organization_id: str, control_id: str, names: Names
) -> ExplainedConflict | None:
    """What the assessment of a control cannot be right beside; null where it is not in conflict."""
    key = {"organization": organization_id, "control": control_id}
    kind: str | None = transaction.scalar(_KIND, key)
    if kind is None:
        return None
    if kind == "BELOW":
        rows = transaction.rows(_LESS_BELOW, {"organization": organization_id, "ids": [control_id]})
        names.read_controls(row.control_id for row in rows)
        below = [_assessment(row, names) for row in rows]
        return ExplainedConflict(kind, [], True, below, rows[0].count_of_all if rows else 0)
    rows = transaction.rows(_GIVING, key)
    sources = list(dict.fromkeys(row.source_control_id for row in rows))
    resting_on = _resting_on(transaction, organization_id, control_id, sources[:MAX_SHOWN])
    assessed = {one for found in resting_on.values() for one in found}
    names.read_controls({*resting_on, *assessed})
    assessments = _assessments(transaction, organization_id, assessed, names)
    matches = [
        _match(row, names, [assessments[one] for one in resting_on[row.source_control_id] if one in assessments])
        for row in rows
        if row.source_control_id in resting_on
    ]
    return ExplainedConflict(kind, matches, len(sources) <= MAX_SHOWN, [], 0)


def _resting_on(
    transaction: Transaction, organization_id: str, control_id: str, sources: Sequence[str]
) -> dict[str, list[str]]:
    """The controls by whose assessments each of these sources is FULL, without any help of one control.

    What is FULL through that control alone is left out: to set its match aside would change nothing. For a group it
    would, which is FULL by what is below it, too: there it stays. So does what is too far to be followed. Both stay
    with nothing that they rest on.
    """
    view = View(Without(StoredGraph(transaction, organization_id), control_id, {control_id: False}), _MAX_READ)
    view.read([control_id, *sources])
    node = view.node(control_id)
    is_group = node is not None and node.is_group
    found: dict[str, list[str]] = {}
    for source in sources:
        result = proofs.prove(view, proofs.Fact(source, Level.FULL), 0)
        if result.proof or is_group or not result.is_complete:
            steps = (step for step in result.proof if step.inference.rule is proofs.Rule.ASSESSMENT)
            found[source] = [step.fact.control for step in steps][:MAX_SHOWN]
    return found


def _assessments(
    transaction: Transaction, organization_id: str, controls: Collection[str], names: Names
) -> dict[str, OtherAssessment]:
    return {
        row.control_id: _assessment(row, names)
        for batch in batches(sorted(controls))
        for row in transaction.rows(_ASSESSMENTS, {"organization": organization_id, "ids": batch})
    }


def _assessment(row: Any, names: Names) -> OtherAssessment:
    return OtherAssessment(names.controls[row.control_id], row.assessed, row.coverage_gap, row.owner_id)


def _match(row: Any, names: Names, assessments: list[OtherAssessment]) -> ConflictMatch:
    mapping = None
    if row.document_id is not None:
        mapping = MappingName(row.document_id, row.document, row.document_name, row.version)
    return ConflictMatch(
        id=row.id,
        match_level=row.match_level,
        is_own=row.organization_id is not None,
        justification=row.justification,
        rationale=row.rationale,
        strength=row.strength,
        mapping=mapping,
        source_control=names.controls[row.source_control_id],
        assessments=assessments,
    )


_CONTROL, _MATCH, _DOCUMENT = sql_table(Control), sql_table(ControlMatch), sql_table(MappingDocument)
_STATEMENT, _EFFECTIVE = sql_table(ControlCoverage), sql_table(EffectiveCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_CONTROL_ID: BindParameter[str] = bindparam("control")

_KIND = select(_EFFECTIVE.c.conflict).where(
    _EFFECTIVE.c.organization_id == _ORGANIZATION, _EFFECTIVE.c.control_id == _CONTROL_ID
)
# All matches of a pair, not only the strongest, because each of them alone makes the control FULL.
_GIVING = (
    select(
        _MATCH.c.id,
        _MATCH.c.source_control_id,
        _MATCH.c.match_level,
        _MATCH.c.organization_id,
        _MATCH.c.justification,
        _MATCH.c.rationale,
        _MATCH.c.strength,
        _DOCUMENT.c.id.label("document_id"),
        _DOCUMENT.c.document,
        _DOCUMENT.c.name.label("document_name"),
        _DOCUMENT.c.version,
    )
    .join(
        _EFFECTIVE,
        (_EFFECTIVE.c.control_id == _MATCH.c.source_control_id) & (_EFFECTIVE.c.organization_id == _ORGANIZATION),
    )
    .outerjoin(_DOCUMENT, _DOCUMENT.c.id == _MATCH.c.mapping_document_id)
    .where(
        _MATCH.c.target_control_id == _CONTROL_ID,
        _MATCH.c.match_level == "FULL",
        match_counts(_ORGANIZATION),
        _EFFECTIVE.c.status == "FULL",
        applies(_EFFECTIVE),
    )
    .order_by(_EFFECTIVE.c.rank, _MATCH.c.source_control_id, _MATCH.c.id)
)

_of_organization = _STATEMENT.c.organization_id == _ORGANIZATION
_ASSESSED = (
    _STATEMENT.c.control_id,
    assessed_status().label("assessed"),
    _STATEMENT.c.coverage_gap,
    _STATEMENT.c.owner_id,
)
_ASSESSMENTS = select(*_ASSESSED).where(
    _of_organization,
    _STATEMENT.c.control_id.in_(bindparam("ids", expanding=True)),
    assessed_status().is_not(None),
)
_below = below_groups()
_LESS_BELOW = (
    select(*_ASSESSED, func.count().over().label("count_of_all"))
    .join(_below, IsIdOf(_STATEMENT.c.control_id, _below.c.id))
    .join(_EFFECTIVE, IsIdOf(_EFFECTIVE.c.control_id, _below.c.id) & (_EFFECTIVE.c.organization_id == _ORGANIZATION))
    .join(_CONTROL, IsIdOf(_CONTROL.c.id, _below.c.id))
    .where(_of_organization, is_requirement_where(_below, applies(_EFFECTIVE), assessed_status() < "FULL"))
    .order_by(_CONTROL.c.position, _CONTROL.c.id)
    .limit(MAX_SHOWN)
)
