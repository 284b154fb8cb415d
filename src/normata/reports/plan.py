"""A plan for the gaps of a framework: what to assess FULL, in which order, and what each step brings everywhere."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import bindparam, func, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.fields import COVERAGE_STATUSES, CoverageStatus
from normata.core.schema.paging import OrganizationQuery, digits_only
from normata.core.schema.wire import Wire
from normata.coverage.graph import View
from normata.coverage.plan import Step, plan
from normata.coverage.stored_graph import StoredGraph
from normata.frameworks.control_wire import ControlReference, FrameworkReference, MatchedControl, reference_to_wire
from normata.frameworks.model import Control, EffectiveCoverage
from normata.reports.counts import StatusCounts
from normata.reports.report_header import Report, ReportHeader, read_report_header
from normata.reports.requirements import EFFECTIVE_OF_CONTROL, FRAMEWORK, IS_APPLICABLE, IS_REQUIREMENT

MAX_STEPS = 50
MAX_NAMED = 5  # requirements of a framework that a step lists
_MOST_CONTROLS = 200_000  # controls in a plan's computation


class PlanQuery(OrganizationQuery):
    """What a plan takes in its query."""

    steps: Annotated[int, Field(ge=1, le=MAX_STEPS, description="How many steps the plan may have."), digits_only] = 12


class PlanEffect(Wire):
    """What a step brings a framework."""

    framework: FrameworkReference = Field(description="The framework.")
    closes: int = Field(description="How many of its requirements become `FULL`.")
    closed: list[ControlReference] = Field(
        description=f"These requirements: in catalog order, the first {MAX_NAMED} of them."
    )
    improves: int = Field(description="How many of its requirements become `PARTIAL`, from `NONE`.")
    improved: list[ControlReference] = Field(
        description=f"These requirements: in catalog order, the first {MAX_NAMED} of them."
    )


class PlanStep(Wire):
    """A control to assess `FULL`, and what follows from that, once the steps before it are done."""

    control: MatchedControl = Field(description="The control to assess `FULL`.")
    effective_coverage_status: CoverageStatus = Field(description="How far it is covered before the step.")
    closes: int = Field(description="How many gaps of the framework become `FULL`.")
    improves: int = Field(description="How many gaps of the framework become `PARTIAL`, from `NONE`.")
    effects: list[PlanEffect] = Field(
        description="What it brings each adopted framework that gains by it: the framework of the plan first."
    )
    effective: StatusCounts = Field(
        description="The applicable requirements of the framework by their effective status after the step."
    )
    effective_everywhere: StatusCounts = Field(description="The same for all adopted frameworks together.")


class GapPlan(Report):
    """Which controls to assess `FULL`, in which order, to close the gaps of a framework in few steps."""

    effective: StatusCounts = Field(
        description="The applicable requirements of the framework by their effective status now."
    )
    effective_everywhere: StatusCounts = Field(description="The same for all adopted frameworks together.")
    steps: list[PlanStep] = Field(description="The steps, in order.")
    is_complete: bool = Field(
        description="False if the organization is too large to plan this far: then `steps` has the first steps that"
        " were found, if any. Else a plan with less steps than were requested closes every gap of the framework."
    )


def read_plan(transaction: Transaction, organization_id: str, framework_id: str, most: int) -> dict[str, Any]:
    """The members of :class:`GapPlan`. Raises NotFound unless the organization has adopted the framework."""
    header = read_report_header(transaction, organization_id, framework_id)
    key = {"organization": organization_id}
    counts = _Counts(transaction.rows(_COUNTED, key), framework_id)
    now = counts.wire()
    controls = _Controls(transaction, header, framework_id)
    view = View(StoredGraph(transaction, organization_id), _MOST_CONTROLS)
    gaps = transaction.scalars(_GAPS, key | {"framework": framework_id})
    steps, is_complete = plan(view, gaps, most, controls.order)
    controls.read([name for step in steps for name in (*step.closed, *step.improved)])
    return (
        header.wire()
        | now
        | {"steps": [_step(step, controls, counts, framework_id) for step in steps], "isComplete": is_complete}
    )


def _step(step: Step, controls: _Controls, counts: _Counts, framework_id: str) -> dict[str, Any]:
    """The members of :class:`PlanStep`; ``counts`` are those before the step, and are brought up to date with it."""
    closed, improved = controls.by_framework(step.closed), controls.by_framework(step.improved)
    for framework, found in closed.items():
        for one in found:
            counts.move(framework, step.closed[one].name, "FULL")
    for framework, found in improved.items():
        for _ in found:
            counts.move(framework, "NONE", "PARTIAL")
    return {
        "control": controls.matched(step.control),
        "effectiveCoverageStatus": step.closed[step.control].name,
        "closes": len(closed.get(framework_id, ())),
        "improves": len(improved.get(framework_id, ())),
        "effects": [
            {
                "framework": controls.frameworks[framework],
                "closes": len(closed.get(framework, ())),
                "closed": [controls.reference(one) for one in closed.get(framework, ())[:MAX_NAMED]],
                "improves": len(improved.get(framework, ())),
                "improved": [controls.reference(one) for one in improved.get(framework, ())[:MAX_NAMED]],
            }
            for framework in controls.frameworks
            if framework in closed or framework in improved
        ],
    } | counts.wire()


class _Counts:
    """How many applicable requirements of each adopted framework have each effective status."""

    def __init__(self, rows: Iterable[Any], framework_id: str) -> None:
        self._framework_id = framework_id
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            self._counts[row.framework_id][row.status] = row.requirements

    def move(self, framework_id: str, before: str, after: str) -> None:
        """Count that a requirement has another status."""
        self._counts[framework_id][before] -= 1
        self._counts[framework_id][after] += 1

    def wire(self) -> dict[str, Any]:
        """The members that a plan and its steps have in common: the counts of its framework, and of all."""
        return {
            "effective": self._wire([self._counts[self._framework_id]]),
            "effectiveEverywhere": self._wire(self._counts.values()),
        }

    @staticmethod
    def _wire(counts: Collection[Counter[str]]) -> dict[str, int]:
        return {status.lower(): sum(one[status] for one in counts) for status in COVERAGE_STATUSES}


class _Controls:
    """What is read of controls: what they are called, and where they stand.

    ``frameworks`` has the adopted ones: that of the plan first, then as lists have them.
    """

    def __init__(self, transaction: Transaction, header: ReportHeader, framework_id: str) -> None:
        self.frameworks = {framework_id: header.adopted[framework_id], **header.adopted}
        self._transaction = transaction
        self._rank = {name: number for number, name in enumerate(self.frameworks)}
        self._rows: dict[str, Any] = {}

    def read(self, controls: Collection[str]) -> None:
        """Read these controls."""
        missing = sorted({*controls} - self._rows.keys())
        for batch in batches(missing):
            self._rows.update((row.id, row) for row in self._transaction.rows(_CONTROLS, {"ids": batch}))

    def order(self, controls: Collection[str]) -> Mapping[str, tuple[int, int, str]]:
        """The framework of the plan first, then as lists have them, and in catalog order."""
        self.read(controls)
        return {control: self._place(control) for control in controls}

    def by_framework(self, controls: Iterable[str]) -> dict[str, list[str]]:
        """These controls by their frameworks, in catalog order."""
        found: dict[str, list[str]] = {}
        for control in sorted(controls, key=self._place):
            found.setdefault(self._rows[control].framework_id, []).append(control)
        return found

    def reference(self, control: str) -> dict[str, Any]:
        """The members of :class:`ControlReference`."""
        row = self._rows[control]
        return reference_to_wire(row)

    def matched(self, control: str) -> dict[str, Any]:
        """The members of :class:`MatchedControl`."""
        row = self._rows[control]
        return self.reference(control) | {"slug": row.slug, "framework": self.frameworks[row.framework_id]}

    def _place(self, control: str) -> tuple[int, int, str]:
        row = self._rows[control]
        return self._rank[row.framework_id], row.position, row.id


_CONTROLS = select(
    Control.id, Control.identifier, Control.name, Control.slug, Control.framework_id, Control.position
).where(Control.id.in_(bindparam("ids", expanding=True)))
# Only controls of adopted frameworks have coverage.
_requirements = (
    select(Control.id, Control.framework_id, EffectiveCoverage.status)
    .join(EffectiveCoverage, EFFECTIVE_OF_CONTROL)
    .where(IS_REQUIREMENT, IS_APPLICABLE)
)
_GAPS = _requirements.where(Control.framework_id == FRAMEWORK, EffectiveCoverage.status != "FULL")
_COUNTED = _requirements.with_only_columns(
    Control.framework_id, EffectiveCoverage.status, func.count().label("requirements")
).group_by(Control.framework_id, EffectiveCoverage.status)
