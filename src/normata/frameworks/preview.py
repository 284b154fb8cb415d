"""What adopting a framework would bring, before anybody does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pydantic import Field
from sqlalchemy import BindParameter, bindparam, func, select

from normata.db.transaction import Transaction
from normata.errors import NotFound
from normata.frameworks.control_wire import ControlReference, FrameworkReference
from normata.frameworks.coverage.engine import Computed, Level
from normata.frameworks.coverage.recompute import current_coverage, stored_coverage
from normata.frameworks.model import Control, Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to
from normata.schema.fields import CoverageStatus
from normata.schema.table import sql_table
from normata.schema.wire import Wire

MOST_GAPS = 500


class Counts(Wire):
    """How many controls have each effective status."""

    none: int = Field(description="Controls that nothing covers.")
    partial: int = Field(description="Controls that are covered in part.")
    full: int = Field(description="Controls that are covered.")


class PreviewedGap(ControlReference):
    """A control without children that would be covered in part, or not at all."""

    effective_coverage_status: CoverageStatus = Field(description="How far it would be covered.")


class Gain(Wire):
    """What another adopted framework would gain."""

    framework: FrameworkReference = Field(description="The framework.")
    gained: int = Field(description="Controls that would be covered further than now.")
    effective: Counts = Field(description="Its controls by the status that they would have.")


class AdoptionPreview(Wire):
    """What adopting a framework would bring, from what is stated already."""

    framework: FrameworkReference = Field(description="The framework.")
    is_adopted: bool = Field(description="Whether the organization has adopted it already: then nothing would change.")
    controls: int = Field(description="How many controls it has, categories included.")
    requirements: int = Field(description="How many of them have no children.")
    effective: Counts = Field(description="Its requirements by the status that they would have.")
    gaps: list[PreviewedGap] = Field(
        description=f"The requirements that would not be covered fully, in catalog order; the first {MOST_GAPS}."
    )
    others: list[Gain] = Field(description="Other adopted frameworks of which controls would be covered further.")


def preview_adoption(transaction: Transaction, organization_id: str, framework_id: str) -> dict[str, Any]:
    """What adopting a framework would bring, as it travels. Raises NotFound where the organization cannot see it."""
    key = {"organization": organization_id, "framework": framework_id}
    framework = transaction.row(_VISIBLE, key)
    if framework is None:
        raise NotFound
    now = stored_coverage(transaction, organization_id)
    then = current_coverage(transaction, organization_id, also=framework_id)
    controls = transaction.rows(_CONTROLS, key)
    leaves = [row for row in controls if not row.children]
    gaps = [row for row in leaves if then[row.id].effective < Level.FULL]
    return {
        "framework": _reference(framework),
        "isAdopted": framework.adoption_id is not None,
        "controls": len(controls),
        "requirements": len(leaves),
        "effective": _counts(then[row.id] for row in leaves),
        "gaps": [
            {
                "id": row.id,
                "identifier": row.identifier,
                "name": row.name,
                "effectiveCoverageStatus": then[row.id].effective.name,
            }
            for row in gaps[:MOST_GAPS]
        ],
        "others": _gains(transaction, key, now, then),
    }


def _gains(
    transaction: Transaction, key: Mapping[str, str], now: Mapping[str, Computed], then: Mapping[str, Computed]
) -> list[dict[str, Any]]:
    gained = {control_id for control_id, before in now.items() if then[control_id].effective > before.effective}
    if not gained:
        return []
    found: dict[str, tuple[Any, list[str]]] = {}
    for row in transaction.rows(_OTHERS, key):
        found.setdefault(row.id, (row, []))[1].append(row.control_id)
    return [
        {
            "framework": _reference(framework),
            "gained": len(gained.intersection(control_ids)),
            "effective": _counts(then[control_id] for control_id in control_ids),
        }
        for framework, control_ids in found.values()
        if not gained.isdisjoint(control_ids)
    ]


def _counts(computed: Any) -> dict[str, int]:
    counted = Counter(one.effective for one in computed)
    return {level.name.lower(): counted[level] for level in Level}


def _reference(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "identifier": row.identifier,
        "identifierColor": row.identifier_color,
    }


_CONTROL, _FRAMEWORK, _ADOPTION = sql_table(Control), sql_table(Framework), sql_table(FrameworkAdoption)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_GIVEN: BindParameter[str] = bindparam("framework")
_SHOWN = (_FRAMEWORK.c.id, _FRAMEWORK.c.name, _FRAMEWORK.c.identifier, _FRAMEWORK.c.identifier_color)

_VISIBLE = (
    select(*_SHOWN, _ADOPTION.c.id.label("adoption_id"))
    .outerjoin(
        _ADOPTION, (_ADOPTION.c.framework_id == _FRAMEWORK.c.id) & (_ADOPTION.c.organization_id == _ORGANIZATION)
    )
    .where(_FRAMEWORK.c.id == _GIVEN, visible_to(_ORGANIZATION))
)
_child = _CONTROL.alias("child")
_children = select(func.count()).where(_child.c.parent_id == _CONTROL.c.id).scalar_subquery()
_CONTROLS = (
    select(_CONTROL.c.id, _CONTROL.c.identifier, _CONTROL.c.name, _children.label("children"))
    .where(_CONTROL.c.framework_id == _GIVEN)
    .order_by(_CONTROL.c.position, _CONTROL.c.id)
)
_OTHERS = (
    select(*_SHOWN, _CONTROL.c.id.label("control_id"))
    .join(_ADOPTION, _ADOPTION.c.framework_id == _FRAMEWORK.c.id)
    .join(_CONTROL, _CONTROL.c.framework_id == _FRAMEWORK.c.id)
    .where(_ADOPTION.c.organization_id == _ORGANIZATION, _FRAMEWORK.c.id != _GIVEN)
    .order_by(_FRAMEWORK.c.identifier_key, _FRAMEWORK.c.id)
)
