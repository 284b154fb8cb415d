"""The explanation of one control's coverage."""

from __future__ import annotations

from collections.abc import Sequence

from normata.core.db.transaction import Transaction
from normata.coverage import influence, proofs
from normata.coverage.applicability import without_decisions
from normata.coverage.engine import Level
from normata.coverage.exclusion import excluding_groups
from normata.coverage.explained import MAX_SHOWN, BaselineName, Effect, Effects, ExcludingGroup, Explanation
from normata.coverage.explained_conflicts import explain_conflict
from normata.coverage.explained_names import Names, pairs_of
from normata.coverage.graph import View
from normata.coverage.stored_graph import StoredGraph
from normata.errors import NotFound
from normata.frameworks.baselines import baseline_outside_of

_MAX_READ = 2_000  # controls, for the proof and for what would lift it


def explain(transaction: Transaction, organization_id: str, control_id: str) -> Explanation:
    """Explain the stored coverage of a control. Raises NotFound if the organization can see no such control.

    The caller must check that the organization may be read. However large the catalogs are, it reads some hundred
    controls: more distant ones are left out, and the explanation says so.
    """
    graph = StoredGraph(transaction, organization_id)
    view = View(graph, _MAX_READ)
    view.read([control_id])
    node = view.node(control_id)
    names = Names(transaction, organization_id)
    names.read_controls([control_id])
    if node is None or control_id not in names.controls:
        raise NotFound
    level = node.effective or Level.NONE
    found = proofs.ProofResult((), (), is_complete=True)
    lifts: tuple[Sequence[influence.Lift], bool] = ((), True)
    lacking: list[str] = []
    lacking_count = 0
    effects: list[influence.Effect] | None = []
    if node.counts:
        if level > Level.NONE:
            found = proofs.prove(view, proofs.Fact(control_id, level), MAX_SHOWN)
        if level < Level.FULL:
            lifts = influence.lifts(view, control_id, MAX_SHOWN)
            view.read_counts([control_id])
            below = view.counts(control_id)
            lacking_count = below.number - below.full
            lacking = graph.lacking(control_id, MAX_SHOWN) if lacking_count else []
    if node.is_adopted and (node.assessed > Level.NONE or not node.is_applicable):
        applies = without_decisions(transaction, organization_id, control_id, influence.MOST_FOLLOWED)
        effects = influence.effects(graph, control_id, applies)
    shown = sorted(effects or (), key=lambda one: (one.without - one.level, one.control))[:MAX_SHOWN]
    names.read_controls(
        [
            *(step.fact.control for proof in (found.proof, *found.others) for step in proof),
            *(effect.control for effect in shown),
            *(control for lift in lifts[0] for control in lift.path),
            *lacking,
        ]
    )
    names.read_matches(
        {
            *(pair for proof in (found.proof, *found.others) for step in proof for pair in pairs_of(step)),
            *(pair for lift in lifts[0] for pair in zip(lift.path, lift.path[1:], strict=False)),
        }
    )
    assessment = names.assessment(control_id)
    is_inherited = (
        node.is_adopted and not node.is_applicable and (assessment is None or assessment.is_applicable is None)
    )
    outside = baseline_outside_of(transaction, organization_id, control_id)
    return Explanation(
        control=names.controls[control_id],
        assessment=assessment,
        excluded_by=_excluded_by(transaction, organization_id, control_id) if is_inherited else None,
        outside_of_baseline=None if outside is None else BaselineName(*outside),
        conflict=explain_conflict(transaction, organization_id, control_id, names) if node.counts else None,
        effective_coverage_status=node.effective.name if node.is_adopted and node.effective is not None else None,
        is_indirectly_covered=node.is_adopted and level > (node.own or Level.NONE),
        proof=names.steps(view, found.proof),
        is_proved=bool(found.proof) or level == Level.NONE,
        others=[names.steps(view, proof) for proof in found.others],
        others_are_all=found.is_complete,
        effects=Effects(
            None if effects is None else len(effects),
            [Effect(names.controls[one.control], one.level.name, one.without.name) for one in shown],
        ),
        lifts=[names.lift(view, lift) for lift in lifts[0]],
        lifts_are_all=lifts[1],
        lacking=[names.controls[child] for child in lacking],
        lacking_count=lacking_count,
    )


def _excluded_by(transaction: Transaction, organization_id: str, control_id: str) -> ExcludingGroup | None:
    row = excluding_groups(transaction, organization_id, [control_id]).get(control_id)
    if row is None:
        return None
    return ExcludingGroup(row.id, row.identifier, row.name, row.justification, row.reasons or [])
