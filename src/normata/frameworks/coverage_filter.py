"""Pages of the coverage filter: counted without reading the controls, and found from the first positions.

Reading the assessments of 50,000 controls takes longer than everything else on a page. The tables of assessments and
effective coverage are enough to count the controls. If there are many, the first ones are found quickly; if there are
few, they are found by their ids.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, case, func, select, union_all

from normata.core.db.transaction import Transaction
from normata.frameworks.catalog_order import OnPage, SortedQuery, Stretch
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage

_FARTHEST = 1_000  # controls up to the end of the page; beyond it, filter all controls
_FEW = 1_000  # with so few, most controls would be read before a page is full

_ORGANIZATION: BindParameter[str] = bindparam("organization")
_of_organization = EffectiveCoverage.organization_id == _ORGANIZATION
_assessed = and_(
    ControlCoverage.control_id == EffectiveCoverage.control_id, ControlCoverage.organization_id == _ORGANIZATION
)


@dataclass(frozen=True, slots=True)
class CoverageFilter:
    """The conditions of a filter on effective coverage and on assessments.

    ``includes_unassessed`` is true if a control without an assessment can match.
    """

    following: Sequence[ColumnElement[bool]]
    assessed: Sequence[ColumnElement[bool]]
    includes_unassessed: bool


def first_positions(
    transaction: Transaction,
    stretches: Sequence[Stretch],
    organization_id: str,
    query: SortedQuery,
    coverage_filter: CoverageFilter,
) -> OnPage | None:
    """The result of :func:`normata.frameworks.catalog_order.matching_positions`; null if that function is not slower.

    ``stretches`` are what the page can show of all frameworks that the organization has adopted: effective coverage is
    that of their controls. It takes two statements, or one if the page is empty.
    """
    if query.offset is None or query.offset + query.limit > _FARTHEST or query.sort_direction == "desc":
        return None
    total = _count(transaction, organization_id, coverage_filter)
    if total <= query.offset or not stretches:
        return OnPage({}, total, has_next=False)
    end = query.offset + query.limit
    if total <= _FEW:
        rows = transaction.rows(_all_positions(coverage_filter), {"organization": organization_id})
    else:
        parameters: dict[str, Any] = {"organization": organization_id, "most": end + 1}
        parameters |= {f"framework_{number}": one.framework_id for number, one in enumerate(stretches)}
        parameters |= {f"first_{number}": one.first for number, one in enumerate(stretches)}
        rows = transaction.rows(_first_positions(len(stretches), coverage_filter), parameters)
    found: defaultdict[str, list[int]] = defaultdict(list)
    for framework_id, position in rows:
        found[framework_id].append(position)
    places = [
        (one.framework_id, position)
        for one in stretches
        for position in sorted(found[one.framework_id])
        if position >= one.first
    ]
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    for framework_id, position in places[query.offset : end]:
        wanted[framework_id].append(position)
    return OnPage(wanted, total, has_next=len(places) > end)


def _count(transaction: Transaction, organization_id: str, coverage_filter: CoverageFilter) -> int:
    following = (_of_organization, *coverage_filter.following)
    everything = select(func.count()).select_from(EffectiveCoverage).where(*following)
    if not coverage_filter.assessed:
        return cast(int, transaction.scalar(everything, {"organization": organization_id}))
    meeting = func.coalesce(func.sum(case((and_(*coverage_filter.assessed), 1), else_=0)), 0)
    statement = (
        select(
            func.count().label("assessed"),
            meeting.label("meeting"),
            # Without a filter for missing assessments, their number is not needed.
            everything.scalar_subquery().label("everything")
            if coverage_filter.includes_unassessed
            else func.count().label("everything"),
        )
        .select_from(ControlCoverage)
        .join(EffectiveCoverage, _assessed)
        .where(*following, ControlCoverage.organization_id == _ORGANIZATION)
    )
    (row,) = transaction.rows(statement, {"organization": organization_id})
    return int(row.meeting + row.everything - row.assessed)


def _all_positions(coverage_filter: CoverageFilter) -> Any:
    """The positions of all controls that match the filter."""
    statement = select(Control.framework_id, Control.position).select_from(EffectiveCoverage)
    if coverage_filter.assessed:
        statement = statement.join(ControlCoverage, _assessed, isouter=coverage_filter.includes_unassessed)
    statement = statement.join(Control, Control.id == EffectiveCoverage.control_id)
    return statement.where(_of_organization, *coverage_filter.following, *coverage_filter.assessed)


def _first_positions(frameworks: int, coverage_filter: CoverageFilter) -> Any:
    """The first positions of each framework that match the filter."""
    return union_all(
        *(select(_of_one(number, coverage_filter).subquery(f"of_{number}")) for number in range(frameworks))
    )


def _of_one(number: int, coverage_filter: CoverageFilter) -> Any:
    statement: Any = (
        select(Control.framework_id, Control.position)
        .join(EffectiveCoverage, and_(EffectiveCoverage.control_id == Control.id, _of_organization))
        .where(
            Control.framework_id == bindparam(f"framework_{number}"),
            Control.position >= bindparam(f"first_{number}"),
            *coverage_filter.following,
        )
        .order_by(Control.position)
        .limit(bindparam("most"))
    )
    if not coverage_filter.assessed:
        return statement
    # Not a join, because PostgreSQL would join all rows before it looks for the first ones.
    meets = (
        select(case((and_(*coverage_filter.assessed), 1), else_=0))
        .where(ControlCoverage.control_id == Control.id, ControlCoverage.organization_id == _ORGANIZATION)
        .correlate(Control)
        .scalar_subquery()
    )
    return statement.where(func.coalesce(meets, 1 if coverage_filter.includes_unassessed else 0) == 1)
