"""The list of controls with their assessments, and filters by assessments and effective coverage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field
from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, literal, or_, select
from sqlalchemy.orm import aliased
from typing_extensions import override

from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp, now
from normata.core.schema.fields import ControlType, CoverageStatus, MatchLevel
from normata.core.schema.paging import QueryFlag
from normata.core.schema.wire import Wire
from normata.coverage.assessments import assessed_to_wire, read_assessments
from normata.coverage.exclusion import excluded_by
from normata.coverage.staleness import is_stale
from normata.frameworks.control_list import ControlQuery, list_controls
from normata.frameworks.control_wire import MatchedControl
from normata.frameworks.counting import match_counts
from normata.frameworks.coverage_filter import CoverageFilter
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, Framework


class CoveringMatch(Wire):
    """A match that gives a control the status that it has."""

    id: str
    match_level: MatchLevel
    matched_control: MatchedControl
    effective_coverage_status: CoverageStatus = Field(description="How far the source of the match is covered.")


class CoverageQuery(ControlQuery):
    """The query of the list of coverage: that of the list of controls, with more filters."""

    repeated: ClassVar[tuple[str, ...]] = ("coverageStatus", "effectiveCoverageStatus")

    coverage_status: Annotated[
        list[CoverageStatus] | None,
        Field(description="Only controls with this assessed status, or one of these where it is repeated."),
    ] = None
    effective_coverage_status: Annotated[
        list[CoverageStatus] | None,
        Field(description="Only controls that are covered this far, or one of these where it is repeated."),
    ] = None
    is_indirectly_covered: Annotated[
        QueryFlag | None,
        Field(description="Whether matches have to lift the control above what assessments and roll-up alone give."),
    ] = None
    is_applicable: Annotated[QueryFlag | None, Field(description="Whether the control has to apply.")] = None
    is_in_conflict: Annotated[
        QueryFlag | None,
        Field(description="Whether the assessment must be in conflict with what matches or other assessments say."),
    ] = None
    is_assessed: Annotated[
        QueryFlag | None, Field(description="Whether the control has to have an assessed status.")
    ] = None
    is_stale: Annotated[QueryFlag | None, Field(description="Whether the assessment has to be stale.")] = None
    has_gap: Annotated[
        QueryFlag | None, Field(description="Whether the assessment has to say what is missing (`coverageGap`).")
    ] = None
    type: Annotated[ControlType | None, Field(description="Only categories, or only other controls.")] = None

    @property
    @override
    def conditions(self) -> Sequence[ColumnElement[bool]]:
        of_type = [] if self.type is None else [Control.type == self.type]
        return (*super().conditions, *self._following, *self._assessed, *of_type)

    @property
    @override
    def coverage_filter(self) -> CoverageFilter | None:
        if self.search or self.frameworks or self.baseline or self.type or not self.conditions:
            return None
        return CoverageFilter(self._following, self._assessed, self._includes_unassessed)

    @property
    def _following(self) -> Sequence[ColumnElement[bool]]:
        return _conditions(
            EffectiveCoverage.status.in_(self.effective_coverage_status) if self.effective_coverage_status else None,
            _is(EffectiveCoverage.is_indirect.expression, self.is_indirectly_covered),
            _is(EffectiveCoverage.applies.expression, self.is_applicable),
            _is(EffectiveCoverage.conflict.is_not(None), self.is_in_conflict),
        )

    @property
    def _assessed(self) -> Sequence[ColumnElement[bool]]:
        has_gap = and_(ControlCoverage.coverage_gap.is_not(None), ControlCoverage.coverage_gap != "")
        has_none = or_(ControlCoverage.coverage_gap.is_(None), ControlCoverage.coverage_gap == "")
        return _conditions(
            ControlCoverage.coverage_status.in_(self.coverage_status) if self.coverage_status else None,
            _is(ControlCoverage.coverage_status.is_not(None), self.is_assessed),
            _is(is_stale(literal(self.as_of or now(), UtcTimestamp())), self.is_stale),
            None if self.has_gap is None else has_gap if self.has_gap else has_none,
        )

    @property
    def _includes_unassessed(self) -> bool:
        """Whether a control without an assessment meets these conditions."""
        return (
            not self.coverage_status
            and self.is_assessed is not True
            and self.is_stale is not True
            and self.has_gap is not True
        )


def list_coverage(transaction: Transaction, query: CoverageQuery) -> dict[str, Any]:
    """A page of the list of controls, each control with its assessment and the matches that cover it.

    It takes two statements more, and two where a group excludes some of them.
    """
    page = list_controls(transaction, query)
    ids = [item["id"] for item in page["items"]]
    if not ids:
        return page
    rows = read_assessments(transaction, query.organization_id, ids)
    lifted = [item["id"] for item in page["items"] if item["isIndirectlyCovered"]]
    covering = _covering(transaction, query.organization_id, lifted) if lifted else {}
    excluding = excluded_by(transaction, query.organization_id, rows)
    moment = transaction.time_of_reading()
    items = [
        item | {"coveredBy": covering.get(row.id, [])} | assessed_to_wire(row, excluding.get(row.id), moment)
        for item, row in zip(page["items"], rows, strict=True)
    ]
    return page | {"items": items}


def _covering(transaction: Transaction, organization_id: str, ids: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
    """The members of :class:`CoveringMatch` of each of the controls, in the frameworks' order."""
    covering: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in transaction.rows(_COVERING, {"organization": organization_id, "ids": ids}):
        framework = {
            "id": row.framework_id,
            "name": row.framework_name,
            "identifier": row.framework_identifier,
            "identifierColor": row.identifier_color,
        }
        matched = {name: getattr(row, name) for name in ("id", "identifier", "name", "slug")}
        covering[row.target_id].append(
            {
                "id": row.match_id,
                "matchLevel": row.match_level,
                "matchedControl": matched | {"framework": framework},
                "effectiveCoverageStatus": row.status,
            }
        )
    return covering


