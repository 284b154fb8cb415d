"""The list of the controls of adopted frameworks, with what they are covered by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Subquery, and_, func, literal, select
from sqlalchemy.orm import aliased

from normata.frameworks.model import (
    Control as ControlTable,
)
from normata.frameworks.model import (
    ControlCoverage,
    ControlMatch,
    EffectiveCoverage,
    Framework,
    FrameworkAdoption,
)
from normata.paging import PageQuery, Search, SortDirection, envelope, fetch_page, matching, ordered
from normata.vocabulary import CoverageStatus, MatchLevel, sql_table
from normata.wire import Wire, as_wire, wire


class FrameworkReference(Wire):
    """The framework that a matched control belongs to."""

    id: str
    name: str
    identifier: str
    identifier_color: str | None


class ControlFramework(FrameworkReference):
    """The framework that a control belongs to."""

    version: str | None
    is_centralized: bool


class ControlReference(Wire):
    """A parent or child of a control."""

    id: str
    identifier: str
    name: str


class MatchedControl(ControlReference):
    """The source of a match: where it is covered, so is the control, as far as the match goes."""

    slug: str
    framework: FrameworkReference


class SourceMatch(Wire):
    """A match from a control of another adopted framework, or of the same."""

    id: str
    match_level: MatchLevel
    matched_control: MatchedControl


class CoverageStatement(Wire):
    """What the organization itself says of a control: `NONE` and null where it has said nothing."""

    coverage_status: CoverageStatus
    coverage_gap: str | None


class Control(wire(ControlTable)):  # type: ignore[misc] # a base made at run time, from the table
    """A requirement of an adopted framework, or a category of them, with how far it is covered and by what."""

    framework: ControlFramework
    parent: ControlReference | None
    coverage: CoverageStatement
    effective_coverage_status: CoverageStatus = Field(
        description="What follows from statements, matches and roll-up: the best of all paths."
    )
    is_indirectly_covered: bool = Field(
        description="Whether matches lift the control above what statements and roll-up alone would give."
    )
    source_matches: list[SourceMatch]
    children: list[ControlReference]


class ControlQuery(PageQuery):
    """What the list of controls takes."""

    sort_column: Annotated[
        Literal[
            "identifier",
            "name",
            "slug",
            "type",
            "framework",
            "isMandatory",
            "coverageStatus",
            "effectiveCoverageStatus",
            "createdAt",
            "updatedAt",
        ]
        | None,
        Field(description="What to sort by; unless said, by the framework's identifier and then in catalog order."),
    ] = None
    sort_direction: SortDirection | None = None
    search: Search | None = None
    frameworks: Annotated[
        list[str] | None,
        Field(
            description="Only controls of these adopted frameworks: ids, slugs or identifiers, as a repeated parameter,"
            " as `frameworks[]`, `frameworks[0]`… or separated by commas. What matches nothing selects nothing."
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _gather_frameworks(cls, values: Any) -> Any:
        """Bring the four encodings of the array into one."""
        if not isinstance(values, Mapping):
            return values
        rest, gathered = {}, list[str]()
        for name, value in values.items():
            if re.fullmatch(r"frameworks(\[\d*\])?", name):
                gathered.extend(value if isinstance(value, list) else [value])
            else:
                rest[name] = value
        if gathered:
            rest["frameworks"] = gathered
        return rest

    @property
    def selected_frameworks(self) -> set[str]:
        """What is selected; empty where there is no filter. An entry with commas may be one identifier or several."""
        return {
            entry.strip()
            for value in self.frameworks or ()
            for entry in (value, *value.split(","))
            if entry.strip(" ,")
        }


_status = func.coalesce(ControlCoverage.coverage_status, literal("NONE", ControlCoverage.coverage_status.type))
_parent = aliased(ControlTable, name="parent")

_SORT_KEYS: dict[str | None, Sequence[ColumnElement[Any]]] = {
    None: (Framework.identifier_key.expression, ControlTable.framework_id.expression, ControlTable.position.expression),
    "identifier": (ControlTable.identifier_key.expression,),
    "name": (ControlTable.name_key.expression,),
    "slug": (ControlTable.slug_key.expression,),
    "type": (ControlTable.type.expression,),
    "framework": (Framework.identifier_key.expression,),
    "isMandatory": (ControlTable.is_mandatory.expression,),
    "coverageStatus": (_status,),
    "effectiveCoverageStatus": (EffectiveCoverage.status.expression,),
    "createdAt": (ControlTable.created_at.expression,),
    "updatedAt": (ControlTable.updated_at.expression,),
}


def list_controls(connection: Connection, query: ControlQuery) -> dict[str, Any]:
    """A page of the controls of the frameworks that the organization has adopted.

    It takes four statements, whatever the length of the page, and one more to find selected frameworks.
    """
    order = ordered(_SORT_KEYS[query.sort_column], query.sort_direction, tie=ControlTable.id.expression)
    rows, total = fetch_page(
        connection, _chosen(connection, query), order, query, partial(_rows, query.organization_id)
    )
    ids = [row["id"] for row in rows]
    if not ids:
        return envelope([], total, query)
    matches, children = _matches(connection, query.organization_id, ids), _children(connection, ids)
    return envelope([_item(row, matches[row["id"]], children[row["id"]]) for row in rows], total, query)


def _chosen(connection: Connection, query: ControlQuery) -> Select[Any]:
    """The ids of all controls that the query asks for, with what they can be sorted by in reach."""
    statement = _joined(select(ControlTable.id), query.organization_id)
    if query.sort_column == "coverageStatus":
        statement = statement.outerjoin(ControlCoverage, _stated(query.organization_id))
    if query.search:
        statement = statement.where(matching(ControlTable.search_text.expression, query.search))
    if query.selected_frameworks:
        statement = statement.where(Framework.id.in_(_adopted(connection, query)))
    return statement


def _rows(organization_id: str, page: Subquery) -> Select[Any]:
    """All of the controls whose ids ``page`` has."""
    statement = (
        select(
            *sql_table(ControlTable).columns,
            Framework.name.label("framework_name"),
            Framework.identifier.label("framework_identifier"),
            Framework.identifier_color,
            Framework.version,
            Framework.is_centralized.label("framework_is_centralized"),
            _parent.identifier.label("parent_identifier"),
            _parent.name.label("parent_name"),
            _status.label("coverage_status"),
            ControlCoverage.coverage_gap,
            EffectiveCoverage.status.label("effective_status"),
            EffectiveCoverage.is_indirect,
        )
        .select_from(page)
        .join(ControlTable, ControlTable.id == page.c.id)
    )
    return (
        _joined(statement, organization_id)
        .outerjoin(ControlCoverage, _stated(organization_id))
        .outerjoin(_parent, _parent.id == ControlTable.parent_id)
    )


def _joined(statement: Select[Any], organization_id: str) -> Select[Any]:
    """``statement`` over controls, held to those of adopted frameworks."""
    return (
        statement.join(Framework, Framework.id == ControlTable.framework_id)
        .join(
            FrameworkAdoption,
            and_(
                FrameworkAdoption.framework_id == ControlTable.framework_id,
                FrameworkAdoption.organization_id == organization_id,
            ),
        )
        .join(
            EffectiveCoverage,
            and_(EffectiveCoverage.control_id == ControlTable.id, EffectiveCoverage.organization_id == organization_id),
        )
    )


def _stated(organization_id: str) -> ColumnElement[bool]:
    return and_(ControlCoverage.control_id == ControlTable.id, ControlCoverage.organization_id == organization_id)


def _adopted(connection: Connection, query: ControlQuery) -> list[str]:
    """The ids of the adopted frameworks that the filter selects.

    They are matched here: there are few, while the entries of the filter may be more than a statement can name.
    """
    adopted = connection.execute(
        select(Framework.id, Framework.slug, Framework.identifier)
        .join(FrameworkAdoption, FrameworkAdoption.framework_id == Framework.id)
        .where(FrameworkAdoption.organization_id == query.organization_id)
    )
    selected = query.selected_frameworks
    return [row.id for row in adopted if not selected.isdisjoint(row)]


def _matches(connection: Connection, organization_id: str, ids: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
    """The matches into each of the controls, from controls of adopted frameworks, in these frameworks' order."""
    # By themselves, so that matches are found by their targets: left to choose, both databases start from all controls
    # of the adopted frameworks, and read all matches from these.
    match = (
        select(
            ControlMatch.target_control_id,
            ControlMatch.id.label("match_id"),
            ControlMatch.match_level,
            ControlTable.id,
            ControlTable.identifier,
            ControlTable.name,
            ControlTable.slug,
            ControlTable.position,
            ControlTable.framework_id,
        )
        .join(ControlTable, ControlTable.id == ControlMatch.source_control_id)
        .where(ControlMatch.target_control_id.in_(ids))
        .cte("match")
        .prefix_with("MATERIALIZED")
    )
    statement = (
        select(
            match,
            Framework.name.label("framework_name"),
            Framework.identifier.label("framework_identifier"),
            Framework.identifier_color,
        )
        .join(Framework, Framework.id == match.c.framework_id)
        .join(
            FrameworkAdoption,
            and_(FrameworkAdoption.framework_id == Framework.id, FrameworkAdoption.organization_id == organization_id),
        )
        .order_by(Framework.identifier_key, Framework.id, match.c.position, match.c.match_id)
    )
    return _grouped(
        (
            row["target_control_id"],
            {
                "id": row["match_id"],
                "matchLevel": row["match_level"],
                "matchedControl": {
                    "id": row["id"],
                    "identifier": row["identifier"],
                    "name": row["name"],
                    "slug": row["slug"],
                    "framework": _framework_reference(row),
                },
            },
        )
        for row in connection.execute(statement).mappings()
    )


