"""The summary of a framework: how far its leaves are covered, as a whole and below each category."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from sqlalchemy import func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.wire import Wire
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage
from normata.reports.counts import CoverageCounter, CoverageCounts
from normata.reports.leaves import (
    ASSESSED_STATUS,
    ASSESSMENT_OF_CONTROL,
    EFFECTIVE,
    EFFECTIVE_OF_CONTROL,
    FRAMEWORK,
    HAS_CHILDREN,
    IS_APPLICABLE,
    IS_ASSESSED,
    IS_INDIRECT,
)
from normata.reports.report_header import Report, read_report_header


class CategoryCoverage(Wire):
    """A control that has others below it, and how far the leaves below it are covered, however deep they lie."""

    id: str
    identifier: str
    name: str
    parent_id: str | None = Field(description="The id of the category above it; null at the top.")
    counts: CoverageCounts = Field(description="Of the leaves below the category.")


class FrameworkCoverage(Report):
    """How far an organization covers a framework."""

    counts: CoverageCounts = Field(description="Of all leaves of the framework.")
    categories: list[CategoryCoverage] = Field(
        description="Every control that has others below it, in catalog order: the top ones and those within them."
    )


def summary(transaction: Transaction, organization_id: str, framework_id: str) -> dict[str, Any]:
    """The members of :class:`FrameworkCoverage`, in four statements. The database counts the leaves of each category.

    Raises NotFound unless the organization has adopted the framework.
    """
    header = read_report_header(transaction, organization_id, framework_id)
    about = {"organization": organization_id, "framework": framework_id}
    categories = transaction.rows(_CATEGORIES, about)
    above = {category.id: category.parent_id for category in categories}
    counters = {category.id: CoverageCounter() for category in categories}
    whole = CoverageCounter()
    for group in transaction.rows(_COUNTED, about):
        whole.add(group, group.leaves)
        category = group.parent_id
        while category is not None:
            counters[category].add(group, group.leaves)
            category = above[category]
    return header.wire() | {
        "counts": whole.wire(),
        "categories": [
            {
                "id": category.id,
                "identifier": category.identifier,
                "name": category.name,
                "parentId": category.parent_id,
                "counts": counters[category.id].wire(),
            }
            for category in categories
        ],
    }


_CATEGORIES = (
    select(Control.id, Control.identifier, Control.name, Control.parent_id)
    .where(Control.framework_id == FRAMEWORK, HAS_CHILDREN)
    .order_by(Control.position, Control.id)
)
# Gathered first: grouped by the expressions themselves, each place would be another parameter to the database.
_leaves = (
    select(
        Control.parent_id,
        IS_APPLICABLE.label("is_applicable"),
        IS_ASSESSED.label("is_assessed"),
        ASSESSED_STATUS.label("assessed"),
        EFFECTIVE.label("effective"),
        IS_INDIRECT.label("is_indirect"),
    )
    .outerjoin(ControlCoverage, ASSESSMENT_OF_CONTROL)
    .outerjoin(EffectiveCoverage, EFFECTIVE_OF_CONTROL)
    .where(Control.framework_id == FRAMEWORK, ~HAS_CHILDREN)
    .subquery("leaves")
)
_COUNTED = select(*_leaves.c, func.count().label("leaves")).group_by(*_leaves.c)
