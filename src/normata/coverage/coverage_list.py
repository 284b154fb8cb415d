"""The list of controls with their assessments, and filters by assessments and effective coverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field
from sqlalchemy import ColumnElement, and_, literal, or_
from typing_extensions import override

from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp, now
from normata.core.schema.fields import ControlType, CoverageStatus, Identifier, ShortText
from normata.core.schema.paging import QueryFlag
from normata.coverage.assessments import assessed_to_wire, read_assessments
from normata.coverage.covering import covering_matches
from normata.coverage.exclusion import excluded_by
from normata.coverage.staleness import is_stale
from normata.frameworks.control_list import list_controls
from normata.frameworks.control_query import ControlQuery
from normata.frameworks.coverage_filter import CoverageFilter
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage

_Names = Annotated[list[ShortText], Field(max_length=100)]


class CoverageQuery(ControlQuery):
    """The query of the list of coverage: that of the list of controls, with more filters."""

    counts_all: ClassVar[bool] = False

    repeated: ClassVar[tuple[str, ...]] = (
        *("frameworks", "coverageStatus", "effectiveCoverageStatus", "ownerId"),
        *("identifier", "slug"),
    )

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
    owner_id: Annotated[
        list[Identifier] | None,
        Field(description="Only controls that this member is responsible for, or one of these where it is repeated."),
    ] = None
    type: Annotated[ControlType | None, Field(description="Only categories, or only other controls.")] = None
    identifier: Annotated[
        _Names | None, Field(description="Only controls with this identifier, or one of these where it is repeated.")
    ] = None
    slug: Annotated[
        _Names | None, Field(description="Only controls with this slug, or one of these where it is repeated.")
    ] = None

    @property
    @override
    def conditions(self) -> Sequence[ColumnElement[bool]]:
        named = _conditions(
            None if self.type is None else Control.type == self.type,
            Control.identifier.in_(self.identifier) if self.identifier else None,
            Control.slug.in_(self.slug) if self.slug else None,
        )
        return (*super().conditions, *self._following, *self._assessed, *named)

    @property
    @override
    def coverage_filter(self) -> CoverageFilter | None:
        if self.search or self.frameworks or self.baseline or self.type or self.identifier or self.slug:
            return None
        if not self.conditions:
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
            ControlCoverage.owner_id.in_(self.owner_id) if self.owner_id else None,
            None if self.has_gap is None else has_gap if self.has_gap else has_none,
        )

    @property
    def _includes_unassessed(self) -> bool:
        """Whether a control without an assessment meets these conditions."""
        return (
            not self.coverage_status
            and not self.owner_id
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
    covering = covering_matches(transaction, query.organization_id, lifted) if lifted else {}
    excluding = excluded_by(transaction, query.organization_id, rows)
    moment = transaction.time_of_reading()
    page["items"] = [
        item | {"coveredBy": covering.get(row.id, [])} | assessed_to_wire(row, excluding.get(row.id), moment)
        for item, row in zip(page["items"], rows, strict=True)
    ]
    return page


def _conditions(*conditions: ColumnElement[bool] | None) -> Sequence[ColumnElement[bool]]:
    return [condition for condition in conditions if condition is not None]


def _is(condition: ColumnElement[Any], wanted: bool | None) -> ColumnElement[bool] | None:
    if wanted is None:
        return None
    return condition if wanted else ~condition
