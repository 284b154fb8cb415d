"""The names of rows, by their ids or to choose from, and the number of records of each kind."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import Field
from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Select,
    String,
    and_,
    bindparam,
    func,
    literal,
    null,
    select,
    true,
    union_all,
)

from normata.core.db.transaction import Transaction
from normata.core.http.roles import AUDITOR
from normata.core.schema.cursors import SortKeys
from normata.core.schema.naming import NameQuery, Naming, name_of
from normata.core.schema.paging import Counted, envelope, found_of
from normata.core.schema.table import sql_table
from normata.core.schema.text import fold
from normata.core.schema.wire import Wire
from normata.frameworks.model import Control, ControlCoverage, Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to
from normata.identity.model import Membership, User
from normata.records.archive.queries import KINDS
from normata.records.base import Restorable, is_listed
from normata.vendors.model import Questionnaire


class KindCount(Wire):
    """A kind of records."""

    kind: str = Field(description="The kind, as in its path: `record-categories`.")
    name: str = Field(description="What people call records of this kind: `record categories`.")
    live: int = Field(description="How many live records there are.")
    archived: int = Field(description="How many archived ones there are.")


class Kinds(Wire):
    """The kinds of records."""

    items: list[KindCount] = Field(description="Every kind, in the order of the documentation.")


def count_kinds(transaction: Transaction, organization_id: str) -> dict[str, Any]:
    """How many records an organization has of each kind, live and archived; in one statement."""
    rows = transaction.rows(_counts(), {"organization": organization_id})
    found = {row.kind: row for row in rows}
    return {
        "items": [
            {"kind": path, "name": kind.plural(), "live": found[path].live, "archived": found[path].archived}
            for path, kind in KINDS.items()
        ]
    }


@cache
def _counts() -> CompoundSelect[Any]:
    parts = []
    for path, kind in KINDS.items():
        table = kind.sql().c
        # Each is counted in an index of its own, of which the second condition is a part.
        live, archived = (
            select(func.count())
            .select_from(kind.sql())
            .where(table.organization_id == bindparam("organization"), condition)
            .scalar_subquery()
            for condition in (and_(table.archived_at.is_(None), is_listed(kind)), table.archived_at.is_not(None))
        )
        parts.append(select(literal(path).label("kind"), live.label("live"), archived.label("archived")))
    return union_all(*parts)


_ORGANIZATION = bindparam("organization", type_=String())


@cache
def record_names(kind: type[Restorable]) -> Naming:
    """The names of the records of a kind: the title, in natural order, and the short id."""
    table = kind.sql().c
    identifier = table.short_id if "short_id" in table else null()
    rows = select(
        table.id, table[kind.title_column()].label("label"), identifier.label("identifier"), null().label("control_id")
    ).where(table.organization_id == _ORGANIZATION)
    order = [table.title_key.asc(), table.id.asc()]
    return Naming(
        rows,
        table.id,
        table.archived_at.is_(None),
        table.search_text,
        order,
        indexed=kind.__tablename__,
        has_order=(is_listed(kind),),
    )


_FRAMEWORK, _CONTROL = sql_table(Framework).c, sql_table(Control).c
_STATEMENT, _ADOPTION = sql_table(ControlCoverage).c, sql_table(FrameworkAdoption).c
_IN_ORDER = (_FRAMEWORK.identifier_key.asc(), _CONTROL.framework_id.asc(), _CONTROL.position.asc())


@cache
def framework_names() -> Naming:
    """The names of the frameworks that an organization can see; adopted ones are live."""
    rows = (
        select(_FRAMEWORK.id, _FRAMEWORK.name.label("label"), _FRAMEWORK.identifier, null().label("control_id"))
        .outerjoin(FrameworkAdoption, _adopted(_FRAMEWORK.id))
        .where(visible_to(_ORGANIZATION))
    )
    order = [_FRAMEWORK.name_key.asc(), _FRAMEWORK.id.asc()]
    return Naming(rows, _FRAMEWORK.id, _ADOPTION.id.is_not(None), _FRAMEWORK.search_text, order)


@cache
def control_names() -> Naming:
    """The names of the controls of these frameworks; those of adopted ones are live."""
    rows = (
        select(_CONTROL.id, _CONTROL.name.label("label"), _CONTROL.identifier, null().label("control_id"))
        .join(Framework, _FRAMEWORK.id == _CONTROL.framework_id)
        .outerjoin(FrameworkAdoption, _adopted(_FRAMEWORK.id))
        .where(visible_to(_ORGANIZATION))
    )
    order = [*_IN_ORDER, _CONTROL.id.asc()]
    text, position = _CONTROL.search_text, _CONTROL.position
    return Naming(rows, _CONTROL.id, _ADOPTION.id.is_not(None), text, order, Control.__tablename__, position=position)


@cache
def assessment_names() -> Naming:
    """The names of an organization's assessments: those of their controls."""
    rows = (
        select(_STATEMENT.id, _CONTROL.name.label("label"), _CONTROL.identifier, _STATEMENT.control_id)
        .join(Control, _CONTROL.id == _STATEMENT.control_id)
        .join(Framework, _FRAMEWORK.id == _CONTROL.framework_id)
        .where(_STATEMENT.organization_id == _ORGANIZATION)
    )
    order = [*_IN_ORDER, _STATEMENT.id.asc()]
    text, position, indexed = _CONTROL.search_text, _CONTROL.position, Control.__tablename__
    return Naming(rows, _STATEMENT.id, true(), text, order, indexed, _CONTROL.id, position=position)


