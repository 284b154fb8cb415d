"""The explanation of one control's coverage, in plain values that a request or a command can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import BindParameter, bindparam, or_, select

from normata.core.db.transaction import Transaction, batches
from normata.core.db.types import now
from normata.core.schema.table import sql_table
from normata.coverage import influence, proofs
from normata.coverage.applicability import without_decisions
from normata.coverage.engine import Level
from normata.coverage.graph import Node, View
from normata.coverage.staleness import staleness
from normata.coverage.stored_graph import StoredGraph
from normata.errors import NotFound
from normata.frameworks.counting import match_counts
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, Framework

MAX_SHOWN = 10  # of each list: other proofs, effects, lifts, children that are lacking

_MAX_READ = 2_000  # controls, for the proof and for what would lift it


@dataclass(frozen=True, slots=True)
class FrameworkName:
    """A framework, by the names that people know it by."""

    id: str
    identifier: str
    name: str


@dataclass(frozen=True, slots=True)
class ControlName:
    """A control, by the names that people know it by."""

    id: str
    identifier: str
    name: str
    framework: FrameworkName


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the organization itself says of a control."""

    id: str
    coverage_status: str | None
    coverage_gap: str | None
    is_applicable: bool | None
    justification: str | None
    reasons: list[str]
    owner_id: str | None
    note: str | None
    review_by: str | None
    assessed_at: str | None
    lapsed_status: str | None
    lapsed_at: str | None
    stale: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Match:
    """A match, the strongest from its source to its target. ``is_own`` is true where the organization alone sees it."""

    id: str
    match_level: str
    is_own: bool
    justification: str | None


@dataclass(frozen=True, slots=True)
class Premise:
    """A fact that an earlier step of a proof has shown: that a control is FULL, or is PARTIAL or better."""

    control_id: str
    level: str


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a proof: that ``control`` is FULL, or is PARTIAL or better (``level``), and why.

    ``rule`` is ASSESSMENT (``assessed`` has its status), MATCH (``match`` leads here from the only premise) or
    ROLL_UP (the premises are requirements below it; ``premise_count`` is how many it rests on, and the first of them
    are shown and followed). ``match_back`` is there where the match gives PARTIAL because its source lies
    within the control: it is FULL, and leads back.
    """

    control: ControlName
    level: str
    rule: str
    assessed: str | None
    match: Match | None
    match_back: Match | None
    premises: list[Premise]
    premise_count: int


@dataclass(frozen=True, slots=True)
class Effect:
    """Another control that rests on the statement: how far it is covered, and how far it would be without it."""

    control: ControlName
    level: str
    without: str


@dataclass(frozen=True, slots=True)
class Effects:
    """What the control's own assessment does for others.

    ``count`` is how many would be less covered without it, ``items`` has the first of them. Null where so many hang
    together that it was not followed to the end.
    """

    count: int | None
    items: list[Effect]


@dataclass(frozen=True, slots=True)
class Lift:
    """A control that is not covered and would lift this one: were it ``needs``, this one would be ``gives``.

    ``level`` is how far it is covered now. ``path`` has the controls that the matches lead through, from it to this
    one, both included; ``matches`` has the match from each of them to the next.
    """

    control: ControlName
    level: str
    needs: str
    gives: str
    path: list[ControlName]
    matches: list[Match]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a control is covered as far as it is. ``dataclasses.asdict`` makes JSON's own types of it.

    ``effective_coverage_status`` is null where no adopted framework has the control. ``proof`` is the shortest one,
    each step after those that it rests on, the control itself last; it is empty where the status is NONE. ``is_proved``
    tells that there is a proof wherever one is needed: it is false where the proof is too long to be followed, or the
    stored coverage comes from a version that does not rank it. ``others``
    are proofs from one other assessment each, nearest first, and ``others_are_all`` is true where there are no more.
    ``lifts`` would lift the control, nearest first. ``lacking`` are applicable requirements below a group that are not
    FULL, where the group is not FULL itself, and ``lacking_count`` is how many there are.
    """

    control: ControlName
    assessment: Assessment | None
    effective_coverage_status: str | None
    is_indirectly_covered: bool
    proof: list[Step]
    is_proved: bool
    others: list[list[Step]]
    others_are_all: bool
    effects: Effects
    lifts: list[Lift]
    lifts_are_all: bool
    lacking: list[ControlName]
    lacking_count: int