def _children(connection: Connection, ids: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
    statement = (
        select(ControlTable.parent_id, ControlTable.id, ControlTable.identifier, ControlTable.name)
        .where(ControlTable.parent_id.in_(ids))
        .order_by(ControlTable.position, ControlTable.id)
    )
    return _grouped(
        (row.parent_id, {"id": row.id, "identifier": row.identifier, "name": row.name})
        for row in connection.execute(statement)
    )


def _grouped(pairs: Iterable[tuple[str, dict[str, Any]]]) -> Mapping[str, list[dict[str, Any]]]:
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def _framework_reference(row: RowMapping) -> dict[str, Any]:
    return {
        "id": row["framework_id"],
        "name": row["framework_name"],
        "identifier": row["framework_identifier"],
        "identifierColor": row["identifier_color"],
    }


def _item(row: RowMapping, matches: list[dict[str, Any]], children: list[dict[str, Any]]) -> dict[str, Any]:
    return as_wire(ControlTable, row) | {
        "framework": _framework_reference(row)
        | {"version": row["version"], "isCentralized": row["framework_is_centralized"]},
        "parent": row["parent_id"]
        and {"id": row["parent_id"], "identifier": row["parent_identifier"], "name": row["parent_name"]},
        "coverage": {"coverageStatus": row["coverage_status"], "coverageGap": row["coverage_gap"]},
        "effectiveCoverageStatus": row["effective_status"],
        "isIndirectlyCovered": row["is_indirect"],
        "sourceMatches": matches,
        "children": children,
    }
