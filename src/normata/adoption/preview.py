"""The preview of adopting a framework, or another baseline of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from pydantic import Field
from sqlalchemy import BindParameter, bindparam, func, select

from normata.adoption.adoption import UNCHANGED, NamedBaseline, find_baseline
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.fields import CoverageStatus
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.coverage.engine import Level
from normata.coverage.prospect import Former, prospect_of
from normata.errors import NotFound
from normata.frameworks.baselines import BaselineReference, baseline_reference
from normata.frameworks.control_wire import ControlReference, FrameworkReference, reference_to_wire
from normata.frameworks.model import Control, EffectiveCoverage, Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to
from normata.reports.counts import StatusCounts
from normata.reports.requirements import EFFECTIVE_OF_CONTROL, IS_APPLICABLE, IS_REQUIREMENT, read_requirements

MAX_GAPS = 500


class PreviewedGap(ControlReference):
    """A requirement that would be covered in part, or not at all."""

    effective_coverage_status: CoverageStatus = Field(description="How far it would be covered.")


class Gain(Wire):
    """The coverage that another adopted framework would gain."""

    framework: FrameworkReference = Field(description="The framework.")
    gained: int = Field(description="How many of its applicable requirements would be covered further than now.")
    lost: int = Field(description="How many of them would be covered less than now.")
    effective: StatusCounts = Field(description="Its applicable requirements by the status that they would have.")


class AdoptionPreview(Wire):
    """The coverage that adopting a framework would give, according to the stored assessments."""

    framework: FrameworkReference = Field(description="The framework.")
    is_adopted: bool = Field(
        description="Whether the organization has adopted it already: then only another baseline would change anything."
    )
    baseline: BaselineReference | None = Field(
        description="The baseline that the adoption would have; null if the whole framework would apply."
    )
    applicable: int = Field(description="How many requirements would apply to the organization.")
    not_applicable: int = Field(
        description="How many would not, as was assessed when the framework was adopted before, or by the baseline."
    )
    effective: StatusCounts = Field(description="The applicable requirements by the status that they would have.")
    gaps: list[PreviewedGap] = Field(
        description="The applicable requirements that would not be covered fully: in catalog order, the first"
        f" {MAX_GAPS} of them."
    )
    others: list[Gain] = Field(
        description="Other adopted frameworks of which requirements would be covered further, or less."
    )


def preview_adoption(
    transaction: Transaction, organization_id: str, framework_id: str, baseline: NamedBaseline = UNCHANGED
) -> dict[str, Any]:
    """The preview of adopting a framework, or another baseline of it, as wire values.

    Raises NotFound if the organization cannot see the framework, and NoSuchBaseline.
    """
    key = {"organization": organization_id, "framework": framework_id}
    framework = transaction.row(_VISIBLE, key)
    if framework is None:
        raise NotFound
    found = find_baseline(transaction, organization_id, framework_id, baseline)
    baseline_id = framework.baseline_id if found is UNCHANGED else found
    if framework.adoption_id is None:
        was: Former = "new"
    else:
        was = "same" if baseline_id == framework.baseline_id else "other"
    own, others = prospect_of(transaction, organization_id, framework_id, baseline_id, was)
    requirements = read_requirements(transaction, organization_id, framework_id)
    applicable, then = [], {}
    for requirement in requirements:
        coverage = own.get(requirement.id)
        if requirement.is_applicable if coverage is None else coverage.applies:
            applicable.append(requirement)
            then[requirement.id] = Level[requirement.effective] if coverage is None else coverage.computed.effective
    gaps = [requirement for requirement in applicable if then[requirement.id] < Level.FULL]
    return {
        "framework": _reference(framework),
        "isAdopted": framework.adoption_id is not None,
        "baseline": baseline_reference(transaction, baseline_id),
        "applicable": len(applicable),
        "notApplicable": len(requirements) - len(applicable),
        "effective": _wire(Counter(then.values())),
        "gaps": [reference_to_wire(gap) | {"effectiveCoverageStatus": then[gap.id].name} for gap in gaps[:MAX_GAPS]],
        "others": _gains(transaction, organization_id, others),
    }


def _gains(
    transaction: Transaction, organization_id: str, changes: Mapping[str, tuple[Level, Level]]
) -> list[dict[str, Any]]:
    """The frameworks whose applicable requirements would change."""
    changed: defaultdict[str, list[tuple[Level, Level]]] = defaultdict(list)  # by framework
    for batch in batches(sorted(changes)):
        for control_id, framework_id in transaction.rows(_CHANGED, {"organization": organization_id, "ids": batch}):
            changed[framework_id].append(changes[control_id])
    found: dict[str, tuple[Any, Counter[Level]]] = {}
    for batch in batches(sorted(changed)):
        for row in transaction.rows(_COUNTED, {"organization": organization_id, "ids": batch}):
            found.setdefault(row.id, (row, Counter()))[1][Level[row.status]] += row.number
    for framework_id, (_, counts) in found.items():
        counts.subtract(before for before, _ in changed[framework_id])
        counts.update(after for _, after in changed[framework_id])
    return [
        {
            "framework": _reference(framework),
            "gained": sum(after > before for before, after in changed[framework.id]),
            "lost": sum(after < before for before, after in changed[framework.id]),
            "effective": _wire(counts),
        }
        for framework, counts in sorted(found.values(), key=lambda one: (one[0].identifier_key, one[0].id))
    ]


def _wire(counts: Mapping[Level, int]) -> dict[str, int]:
    return {level.name.lower(): counts.get(level, 0) for level in Level}


def _reference(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "identifier": row.identifier,
        "identifierColor": row.identifier_color,
    }


_FRAMEWORK, _ADOPTION = sql_table(Framework), sql_table(FrameworkAdoption)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_PREVIEWED: BindParameter[str] = bindparam("framework")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_SHOWN = (_FRAMEWORK.c.id, _FRAMEWORK.c.name, _FRAMEWORK.c.identifier, _FRAMEWORK.c.identifier_color)

_VISIBLE = (
    select(*_SHOWN, _ADOPTION.c.id.label("adoption_id"), _ADOPTION.c.baseline_id)
    .outerjoin(
        _ADOPTION, (_ADOPTION.c.framework_id == _FRAMEWORK.c.id) & (_ADOPTION.c.organization_id == _ORGANIZATION)
    )
    .where(_FRAMEWORK.c.id == _PREVIEWED, visible_to(_ORGANIZATION))
)
_CHANGED = (
    select(Control.id, Control.framework_id)
    .join(EffectiveCoverage, EFFECTIVE_OF_CONTROL)
    .where(Control.id.in_(_IDS), IS_REQUIREMENT, IS_APPLICABLE)
)
_COUNTED = (
    select(*_SHOWN, _FRAMEWORK.c.identifier_key, EffectiveCoverage.status, func.count().label("number"))
    .join(Control, Control.framework_id == _FRAMEWORK.c.id)
    .join(EffectiveCoverage, EFFECTIVE_OF_CONTROL)
    .where(_FRAMEWORK.c.id.in_(_IDS), IS_REQUIREMENT, IS_APPLICABLE)
    .group_by(*_SHOWN, _FRAMEWORK.c.identifier_key, EffectiveCoverage.status)
)