def explain(transaction: Transaction, organization_id: str, control_id: str) -> Explanation:
    """Explain the stored coverage of a control. Raises NotFound where the organization can see no such control.

    The caller sees to it that the organization may be read. However large the catalogs are, it looks at some hundred
    controls: what is further away is left out, and the explanation says so.
    """
    graph = StoredGraph(transaction, organization_id)
    view = View(graph, _MAX_READ)
    view.read([control_id])
    node = view.node(control_id)
    names = _Names(transaction, organization_id)
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
            *(pair for proof in (found.proof, *found.others) for step in proof for pair in _pairs(step)),
            *(pair for lift in lifts[0] for pair in zip(lift.path, lift.path[1:], strict=False)),
        }
    )
    return Explanation(
        control=names.controls[control_id],
        assessment=names.assessment(control_id),
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


def _level(view: View, control: str) -> Level:
    node = view.node(control)
    return (node and node.effective) or Level.NONE


def _pairs(step: proofs.ProofStep) -> Iterable[tuple[str, str]]:
    """The source and target of the matches that a step names."""
    if step.inference.rule is proofs.Rule.MATCH:
        [premise] = step.inference.premises
        yield premise.control, step.fact.control
        if step.inference.back:
            yield step.fact.control, premise.control


class _Names:
    """What people are shown in place of ids, read for all at once."""

    def __init__(self, transaction: Transaction, organization_id: str) -> None:
        self._transaction = transaction
        self._key = {"organization": organization_id}
        self.controls: dict[str, ControlName] = {}
        self._matches: dict[tuple[str, str], Match] = {}

    def read_controls(self, ids: Iterable[str]) -> None:
        for batch in batches(sorted(set(ids) - self.controls.keys())):
            for row in self._transaction.rows(_CONTROLS, {**self._key, "ids": batch}):
                framework = FrameworkName(row.framework_id, row.framework_identifier, row.framework_name)
                self.controls[row.id] = ControlName(row.id, row.identifier, row.name, framework)

    def read_matches(self, pairs: set[tuple[str, str]]) -> None:
        for batch in batches(sorted({source for source, _ in pairs})):
            sources = set(batch)
            targets = sorted({target for source, target in pairs if source in sources})
            for some in batches(targets):
                parameters = {**self._key, "sources": batch, "targets": some}
                for row in self._transaction.rows(_MATCHES, parameters):  # the strongest last
                    is_own = row.organization_id is not None
                    match = Match(row.id, row.match_level, is_own, row.justification)
                    self._matches[row.source_control_id, row.target_control_id] = match

    def assessment(self, control_id: str) -> Assessment | None:
        row = self._transaction.row(_STATEMENTS, {**self._key, "control": control_id})
        if row is None:
            return None
        values = row._asdict()
        del values["review_due_at"]
        return Assessment(**values, stale=staleness(row, now()))

    def steps(self, view: View, proof: Sequence[proofs.ProofStep]) -> list[Step]:
        return [self._step(view.node(step.fact.control), step) for step in proof]

    def _step(self, node: Node | None, step: proofs.ProofStep) -> Step:
        fact, inference = step
        pairs = list(_pairs(step))
        is_assessment = inference.rule is proofs.Rule.ASSESSMENT
        return Step(
            control=self.controls[fact.control],
            level=fact.level.name,
            rule=str(inference.rule),
            assessed=node.assessed.name if is_assessment and node else None,
            match=self._matches[pairs[0]] if pairs else None,
            match_back=self._matches[pairs[1]] if len(pairs) > 1 else None,
            premises=[Premise(premise.control, premise.level.name) for premise in inference.premises],
            premise_count=len(inference.premises) + inference.hidden,
        )

    def lift(self, view: View, lift: influence.Lift) -> Lift:
        return Lift(
            control=self.controls[lift.path[0]],
            level=_level(view, lift.path[0]).name,
            needs=lift.needs.name,
            gives=lift.gives.name,
            path=[self.controls[control] for control in lift.path],
            matches=[self._matches[pair] for pair in zip(lift.path, lift.path[1:], strict=False)],
        )


_CONTROL, _FRAMEWORK = sql_table(Control), sql_table(Framework)
_MATCH, _STATEMENT = sql_table(ControlMatch), sql_table(ControlCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")

_CONTROLS = (
    select(
        _CONTROL.c.id,
        _CONTROL.c.identifier,
        _CONTROL.c.name,
        _CONTROL.c.framework_id,
        _FRAMEWORK.c.identifier.label("framework_identifier"),
        _FRAMEWORK.c.name.label("framework_name"),
    )
    .join(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
    .where(
        _CONTROL.c.id.in_(bindparam("ids", expanding=True)),
        # What is another organization's own does not exist.
        or_(_CONTROL.c.organization_id.is_(None), _CONTROL.c.organization_id == _ORGANIZATION),
    )
)
_MATCHES = (
    select(
        _MATCH.c.id,
        _MATCH.c.source_control_id,
        _MATCH.c.target_control_id,
        _MATCH.c.match_level,
        _MATCH.c.organization_id,
        _MATCH.c.justification,
    )
    .where(
        _MATCH.c.source_control_id.in_(bindparam("sources", expanding=True)),
        _MATCH.c.target_control_id.in_(bindparam("targets", expanding=True)),
        match_counts(_ORGANIZATION),
    )
    .order_by(_MATCH.c.match_level, _MATCH.c.organization_id.is_not(None), _MATCH.c.id)
)
_STATEMENTS = select(
    _STATEMENT.c.id,
    _STATEMENT.c.coverage_status,
    _STATEMENT.c.coverage_gap,
    _STATEMENT.c.is_applicable,
    _STATEMENT.c.justification,
    _STATEMENT.c.reasons,
    _STATEMENT.c.owner_id,
    _STATEMENT.c.note,
    _STATEMENT.c.review_by,
    _STATEMENT.c.assessed_at,
    _STATEMENT.c.lapsed_status,
    _STATEMENT.c.lapsed_at,
    _STATEMENT.c.review_due_at,
).where(_STATEMENT.c.organization_id == _ORGANIZATION, _STATEMENT.c.control_id == bindparam("control"))
