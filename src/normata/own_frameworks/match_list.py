"""The list of matches: the organization's own and, if requested, published ones."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import BindParameter, Select, and_, bindparam, or_, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Identifier, MatchLevel, Timestamp
from normata.core.schema.paging import PageQuery, QueryFlag, envelope, fetch_page, ordered
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.frameworks.control_wire import MatchedControl, MatchMapping
from normata.frameworks.counting import match_counts
from normata.frameworks.model import (
    Control,
    ControlMatch,
    Framework,
    FrameworkAdoption,
    MappingDocument,
    SetAsideMatch,
)
from normata.frameworks.visibility import visible_to


class SetAside(Wire):
    """A match that an organization has set aside."""

    justification: str
    created_at: Timestamp


class Match(Wire):
    """A match: an organization that does all of the source control does all of the target, or a part of it."""

    id: str
    organization_id: str | None = Field(description="Whose own the match is; null if it is published.")
    source_control: MatchedControl = Field(description="The control that the match leads from.")
    target_control: MatchedControl = Field(description="The control that the match leads to.")
    match_level: MatchLevel
    justification: str | None
    mapping: MatchMapping | None = Field(
        description="The document that gives the match; null if a member has made it, or if it is not known."
    )
    rationale: str | None = Field(description="How the publisher of the mapping compared the two controls.")
    strength: str | None = Field(description="How strong the publisher says that the relation is, on its own scale.")
    retired_at: Timestamp | None = Field(
        description="Since when the mapping does not have the match any more: it does not count."
    )
    set_aside: SetAside | None = Field(
        description="That the organization has set the match aside: it does not count for the organization."
    )


class MatchQuery(PageQuery):
    """The query of the list of matches."""

    control: Annotated[
        Identifier | None, Field(description="Only matches that lead from or to this control: its id.")
    ] = None
    published: Annotated[
        QueryFlag, Field(description="Whether published matches between frameworks in sight are listed, too.")
    ] = False
    counts: Annotated[
        QueryFlag | None,
        Field(description="Only matches that count for the organization, or only those that are retired or set aside."),
    ] = None


def list_matches(transaction: Transaction, query: MatchQuery) -> dict[str, Any]:
    """A page of matches, in the natural order of their sources' identifiers and then their targets'; two statements."""
    own = _MATCH.c.organization_id == query.organization_id
    statement = _rows(query.organization_id).where(
        or_(own, _published_for(query.organization_id)) if query.published else own
    )
    if query.counts is not None:
        counts = match_counts(query.organization_id)
        statement = statement.where(counts if query.counts else ~counts)
    if query.control is not None:
        statement = statement.where(
            or_(_MATCH.c.source_control_id == query.control, _MATCH.c.target_control_id == query.control)
        )
    order = ordered([_SOURCE.c.identifier_key, _TARGET.c.identifier_key], None, tie=_MATCH.c.id)
    found = fetch_page(transaction, statement, order, query)
    return envelope([_item(row) for row in found.rows], found, query)


def matches_by_id(transaction: Transaction, organization_id: str, ids: list[str]) -> dict[str, dict[str, Any]]:
    """Matches in the form of the list, by their ids. There must not be more than fit one statement."""
    return {row.id: _item(row) for row in transaction.rows(_BY_ID, {"organization": organization_id, "ids": ids})}


def is_visible(transaction: Transaction, organization_id: str, match_id: str) -> bool:
    """Whether this is a match that the organization can see: its own, or a published one."""
    return transaction.row(_VISIBLE, {"organization": organization_id, "match": match_id}) is not None


def is_published(transaction: Transaction, organization_id: str, match_id: str) -> bool:
    """Whether this is a published match that the organization can see."""
    return transaction.row(_PUBLISHED, {"organization": organization_id, "match": match_id}) is not None


def _published_for(organization_id: str | BindParameter[str]) -> Any:
    """The condition that a match is published, between frameworks that the organization can see."""
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
        "mapping": None
        if row.document_id is None
        else {"id": row.document_id, "document": row.document, "name": row.document_name, "version": row.version},
        "rationale": row.rationale,
        "strength": row.strength,
        "retiredAt": row.retired_at,
        "setAside": None
        if row.set_aside_at is None
        else {"justification": row.set_aside_because, "createdAt": row.set_aside_at},
    }


def _end(row: Any, end: str) -> dict[str, Any]:
    control = {name: getattr(row, f"{end}_{name}") for name in _CONTROL_FIELDS}
    framework = {wire: getattr(row, f"{end}_framework_{name}") for name, wire in _FRAMEWORK_FIELDS.items()}
    return control | {"framework": framework}


_CONTROL_FIELDS = ("id", "identifier", "name", "slug")
_FRAMEWORK_FIELDS = {"id": "id", "name": "name", "identifier": "identifier", "identifier_color": "identifierColor"}

_MATCH, _FRAMEWORK, _ADOPTION = sql_table(ControlMatch), sql_table(Framework), sql_table(FrameworkAdoption)
_DOCUMENT, _SET_ASIDE = sql_table(MappingDocument), sql_table(SetAsideMatch)
_SOURCE, _TARGET = (sql_table(Control).alias(name) for name in ("source", "target"))
_SOURCE_FRAMEWORK, _TARGET_FRAMEWORK = (_FRAMEWORK.alias(f"{name}_framework") for name in ("source", "target"))

# One nested join, since the count of a page keeps all tables that its columns come from.
_WITH_ENDS = _MATCH.join(_SOURCE, _SOURCE.c.id == _MATCH.c.source_control_id).join(
    _TARGET, _TARGET.c.id == _MATCH.c.target_control_id
)
_SHOWN = ("id", "organization_id", "match_level", "justification", "rationale", "strength", "retired_at")


def _rows(organization_id: str | BindParameter[str]) -> Select[Any]:
    """Matches with their ends and documents, and whether the organization has set them aside."""
    set_aside = and_(_SET_ASIDE.c.match_id == _MATCH.c.id, _SET_ASIDE.c.organization_id == organization_id)
    return select(
        *(_MATCH.c[name] for name in _SHOWN),
        _DOCUMENT.c.id.label("document_id"),
        _DOCUMENT.c.document,
        _DOCUMENT.c.name.label("document_name"),
        _DOCUMENT.c.version,
        _SET_ASIDE.c.justification.label("set_aside_because"),
        _SET_ASIDE.c.created_at.label("set_aside_at"),
        *_ENDS,
    ).select_from(
        _WITH_ENDS.join(_SOURCE_FRAMEWORK, _SOURCE_FRAMEWORK.c.id == _SOURCE.c.framework_id)
        .join(_TARGET_FRAMEWORK, _TARGET_FRAMEWORK.c.id == _TARGET.c.framework_id)
        .outerjoin(_DOCUMENT, _DOCUMENT.c.id == _MATCH.c.mapping_document_id)
        .outerjoin(_SET_ASIDE, set_aside)
    )


_ENDS = (
    *(
        end.c[name].label(f"{end.name}_{name}")
        for ends, names in (
            ((_SOURCE, _TARGET), _CONTROL_FIELDS),
            ((_SOURCE_FRAMEWORK, _TARGET_FRAMEWORK), tuple(_FRAMEWORK_FIELDS)),
        )
        for end in ends
        for name in names
    ),
)
_BY_ID = _rows(bindparam("organization")).where(_MATCH.c.id.in_(bindparam("ids", expanding=True)))
_PUBLISHED = (
    select(_MATCH.c.id)
    .select_from(_WITH_ENDS)
    .where(_MATCH.c.id == bindparam("match"), _published_for(bindparam("organization")))
)
_VISIBLE = (
    select(_MATCH.c.id)
    .select_from(_WITH_ENDS)
    .where(
        _MATCH.c.id == bindparam("match"),
        or_(_MATCH.c.organization_id == bindparam("organization"), _published_for(bindparam("organization"))),
    )
)