@cache
def questionnaire_names() -> Naming:
    """The names of the questionnaires of an organization."""
    rows = select(
        _QUESTIONNAIRE.id,
        _QUESTIONNAIRE.name.label("label"),
        null().label("identifier"),
        null().label("control_id"),
    ).where(_QUESTIONNAIRE.organization_id == _ORGANIZATION)
    order = [_QUESTIONNAIRE.name.asc(), _QUESTIONNAIRE.id.asc()]
    return Naming(rows, _QUESTIONNAIRE.id, true(), func.lower(_QUESTIONNAIRE.name), order)


_QUESTIONNAIRE = sql_table(Questionnaire).c


def _adopted(framework_id: ColumnElement[Any]) -> ColumnElement[bool]:
    return and_(_ADOPTION.framework_id == framework_id, _ADOPTION.organization_id == _ORGANIZATION)


_MEMBER, _USER = sql_table(Membership).c, sql_table(User).c


def member_names(transaction: Transaction, query: NameQuery) -> dict[str, Any]:
    """A page of the names of members, by the ids that records have; in one statement."""
    return _page(transaction, _OF_MEMBERS, query)


def person_names(transaction: Transaction, query: NameQuery) -> dict[str, Any]:
    """The same of members who can be responsible: service accounts and auditors are left out."""
    return _page(transaction, _OF_PEOPLE, query)


def user_names(transaction: Transaction, query: NameQuery) -> dict[str, Any]:
    """A page of the names of members, by the ids that events have; in one statement."""
    return _page(transaction, _OF_USERS, query)


def _page(transaction: Transaction, statement: Select[Any], query: NameQuery) -> dict[str, Any]:
    """A page of names.

    All members are read: their names are not stored folded, and an organization has at most thousands.
    """
    rows = transaction.rows(statement, {"organization": query.organization_id})
    words = fold(query.search or "").split()
    found = [row for row in rows if _matches(row, query) and all(word in _texts(row) for word in words)]
    left = found[query.offset or 0 :]
    if query.start is not None:
        _KEYS.check(query.start.keys)
        left = [row for row in found if (row.key_0, row.key_1) > query.start.keys]
    page = found_of(left[: query.limit + 1], _KEYS, Counted(len(found)), query)
    items = [name_of({"id": row.id, "label": row.name, "is_live": row.removed_at is None}) for row in page.rows]
    return envelope(items, page, query)


def _matches(row: Any, query: NameQuery) -> bool:
    return (query.id is None or row.id in query.id) and (query.archived == "include" or row.removed_at is None)


def _texts(row: Any) -> str:
    return fold(f"{row.name} {row.email or ''}")


def _named_by(row_id: ColumnElement[Any]) -> Select[Any]:
    return (
        select(row_id.label("id"), _USER.name, _USER.email, _MEMBER.removed_at, *_KEYS.columns)
        .join(User, _USER.id == _MEMBER.user_id)
        .where(_MEMBER.organization_id == _ORGANIZATION)
        .order_by(*_KEYS.order)
    )


_KEYS = SortKeys((_USER.name, _MEMBER.id))
_OF_MEMBERS, _OF_USERS = _named_by(_MEMBER.id), _named_by(_USER.id)
_OF_PEOPLE = _OF_MEMBERS.where(_USER.organization_id.is_(None), _MEMBER.role != AUDITOR)
