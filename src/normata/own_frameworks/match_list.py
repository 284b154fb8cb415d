"""The list of matches: the organization's own and, where asked for, those that are published."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import BindParameter, and_, bindparam, or_, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Identifier, MatchLevel
from normata.core.schema.paging import PageQuery, QueryFlag, envelope, fetch_page, ordered
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.frameworks.control_wire import MatchedControl
from normata.frameworks.model import Control, ControlMatch, Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to


class Match(Wire):
    """What one control says of another: whoever does all of the source does all of the target, or a part of it."""

    id: str
    organization_id: str | None = Field(description="Whose own the match is; null where it is published.")
    source_control: MatchedControl = Field(description="The control that the match leads from.")
    target_control: MatchedControl = Field(description="The control that the match leads to.")
    match_level: MatchLevel
    justification: str | None


class MatchQuery(PageQuery):
    """What the list of matches takes."""

    control: Annotated[
        Identifier | None, Field(description="Only matches that lead from or to this control: its id.")
    ] = None
    published: Annotated[
        QueryFlag, Field(description="Whether published matches between frameworks in sight are listed, too.")
    ] = False


def list_matches(transaction: Transaction, query: MatchQuery) -> dict[str, Any]:
    """A page of matches, in the natural order of their sources' identifiers and then their targets'; two statements."""
    own = _MATCH.c.organization_id == query.organization_id
    statement = _ROWS.where(or_(own, _published_for(query.organization_id)) if query.published else own)
    if query.control is not None:
        statement = statement.where(
            or_(_MATCH.c.source_control_id == query.control, _MATCH.c.target_control_id == query.control)
        )
    order = ordered([_SOURCE.c.identifier_key, _TARGET.c.identifier_key], None, tie=_MATCH.c.id)
    rows, total = fetch_page(transaction, statement, order, query)
    return envelope([_item(row) for row in rows], total, query)


def matches_by_id(transaction: Transaction, ids: list[str]) -> dict[str, dict[str, Any]]:
    """Matches as the list has them, by their ids. There are no more than fit one statement."""
    return {row.id: _item(row) for row in transaction.rows(_BY_ID, {"ids": ids})}


def is_published(transaction: Transaction, organization_id: str, match_id: str) -> bool:
    """Whether this is a published match that the organization can see."""
    return transaction.row(_PUBLISHED, {"organization": organization_id, "match": match_id}) is not None


def _published_for(organization_id: str | BindParameter[str]) -> Any:
    """Where a match is published, between frameworks that the organization can see."""
    in_sight = (
        select(_FRAMEWORK.c.id)
        .outerjoin(
            _ADOPTION,
            and_(_ADOPTION.c.framework_id == _FRAMEWORK.c.id, _ADOPTION.c.organization_id == organization_id),
        )
        .where(visible_to(organization_id))
    )
    return and_(
        _MATCH.c.organization_id.is_(None),
        _SOURCE.c.framework_id.in_(in_sight),
        _TARGET.c.framework_id.in_(in_sight),
    )


def _item(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "organizationId": row.organization_id,
        "sourceControl": _end(row, "source"),
        "targetControl": _end(row, "target"),
        "matchLevel": row.match_level,
        "justification": row.justification,
    }


def _end(row: Any, end: str) -> dict[str, Any]:
    control = {name: getattr(row, f"{end}_{name}") for name in _CONTROL_FIELDS}
    framework = {wire: getattr(row, f"{end}_framework_{name}") for name, wire in _FRAMEWORK_FIELDS.items()}
    return control | {"framework": framework}


_CONTROL_FIELDS = ("id", "identifier", "name", "slug")
_FRAMEWORK_FIELDS = {"id": "id", "name": "name", "identifier": "identifier", "identifier_color": "identifierColor"}

_MATCH, _FRAMEWORK, _ADOPTION = sql_table(ControlMatch), sql_table(Framework), sql_table(FrameworkAdoption)
_SOURCE, _TARGET = (sql_table(Control).alias(name) for name in ("source", "target"))
_SOURCE_FRAMEWORK, _TARGET_FRAMEWORK = (_FRAMEWORK.alias(f"{name}_framework") for name in ("source", "target"))

# One join, and not a chain of them: the count of a page keeps what its columns come from.
_WITH_ENDS = _MATCH.join(_SOURCE, _SOURCE.c.id == _MATCH.c.source_control_id).join(
    _TARGET, _TARGET.c.id == _MATCH.c.target_control_id
)
_ROWS = select(
    *(_MATCH.c[name] for name in ("id", "organization_id", "match_level", "justification")),
    *(
        end.c[name].label(f"{end.name}_{name}")
        for ends, names in (
            ((_SOURCE, _TARGET), _CONTROL_FIELDS),
            ((_SOURCE_FRAMEWORK, _TARGET_FRAMEWORK), tuple(_FRAMEWORK_FIELDS)),
        )
        for end in ends
        for name in names
    ),
).select_from(
    _WITH_ENDS.join(_SOURCE_FRAMEWORK, _SOURCE_FRAMEWORK.c.id == _SOURCE.c.framework_id).join(
        _TARGET_FRAMEWORK, _TARGET_FRAMEWORK.c.id == _TARGET.c.framework_id
    )
)
_BY_ID = _ROWS.where(_MATCH.c.id.in_(bindparam("ids", expanding=True)))
_PUBLISHED = (
    select(_MATCH.c.id)
    .select_from(_WITH_ENDS)
    .where(_MATCH.c.id == bindparam("match"), _published_for(bindparam("organization")))
)
