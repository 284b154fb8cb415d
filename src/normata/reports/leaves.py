"""The leaves of a framework, with what is said of each and what follows.

A leaf is a control without children. Reports count leaves: what lies above them only gathers them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import BindParameter, and_, bindparam, func, literal, select, true
from sqlalchemy.orm import aliased

from normata.core.db.transaction import Transaction
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage

ORGANIZATION: BindParameter[str] = bindparam("organization")
FRAMEWORK: BindParameter[str] = bindparam("framework")


def read_leaves(transaction: Transaction, organization_id: str, framework_id: str) -> list[Any]:
    """The leaves of a framework that the organization has adopted, in catalog order, in one statement."""
    return transaction.rows(_LEAVES, {"organization": organization_id, "framework": framework_id})


def parent_of(leaf: Any) -> Mapping[str, Any] | None:
    """The control above a leaf, as it travels; null at the top."""
    if leaf.parent_id is None:
        return None
    return {"id": leaf.parent_id, "identifier": leaf.parent_identifier, "name": leaf.parent_name}


_none = literal("NONE", ControlCoverage.coverage_status.type)

# What is said of a control, and what follows for it: without a statement it applies, and nothing is covered.
IS_APPLICABLE = func.coalesce(ControlCoverage.is_applicable, true())
ASSESSED_STATUS = func.coalesce(ControlCoverage.coverage_status, _none)
IS_ASSESSED = ControlCoverage.id.is_not(None)
EFFECTIVE = func.coalesce(EffectiveCoverage.status, _none)
IS_INDIRECT = func.coalesce(EffectiveCoverage.is_indirect, literal(False))

ASSESSMENT_OF_CONTROL = and_(ControlCoverage.control_id == Control.id, ControlCoverage.organization_id == ORGANIZATION)
EFFECTIVE_OF_CONTROL = and_(
    EffectiveCoverage.control_id == Control.id, EffectiveCoverage.organization_id == ORGANIZATION
)

_child = aliased(Control, name="child")
HAS_CHILDREN = select(literal(1)).where(_child.parent_id == Control.id).exists()

_parent = aliased(Control, name="parent")
_LEAVES = (
    select(
        Control.id,
        Control.identifier,
        Control.name,
        Control.is_mandatory,
        _parent.id.label("parent_id"),
        _parent.identifier.label("parent_identifier"),
        _parent.name.label("parent_name"),
        IS_APPLICABLE.label("is_applicable"),
        IS_ASSESSED.label("is_assessed"),
        ASSESSED_STATUS.label("assessed"),
        ControlCoverage.coverage_gap,
        ControlCoverage.justification,
        ControlCoverage.reasons,
        EFFECTIVE.label("effective"),
        IS_INDIRECT.label("is_indirect"),
    )
    .outerjoin(ControlCoverage, ASSESSMENT_OF_CONTROL)
    .outerjoin(EffectiveCoverage, EFFECTIVE_OF_CONTROL)
    .outerjoin(_parent, _parent.id == Control.parent_id)
    .where(Control.framework_id == FRAMEWORK, ~HAS_CHILDREN)
    .order_by(Control.position, Control.id)
)
