"""The list of the controls of adopted frameworks, with the matches that cover them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, bindparam, func, literal, or_, select
from sqlalchemy.orm import aliased
from sqlalchemy.sql.visitors import iterate

from normata.core.db.transaction import Transaction
from normata.core.db.trigrams import Hits, among_few
from normata.core.schema.cursors import LONGEST_KEY, SortKeys
from normata.core.schema.paging import Counted, Found, envelope, fetch_page, ordered
from normata.core.schema.text import fold
from normata.core.schema.wire import listed_columns, wire_names
from normata.core.schema.word_search import matching
from normata.errors import NotFound
from normata.frameworks.catalog_order import PLACES, OnPage, Stretch, matching_positions, part, searched, spans
from normata.frameworks.control_query import ControlQuery
from normata.frameworks.counting import match_counts
from normata.frameworks.coverage_filter import first_positions
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


@dataclass(frozen=True, slots=True)
class _Adopted:
    """A framework that the organization has adopted; ``reference`` is its form in the matches of its controls."""

    id: str
    slug: str
    identifier: str
    identifier_key: str
    controls: int
    reference: dict[str, Any]
    detailed: dict[str, Any]


_ADOPTED = (
    select(
        Framework.id,
        Framework.slug,
        Framework.identifier,
        Framework.identifier_key,
        Framework.control_count,
        Framework.name,
        Framework.identifier_color,
        Framework.version,
        Framework.is_centralized,
    )
    .join(FrameworkAdoption, FrameworkAdoption.framework_id == Framework.id)
    .where(FrameworkAdoption.organization_id == bindparam("organization"))
    .order_by(Framework.identifier_key, Framework.id)
)

ASSESSED_STATUS = func.coalesce(ControlCoverage.coverage_status, literal("NONE", ControlCoverage.coverage_status.type))
_assessed = and_(
    ControlCoverage.control_id == ControlTable.id, ControlCoverage.organization_id == bindparam("organization")
)
_computed = and_(
    EffectiveCoverage.control_id == ControlTable.id, EffectiveCoverage.organization_id == bindparam("organization")
)
_parent = aliased(ControlTable, name="parent")

# The fields of a control on a page; those that need no conversion come first.
_FIELDS = tuple(wire_names(ControlTable)[column.name] for column in listed_columns(ControlTable))
_ROWS = (
    select(
        *listed_columns(ControlTable),
        ControlTable.position,
        _parent.identifier,
        _parent.name,
        ASSESSED_STATUS,
        ControlCoverage.coverage_gap,
        EffectiveCoverage.status,
        EffectiveCoverage.is_indirect,
    )
    .join(EffectiveCoverage, _computed)
    .outerjoin(ControlCoverage, _assessed)
    .outerjoin(_parent, _parent.id == ControlTable.parent_id)
)
_ROWS_BY_ID = _ROWS.where(ControlTable.id.in_(bindparam("ids", expanding=True)))

_MATCHES = (
    select(
        ControlMatch.target_control_id,
        ControlMatch.id,
        ControlMatch.match_level,
        ControlTable.framework_id,
        ControlTable.position,
        ControlTable.id,
        ControlTable.identifier,
        ControlTable.name,
        ControlTable.slug,
    )
    .join(ControlTable, ControlTable.id == ControlMatch.source_control_id)
    .where(
        ControlMatch.target_control_id.in_(bindparam("ids", expanding=True)),
        # Never null. With the plain column both databases would start from all controls of the frameworks.
        func.coalesce(ControlTable.framework_id, "").in_(bindparam("adopted", expanding=True)),
        match_counts(bindparam("organization")),
    )
)

_CHILDREN = (
    select(ControlTable.parent_id, ControlTable.id, ControlTable.identifier, ControlTable.name)
    .where(ControlTable.parent_id.in_(bindparam("ids", expanding=True)))
    .order_by(ControlTable.position, ControlTable.id)
)

_POSITION = select(ControlTable.position).where(
    ControlTable.id == bindparam("control"), ControlTable.framework_id == bindparam("framework")
)
_CATALOG_KEYS = SortKeys(
    (
        *(Framework.identifier_key.expression, Framework.id.expression),
        *(ControlTable.id.expression, ControlTable.position.expression),
    )
)

_SORT_KEYS: dict[str | None, Sequence[ColumnElement[Any]]] = {
    "identifier": (ControlTable.identifier_key.expression,),
    "name": (ControlTable.name_key.expression,),
    "slug": (ControlTable.slug_key.expression,),
    "type": (ControlTable.type.expression,),
    "framework": (Framework.identifier_key.expression,),
    "isMandatory": (ControlTable.is_mandatory.expression,),
    "coverageStatus": (ASSESSED_STATUS,),
    "effectiveCoverageStatus": (EffectiveCoverage.status.expression,),
    "createdAt": (ControlTable.created_at.expression,),
    "updatedAt": (ControlTable.updated_at.expression,),
}


def list_controls(transaction: Transaction, query: ControlQuery) -> dict[str, Any]:
    """A page of the controls of the frameworks that the organization has adopted.

    In catalog order it takes four statements, each of which reads only what the page shows, for every page and any
    number of controls. Another order, a filter or a search takes a fifth, which reads every control.
    """
    adopted = _adopted_frameworks(transaction, query.organization_id)
    selected = query.selected_frameworks
    chosen = [
        framework
        for framework in adopted.values()
        if not selected or not selected.isdisjoint((framework.id, framework.slug, framework.identifier))
    ]
    if query.sort_column:
        found = _sorted_rows(transaction, chosen, query)
    else:
        found = _in_catalog_order(transaction, chosen, _stretches(transaction, chosen, query), query)
    ids = [row[0] for row in found.rows]
    if not ids:
        return envelope([], found, query)
    matches, children = _matches(transaction, query.organization_id, adopted, ids), _children(transaction, ids)
    items = [_item(row, adopted, matches.get(row[0], []), children.get(row[0], [])) for row in found.rows]
    return envelope(items, found, query)


def one_control(transaction: Transaction, organization_id: str, control_id: str) -> dict[str, Any]:
    """A control of a framework that the organization has adopted, in the form of the list. Raises NotFound."""
    adopted = _adopted_frameworks(transaction, organization_id)
    row = transaction.row(_ROWS_BY_ID, {"organization": organization_id, "ids": [control_id]})
    if row is None or row.framework_id not in adopted:
        raise NotFound
    matches = _matches(transaction, organization_id, adopted, [control_id])
    children = _children(transaction, [control_id])
    return _item(row, adopted, matches.get(control_id, []), children.get(control_id, []))


def _adopted_frameworks(transaction: Transaction, organization_id: str) -> dict[str, _Adopted]:
    """The frameworks that the organization has adopted, by their ids, in the order of lists."""
    adopted = {}
    for row in transaction.rows(_ADOPTED, {"organization": organization_id}):
        framework_id, slug, identifier, key, controls, name, color, version, is_centralized = row
        reference = {"id": framework_id, "name": name, "identifier": identifier, "identifierColor": color}
        detailed = reference | {"version": version, "isCentralized": is_centralized}
        adopted[framework_id] = _Adopted(framework_id, slug, identifier, key, controls, reference, detailed)
    return adopted


def _stretches(transaction: Transaction, chosen: Sequence[_Adopted], query: ControlQuery) -> list[Stretch]:
    """The positions that the page can show: all, or with a cursor those after the last control of the page before.

    That control is looked up by its id, because positions move when controls are added before it. Raises UnfitCursor.
    """
    whole = [Stretch(framework.id, 0, framework.controls - 1) for framework in chosen]
    if query.start is None:
        return whole
    _CATALOG_KEYS.check(query.start.keys)
    key, of_last, last_id, position = query.start.keys
    moved = transaction.scalar(_POSITION, {"control": last_id, "framework": of_last})
    position = position if moved is None else moved
    last = next((_rank(framework) for framework in chosen if framework.id == of_last), (key, of_last))
    backwards = query.sort_direction == "desc"
    stretches = []
    for framework, stretch in zip(chosen, whole, strict=True):
        if framework.id == of_last:
            first, end = (0, position - 1) if backwards else (position + 1, stretch.last)
            stretch = Stretch(framework.id, first, end, is_all=False)  # noqa: PLW2901 - a part of it
        elif (_rank(framework) < last) is not backwards:
            continue
        if stretch.length > 0:
            stretches.append(stretch)
    return stretches


def _rank(framework: _Adopted) -> tuple[str, str]:
    return framework.identifier_key[:LONGEST_KEY], framework.id


def _in_catalog_order(
    transaction: Transaction, chosen: Sequence[_Adopted], stretches: Sequence[Stretch], query: ControlQuery
) -> Found:
    """The page in catalog order, found by positions."""
    parameters: dict[str, Any] = {"organization": query.organization_id}
    if query.search or query.conditions:
        on_page = _found_positions(transaction, chosen, stretches, query)
        for number, (framework_id, places) in enumerate(on_page.positions.items()):
            parameters |= {f"framework_{number}": framework_id, f"places_{number}": places}
        rows_of, frameworks = _rows_at_places, list(on_page.positions)
        total, has_next = on_page.total, on_page.has_next
    else:  # without sorting, skipping or counting
        start, stop, has_next = part(query, sum(one.length for one in stretches))
        shown = list(spans(stretches, start, stop))
        for number, one in enumerate(shown):
            parameters |= {f"framework_{number}": one.framework_id}
            parameters |= {f"first_{number}": one.first, f"last_{number}": one.last}
        rows_of, frameworks = _rows_in_spans, [one.framework_id for one in shown]
        total = sum(framework.controls for framework in chosen)
    if not frameworks:
        return Found((), total)
    rank = {framework_id: number for number, framework_id in enumerate(frameworks)}
    backwards = query.sort_direction == "desc"
    found = transaction.rows(rows_of(len(frameworks)), parameters)
    rows = sorted(found, key=lambda row: (rank[row.framework_id], row.position), reverse=backwards)
    if not rows or not has_next:
        return Found(rows, total)
    last = rows[-1]
    (key,) = (_rank(framework)[0] for framework in chosen if framework.id == last.framework_id)
    return Found(rows, total, next=query.next_cursor((key, last.framework_id, last.id, last.position)))


def _found_positions(
    transaction: Transaction, chosen: Sequence[_Adopted], stretches: Sequence[Stretch], query: ControlQuery
) -> OnPage:
    """The positions of the page, with a search and filters."""
    early = query.coverage_filter and first_positions(
        transaction, stretches, query.organization_id, query, query.coverage_filter
    )
    if early:
        return early
    found: Select[Any] = _joined(PLACES, query.conditions)
    hits = _hits(transaction, query)
    if _TABLE in hits.few:
        among = among_few(ControlTable.id.expression, _TABLE)
        found = found.where(among, matching(ControlTable.search_text.expression, query.search or ""))
    elif query.search:
        found = found.where(searched(query.search))
    found = found.where(ControlTable.framework_id.in_([framework.id for framework in chosen]))
    return matching_positions(transaction, stretches, query, found, _parameters(query, hits))


_TABLE = ControlTable.__tablename__


def _hits(transaction: Transaction, query: ControlQuery) -> Hits:
    return transaction.hits(fold(query.search or "").split(), query.organization_id, [_TABLE])


def _parameters(query: ControlQuery, hits: Hits) -> dict[str, Any]:
    return {"organization": query.organization_id, **hits.parameters()}


@cache
def _rows_at_places(count: int) -> Select[Any]:
    return _ROWS.where(
        or_(
            *(
                and_(
                    ControlTable.framework_id == bindparam(f"framework_{number}"),
                    ControlTable.position.in_(bindparam(f"places_{number}", expanding=True)),
                )
                for number in range(count)
            )
        )
    )


@cache
def _rows_in_spans(count: int) -> Select[Any]:
    return _ROWS.where(
        or_(
            *(
                and_(
                    ControlTable.framework_id == bindparam(f"framework_{number}"),
                    ControlTable.position.between(bindparam(f"first_{number}"), bindparam(f"last_{number}")),
                )
                for number in range(count)
            )
        )
    )


def _sorted_rows(transaction: Transaction, chosen: Sequence[_Adopted], query: ControlQuery) -> Found:
    """The rows of the page of all controls, searched and sorted by the database: first their ids, then the rest.

    So it sorts only keys, and joins the rest to one page instead of all rows.
    """
    statement = select(ControlTable.id).where(ControlTable.framework_id.in_([framework.id for framework in chosen]))
    if query.sort_column == "framework":
        statement = statement.join(Framework, Framework.id == ControlTable.framework_id)
    is_whole = not query.search and not query.conditions
    counted = Counted(sum(framework.controls for framework in chosen)) if is_whole else None
    hits = _hits(transaction, query)
    if _TABLE in hits.few:
        statement = statement.where(among_few(ControlTable.id.expression, _TABLE))
    if query.search:
        statement = statement.where(matching(ControlTable.search_text.expression, query.search))
    statement = _joined(statement, query.conditions, _SORT_KEYS[query.sort_column])
    order = ordered(_SORT_KEYS[query.sort_column], query.sort_direction, tie=ControlTable.id.expression)
    parameters = _parameters(query, hits)
    page = fetch_page(transaction, statement, order, query, parameters, counted=counted, scans=True)
    place = {row.id: number for number, row in enumerate(page.rows)}
    found = transaction.rows(_ROWS_BY_ID, parameters | {"ids": list(place)}) if place else ()
    return replace(page, rows=sorted(found, key=lambda row: place[row[0]]))


def _joined(statement: Any, conditions: Sequence[ColumnElement[bool]], keys: Sequence[ColumnElement[Any]] = ()) -> Any:
    """A selection of controls by conditions, joined only with the tables that these and the sort keys need."""
    named = {part.table.name for one in (*conditions, *keys) for part in iterate(one) if isinstance(part, Column)}
    if ControlCoverage.__tablename__ in named:
        statement = statement.outerjoin(ControlCoverage, _assessed)
    if EffectiveCoverage.__tablename__ in named:
        statement = statement.join(EffectiveCoverage, _computed)
    return statement.where(*conditions)


def _matches(
    transaction: Transaction, organization_id: str, adopted: Mapping[str, _Adopted], ids: Sequence[str]
) -> Mapping[str, list[dict[str, Any]]]:
    """The matches into each of the controls, from controls of adopted frameworks, in these frameworks' order."""
    rank = {framework_id: number for number, framework_id in enumerate(adopted)}
    rows = transaction.rows(_MATCHES, {"organization": organization_id, "ids": ids, "adopted": list(rank)})
    found = sorted(rows, key=lambda row: (rank[row[3]], row[4], row[1]))
    matches: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for target, match_id, level, framework_id, _, source, identifier, name, slug in found:
        matched = {
            "id": source,
            "identifier": identifier,
            "name": name,
            "slug": slug,
            "framework": adopted[framework_id].reference,
        }
        matches[target].append({"id": match_id, "matchLevel": level, "matchedControl": matched})
    return matches


def _children(transaction: Transaction, ids: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
    children: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    parent: Any
    for parent, control_id, identifier, name in transaction.rows(_CHILDREN, {"ids": ids}):
        children[parent].append({"id": control_id, "identifier": identifier, "name": name})
    return children


def _item(
    row: Any, adopted: Mapping[str, _Adopted], matches: list[dict[str, Any]], children: list[dict[str, Any]]
) -> dict[str, Any]:
    item = dict(zip(_FIELDS, row, strict=False))  # the further columns are used below
    _, parent_identifier, parent_name, status, gap, effective, is_indirect = row[len(_FIELDS) :]
    parent_id = item["parentId"]
    return item | {
        "framework": adopted[item["frameworkId"]].detailed,
        "parent": parent_id and {"id": parent_id, "identifier": parent_identifier, "name": parent_name},
        "coverage": {"coverageStatus": status, "coverageGap": gap},
        "effectiveCoverageStatus": effective,
        "isIndirectlyCovered": is_indirect,
        "sourceMatches": matches,
        "children": children,
    }
