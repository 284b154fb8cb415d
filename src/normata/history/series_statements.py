"""The statements of coverage over time.

What was so of a requirement held while the effective coverage and the requirement itself were so: a control may have
been another thing before, or in another place of its catalog.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    select,
    union_all,
)
from sqlalchemy import Table as SqlTable

from normata.core.db.types import UtcTimestamp
from normata.core.schema.history_triggers import BEGINNING, FOREVER
from normata.core.schema.table import sql_table
from normata.coverage.staleness import has_assessed, is_before, review_missed_at, reworded_at
from normata.frameworks.model import Control
from normata.history.model import (
    AdoptionHistory,
    AssessmentHistory,
    ControlEvidenceHistory,
    ControlHistory,
    EffectiveHistory,
)

_ADOPTED, _EFFECTIVE = sql_table(AdoptionHistory), sql_table(EffectiveHistory)
_EARLIER, _CONTROL = sql_table(ControlHistory), sql_table(Control)
_ASSESSMENT, _EVIDENCE = sql_table(AssessmentHistory), sql_table(ControlEvidenceHistory)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_FRAMEWORK: BindParameter[str] = bindparam("framework")
_START, _END = bindparam("start", type_=UtcTimestamp()), bindparam("end", type_=UtcTimestamp())

ADOPTIONS = (
    select(*(_ADOPTED.c[name] for name in ("framework_id", "valid_from", "valid_to", "adopted_at", "baseline_id")))
    .where(_ADOPTED.c.organization_id == _ORGANIZATION)
    .order_by(_ADOPTED.c.framework_id, _ADOPTED.c.valid_from)
)
ADOPTIONS_OF_ONE = ADOPTIONS.where(_ADOPTED.c.framework_id == _FRAMEWORK)


def _requirements(*, is_of_one: bool) -> Any:
    """When each control was a requirement: of one framework, or of those that the organization has or had adopted."""
    # Its rows in the history are those that have changed since, each until the next one.
    changed_at = select(func.max(_EARLIER.c.valid_to)).where(_EARLIER.c.id == _CONTROL.c.id).scalar_subquery()
    spans = []
    for table, start, end in (
        (_CONTROL, func.coalesce(changed_at, _moment(BEGINNING)), _moment(FOREVER)),
        (_EARLIER, _EARLIER.c.valid_from, _EARLIER.c.valid_to),
    ):
        framework = table.c.framework_id
        ever_adopted = framework.in_(select(_ADOPTED.c.framework_id).where(_ADOPTED.c.organization_id == _ORGANIZATION))
        spans.append(
            select(table.c.id, framework, start.label("valid_from"), end.label("valid_to")).where(
                table.c.type == "CONTROL",
                table.c.is_decomposed.is_(False),
                framework == _FRAMEWORK if is_of_one else ever_adopted,
                *([table.c.was_absent.is_(False)] if table is _EARLIER else []),
            )
        )
    return union_all(*spans).subquery("requirements")


def _moment(at: str) -> ColumnElement[Any]:
    return literal(at, UtcTimestamp())


def _later(one: ColumnElement[Any], other: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((one > other, one), else_=other)


def _earlier(one: ColumnElement[Any], other: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((one < other, one), else_=other)


def _together(one: Any, other: Any) -> ColumnElement[bool]:
    return and_(one.c.valid_from < other.c.valid_to, one.c.valid_to > other.c.valid_from)


def _in_time(history: SqlTable) -> ColumnElement[bool]:
    """The entries of the organization that held at any time between the moments."""
    return and_(history.c.organization_id == _ORGANIZATION, history.c.valid_from <= _END, history.c.valid_to > _START)


def _span(requirement: Any) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """When a requirement had an effective coverage."""
    return (
        _later(_EFFECTIVE.c.valid_from, requirement.c.valid_from).label("was_so_from"),
        _earlier(_EFFECTIVE.c.valid_to, requirement.c.valid_to).label("was_so_to"),
    )


def _counted(*, is_of_one: bool) -> Select[Any]:
    """How many requirements had which coverage from when to when."""
    requirement = _requirements(is_of_one=is_of_one)
    # A subquery: grouping by the expressions would repeat their parameters.
    spans = (
        select(
            requirement.c.framework_id,
            _EFFECTIVE.c.status,
            _EFFECTIVE.c.applies,
            _EFFECTIVE.c.conflict.is_not(None).label("is_conflict"),
            *_span(requirement),
        )
        .select_from(requirement)
        .join(_EFFECTIVE, and_(_EFFECTIVE.c.control_id == requirement.c.id, _together(_EFFECTIVE, requirement)))
        .where(_in_time(_EFFECTIVE))
        .subquery("spans")
    )
    return select(*spans.c, func.count().label("requirements")).group_by(*spans.c)


COUNTED, COUNTED_OF_ONE = _counted(is_of_one=False), _counted(is_of_one=True)


def _stale() -> Select[Any]:
    """How many applicable requirements had a stale assessment from when to when, or will have unless it changes."""
    requirement = _requirements(is_of_one=True)
    since, until = _span(requirement)
    spans = (
        select(
            requirement.c.id,
            _later(since.element, _ASSESSMENT.c.valid_from).label("held_from"),
            _earlier(until.element, _ASSESSMENT.c.valid_to).label("held_to"),
            case(
                (_ASSESSMENT.c.lapsed_at.is_not(None), _ASSESSMENT.c.valid_from), else_=review_missed_at(_ASSESSMENT)
            ).label("overdue_at"),
            reworded_at(_ASSESSMENT, func.min).label("reworded_at"),
            _ASSESSMENT.c.assessed_at,
            has_assessed(_ASSESSMENT).label("has_assessed"),
        )
        .select_from(requirement)
        .join(_ASSESSMENT, _ASSESSMENT.c.control_id == requirement.c.id)
        .join(
            _EFFECTIVE,
            and_(
                _EFFECTIVE.c.control_id == requirement.c.id,
                _together(_EFFECTIVE, requirement),
                _together(_EFFECTIVE, _ASSESSMENT),
            ),
        )
        .where(_in_time(_ASSESSMENT), _in_time(_EFFECTIVE), _EFFECTIVE.c.applies)
        # Else SQLite would look up the wording again wherever it is used.
        .cte("spans")
        .prefix_with("MATERIALIZED")
    )
    overdue_at, reworded = spans.c.overdue_at, spans.c.reworded_at
    stale_from = case((overdue_at.is_(None), reworded), (reworded < overdue_at, reworded), else_=overdue_at)
    stale = select(_later(stale_from, spans.c.held_from).label("was_so_from"), spans.c.held_to.label("was_so_to"))
    # Evidence may end and be valid again within one span. What is stale for another reason stays so, and counts once.
    ends_at = _EVIDENCE.c.ends_at
    unsupported = (
        select(
            _later(_later(ends_at, _EVIDENCE.c.valid_from), spans.c.held_from).label("was_so_from"),
            _earlier(
                _earlier(_EVIDENCE.c.valid_to, spans.c.held_to), func.coalesce(stale_from, _moment(FOREVER))
            ).label("was_so_to"),
        )
        .join_from(spans, _EVIDENCE, _EVIDENCE.c.control_id == spans.c.id)
        .where(_in_time(_EVIDENCE), ends_at.is_not(None), spans.c.has_assessed, is_before(spans.c, ends_at))
    )
    found = union_all(stale.where(stale_from.is_not(None)), unsupported).subquery("stale")
    return select(*found.c, func.count().label("requirements")).group_by(*found.c)


STALE = _stale()
