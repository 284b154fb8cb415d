"""The requirements of a framework, each with its assessment and effective coverage.

Reports count requirements, with or without children. Categories, texts and decomposed controls require nothing of their
own, and are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, case, func, literal, select, true
from sqlalchemy.orm import aliased

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import CoverageStatus
from normata.core.schema.table import sql_table
from normata.coverage.staleness import HAS_ASSESSED, REWORDED_AT
from normata.frameworks.baseline_model import Baseline
from normata.frameworks.baselines import leaves_out
from normata.frameworks.counting import applies, assessed_status, is_requirement
from normata.frameworks.evidence_model import ControlEvidence
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage, FrameworkAdoption
from normata.identity.model import Membership, User

ORGANIZATION: BindParameter[str] = bindparam("organization")
FRAMEWORK: BindParameter[str] = bindparam("framework")


def read_requirements(transaction: Transaction, organization_id: str, framework_id: str) -> list[Any]:
    """The requirements of a framework that the organization has adopted, in catalog order, in one statement."""
    return transaction.rows(_REQUIREMENTS, {"organization": organization_id, "framework": framework_id})


def read_with_owners(transaction: Transaction, organization_id: str, frameworks: Sequence[str]) -> list[Any]:
    """The requirements of several adopted frameworks, in this order and then in catalog order, in one statement.

    Each also has its note and who is responsible for it.
    """
    rows = transaction.rows(_WITH_OWNERS, {"organization": organization_id, "frameworks": frameworks})
    rank = {framework_id: number for number, framework_id in enumerate(frameworks)}
    return sorted(rows, key=lambda row: (rank[row.framework_id], row.position, row.id))


def read_conflicts(transaction: Transaction, organization_id: str, framework_id: str) -> list[Any]:
    """The controls of a framework, groups included, whose assessments are in conflict, in catalog order."""
    return transaction.rows(_CONFLICTS, {"organization": organization_id, "framework": framework_id})


def parent_of(requirement: Any) -> Mapping[str, Any] | None:
    """The parent of a requirement as wire values; null at the top."""
    if requirement.parent_id is None:
        return None
    return {
        "id": requirement.parent_id,
        "identifier": requirement.parent_identifier,
        "name": requirement.parent_name,
    }


def coverage_of(control_id: Any, coverage: Any) -> ColumnElement[bool]:
    """The condition that ``coverage``, an alias of the table, has the effective coverage of a control.

    It is for outer joins, with conditions on :func:`status_in`, so that SQLite reads the coverage of the controls that
    it has found. Without statistics it takes an organization for one of ten controls, and of an inner join it would
    read all coverage of the organization first.
    """
    return and_(coverage.control_id == control_id, coverage.organization_id == ORGANIZATION)


def status_in(coverage: Any, otherwise: CoverageStatus = "NONE") -> ColumnElement[str]:
    """The effective status in a row of an outer join; ``otherwise`` if no adopted framework has the control."""
    return func.coalesce(coverage.status, literal(otherwise, ControlCoverage.coverage_status.type))


# The assessment of a control and its effective coverage. In a framework that is not adopted, nothing is covered.
IS_APPLICABLE = func.coalesce(applies(), true())
ASSESSED_STATUS = assessed_status()
EFFECTIVE = status_in(EffectiveCoverage)
IS_INDIRECT = func.coalesce(EffectiveCoverage.is_indirect, literal(False))

ASSESSMENT_OF_CONTROL = and_(ControlCoverage.control_id == Control.id, ControlCoverage.organization_id == ORGANIZATION)
EFFECTIVE_OF_CONTROL = coverage_of(Control.id, EffectiveCoverage)

_child = aliased(Control, name="child")
HAS_CHILDREN = select(literal(1)).where(_child.parent_id == Control.id).exists()
IS_REQUIREMENT = is_requirement()

_parent = aliased(Control, name="parent")
_ALL = (
    select(
        Control.id,
        Control.identifier,
        Control.name,
        Control.is_mandatory,
        _parent.id.label("parent_id"),
        _parent.identifier.label("parent_identifier"),
        _parent.name.label("parent_name"),
        IS_APPLICABLE.label("is_applicable"),
        ControlCoverage.is_applicable.label("decision"),
        ASSESSED_STATUS.label("assessed"),
        ControlCoverage.coverage_gap,
        ControlCoverage.justification,
        ControlCoverage.reasons,
        ControlCoverage.assessed_at,
        ControlCoverage.review_due_at,
        ControlCoverage.lapsed_at,
        ControlCoverage.lapse_reason,
        ControlEvidence.pieces.label("evidence_pieces"),
        ControlEvidence.ends_at.label("evidence_until"),
        case((HAS_ASSESSED, ControlEvidence.ends_at)).label("evidence_ends_at"),
        REWORDED_AT.label("reworded_at"),
        EFFECTIVE.label("effective"),
        IS_INDIRECT.label("is_indirect"),
        EffectiveCoverage.conflict,
        Baseline.id.label("outside_id"),
        Baseline.identifier.label("outside_identifier"),
        Baseline.name.label("outside_name"),
    )
    .outerjoin(
        FrameworkAdoption,
        and_(FrameworkAdoption.framework_id == Control.framework_id, FrameworkAdoption.organization_id == ORGANIZATION),
    )
    .outerjoin(Baseline, leaves_out(sql_table(Baseline), sql_table(Control), sql_table(FrameworkAdoption)))
    .outerjoin(ControlCoverage, ASSESSMENT_OF_CONTROL)
    .outerjoin(EffectiveCoverage, EFFECTIVE_OF_CONTROL)
    .outerjoin(
        ControlEvidence,
        and_(ControlEvidence.control_id == Control.id, ControlEvidence.organization_id == ORGANIZATION),
    )
    .outerjoin(_parent, _parent.id == Control.parent_id)
)
_CONTROLS = _ALL.where(Control.framework_id == FRAMEWORK).order_by(Control.position, Control.id)
_REQUIREMENTS = _CONTROLS.where(IS_REQUIREMENT)
# What a statement of applicability also shows, of several frameworks.
_WITH_OWNERS = (
    _ALL.add_columns(
        Control.framework_id,
        Control.position,
        ControlCoverage.id.label("assessment_id"),
        ControlCoverage.note,
        ControlCoverage.owner_id,
        User.name.label("owner_name"),
    )
    .outerjoin(Membership, Membership.id == ControlCoverage.owner_id)
    .outerjoin(User, User.id == Membership.user_id)
    .where(Control.framework_id.in_(bindparam("frameworks", expanding=True)), IS_REQUIREMENT)
)
_CONFLICTS = _CONTROLS.where(EffectiveCoverage.conflict.is_not(None))