def _conditions(*conditions: ColumnElement[bool] | None) -> Sequence[ColumnElement[bool]]:
    return [condition for condition in conditions if condition is not None]


def _is(condition: ColumnElement[Any], wanted: bool | None) -> ColumnElement[bool] | None:
    if wanted is None:
        return None
    return condition if wanted else ~condition


_source, _target = aliased(EffectiveCoverage, name="of_source"), aliased(EffectiveCoverage, name="of_target")
_back = aliased(ControlMatch, name="back")
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_is_before = _source.rank < _target.rank
_lies_within = (
    select(literal(1))
    .where(
        _back.source_control_id == ControlMatch.target_control_id,
        _back.target_control_id == ControlMatch.source_control_id,
        _back.match_level == "FULL",
        match_counts(_ORGANIZATION, _back),
    )
    .exists()
)
# By the rules of coverage (engine.py): at the same level, a source has a lower rank than what it covers.
_COVERING = (
    select(
        _target.control_id.label("target_id"),
        ControlMatch.id.label("match_id"),
        ControlMatch.match_level,
        Control.id,
        Control.identifier,
        Control.name,
        Control.slug,
        Framework.id.label("framework_id"),
        Framework.name.label("framework_name"),
        Framework.identifier.label("framework_identifier"),
        Framework.identifier_color,
        _source.status,
    )
    .select_from(_target)
    .join(ControlMatch, ControlMatch.target_control_id == _target.control_id)
    .join(
        _source,
        and_(
            _source.control_id == ControlMatch.source_control_id,
            _source.organization_id == _ORGANIZATION,
            _source.status != "NONE",
        ),
    )
    .join(Control, Control.id == ControlMatch.source_control_id)
    .join(Framework, Framework.id == Control.framework_id)
    .where(
        _target.organization_id == _ORGANIZATION,
        _target.control_id.in_(bindparam("ids", expanding=True)),
        match_counts(_ORGANIZATION),
        or_(
            and_(_target.status == "FULL", ControlMatch.match_level == "FULL", _source.status == "FULL", _is_before),
            and_(_target.status == "PARTIAL", or_(_source.status == "FULL", and_(_is_before, _lies_within))),
        ),
    )
    .order_by(Framework.identifier_key, Control.position, ControlMatch.id)
)
