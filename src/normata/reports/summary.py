"""The summary of a framework: the coverage of its requirements, in total and below each group."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from sqlalchemy import bindparam, func, select

from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp
from normata.core.schema.wire import Wire
from normata.coverage.staleness import is_stale
from normata.frameworks.counting import is_group
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage
from normata.reports.counts import CoverageCounter, CoverageCounts
from normata.reports.report_header import Report, read_report_header
from normata.reports.requirements import (
    ASSESSED_STATUS,
    ASSESSMENT_OF_CONTROL,
    EFFECTIVE,
    EFFECTIVE_OF_CONTROL,
    FRAMEWORK,
    HAS_CHILDREN,
    IS_APPLICABLE,
    IS_INDIRECT,
    IS_REQUIREMENT,
)


class CategoryCoverage(Wire):
    """A category or decomposed control, and how far the requirements below it are covered, however deep they lie."""

    id: str
    identifier: str
    name: str
    parent_id: str | None = Field(description="The id of the control above it; null at the top.")
    counts: CoverageCounts = Field(description="Of the requirements below the category.")


class FrameworkCoverage(Report):
    """How far an organization covers a framework."""

    counts: CoverageCounts = Field(description="Of all requirements of the framework.")
    categories: list[CategoryCoverage] = Field(
        description="Every category or decomposed control with requirements below it, in catalog order."
    )


def summary(transaction: Transaction, organization_id: str, framework_id: str) -> dict[str, Any]:
    """The members of :class:`FrameworkCoverage`, in four statements.

    The database counts the requirements below each parent.

    Raises NotFound unless the organization has adopted the framework.
    """
    header = read_report_header(transaction, organization_id, framework_id)
    about = {"organization": organization_id, "framework": framework_id}
    parents = transaction.rows(_PARENTS, about)
    above = {parent.id: parent.parent_id for parent in parents}
    counters = {parent.id: CoverageCounter() for parent in parents}
    whole = CoverageCounter()
    for group in transaction.rows(_COUNTED, about | {"moment": transaction.time_of_reading()}):
        whole.add(group, group.requirements, is_stale=group.is_stale)
        parent = group.parent_id
        while parent is not None:
            counters[parent].add(group, group.requirements, is_stale=group.is_stale)
            parent = above[parent]
    return header.wire() | {
        "counts": whole.wire(),
        "categories": [
            {
                "id": parent.id,
                "identifier": parent.identifier,
                "name": parent.name,
                "parentId": parent.parent_id,
                "counts": counters[parent.id].wire(),
            }
            for parent in parents
            if parent.is_group and counters[parent.id].applicable + counters[parent.id].not_applicable
        ],
    }


_PARENTS = (
    select(Control.id, Control.identifier, Control.name, Control.parent_id, is_group().label("is_group"))
    .where(Control.framework_id == FRAMEWORK, HAS_CHILDREN)
    .order_by(Control.position, Control.id)
)
# A subquery: grouping by the expressions would repeat their parameters.
_requirements = (
    select(
        Control.parent_id,
        IS_APPLICABLE.label("is_applicable"),
        ASSESSED_STATUS.label("assessed"),
        EFFECTIVE.label("effective"),
        IS_INDIRECT.label("is_indirect"),
        EffectiveCoverage.conflict,
        is_stale(bindparam("moment", type_=UtcTimestamp())).label("is_stale"),
    )
    .outerjoin(ControlCoverage, ASSESSMENT_OF_CONTROL)
    .outerjoin(EffectiveCoverage, EFFECTIVE_OF_CONTROL)
    .where(Control.framework_id == FRAMEWORK, IS_REQUIREMENT)
    .subquery("requirements")
)
_COUNTED = select(*_requirements.c, func.count().label("requirements")).group_by(*_requirements.c)
