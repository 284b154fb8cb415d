"""What explanations show in place of ids: names of controls, matches and assessments, read for all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import BindParameter, bindparam, or_, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage import influence, proofs
from normata.coverage.assessments import ASSESSMENT_COLUMNS
from normata.coverage.engine import Level
from normata.coverage.explained import Assessment, ControlName, FrameworkName, Lift, Match, Premise, Step
from normata.coverage.graph import Node, View
from normata.coverage.staleness import EVIDENCE_ENDS_AT, REVIEW_COLUMNS, REWORDED_AT, staleness
from normata.frameworks.counting import match_counts
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, Framework


def level_of(view: View, control: str) -> Level:
    """How far a control that has been read is covered."""
    node = view.node(control)
    return (node and node.effective) or Level.NONE


def pairs_of(step: proofs.ProofStep) -> Iterator[tuple[str, str]]:
    """The source and target of the matches that a step names."""
    if step.inference.rule is proofs.Rule.MATCH:
        [premise] = step.inference.premises
        yield premise.control, step.fact.control
        if step.inference.back:
            yield step.fact.control, premise.control


class Names:
    """The names to show for ids, read for all together."""

    def __init__(self, transaction: Transaction, organization_id: str) -> None:
        self._transaction = transaction
        self._key = {"organization": organization_id}
        self.controls: dict[str, ControlName] = {}
        self._matches: dict[tuple[str, str], Match] = {}

    def read_controls(self, ids: Iterable[str]) -> None:
        """Read the names of controls."""
        for batch in batches(sorted(set(ids) - self.controls.keys())):
            for row in self._transaction.rows(_CONTROLS, {**self._key, "ids": batch}):
                framework = FrameworkName(row.framework_id, row.framework_identifier, row.framework_name)
                self.controls[row.id] = ControlName(row.id, row.identifier, row.name, framework)

    def read_matches(self, pairs: set[tuple[str, str]]) -> None:
        """Read the strongest match of each pair of source and target."""
        for batch in batches(sorted({source for source, _ in pairs})):
            sources = set(batch)
            targets = sorted({target for source, target in pairs if source in sources})
            for some in batches(targets):
                parameters = {**self._key, "sources": batch, "targets": some}
                for row in self._transaction.rows(_MATCHES, parameters):  # the strongest comes last
                    is_own = row.organization_id is not None
                    match = Match(row.id, row.match_level, is_own, row.justification)
                    self._matches[row.source_control_id, row.target_control_id] = match

    def assessment(self, control_id: str) -> Assessment | None:
        """The assessment of a control, null for none."""
        row = self._transaction.row(_STATEMENTS, {**self._key, "control": control_id})
        if row is None:
            return None
        values = row._asdict()
        for name in ("review_due_at", "lapse_reason", "evidence_ends_at", "reworded_at"):
            del values[name]
        return Assessment(**values, stale=staleness(row, self._transaction.time_of_reading()))

    def steps(self, view: View, proof: Sequence[proofs.ProofStep]) -> list[Step]:
        """A proof whose controls and matches have been read."""
        return [self._step(view.node(step.fact.control), step) for step in proof]

    def _step(self, node: Node | None, step: proofs.ProofStep) -> Step:
        fact, inference = step
        pairs = list(pairs_of(step))
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
        """A lift whose controls and matches have been read."""
        return Lift(
            control=self.controls[lift.path[0]],
            level=level_of(view, lift.path[0]).name,
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
        # Rows of other organizations are treated as missing.
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
    *(_STATEMENT.c[name] for name in (*ASSESSMENT_COLUMNS, *REVIEW_COLUMNS)),
    EVIDENCE_ENDS_AT.label("evidence_ends_at"),
    REWORDED_AT.label("reworded_at"),
).where(_STATEMENT.c.organization_id == _ORGANIZATION, _STATEMENT.c.control_id == bindparam("control"))
