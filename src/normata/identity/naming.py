"""What members and users are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.schema.naming import NameQuery, name_of
from normata.core.schema.paging import envelope
from normata.core.schema.table import sql_table
from normata.core.schema.text import fold
from normata.identity.model import Membership, User

_MEMBER, _USER = sql_table(Membership).c, sql_table(User).c


def member_names(transaction: Transaction, query: NameQuery) -> dict[str, Any]:
    """A page of the names of members, by the ids that records have; in one statement."""
    return _page(transaction, _OF_MEMBERS, query)


def user_names(transaction: Transaction, query: NameQuery) -> dict[str, Any]:
    """A page of the names of members, by the ids that events have; in one statement."""
    return _page(transaction, _OF_USERS, query)


def _page(transaction: Transaction, statement: Select[Any], query: NameQuery) -> dict[str, Any]:
    """All members are read: their names are not stored folded, and no organization has many thousands of them."""
    rows = transaction.rows(statement, {"organization": query.organization_id})
    words = fold(query.search or "").split()
    found = [row for row in rows if _matches(row, query) and all(word in _texts(row) for word in words)]
    start = min(query.offset or 0, len(found)) if query.offset is not None else len(found)
    page: Sequence[Any] = found[start : start + query.limit]
    items = [name_of({"id": row.id, "label": row.name, "is_live": row.removed_at is None}) for row in page]
    return envelope(items, len(found), query)


def _matches(row: Any, query: NameQuery) -> bool:
    return (query.id is None or row.id in query.id) and (query.archived == "include" or row.removed_at is None)


def _texts(row: Any) -> str:
    return fold(f"{row.name} {row.email or ''}")


def _named_by(row_id: ColumnElement[Any]) -> Select[Any]:
    return (
        select(row_id.label("id"), _USER.name, _USER.email, _MEMBER.removed_at)
        .join(User, _USER.id == _MEMBER.user_id)
        .where(_MEMBER.organization_id == bindparam("organization"))
        .order_by(_USER.name, _MEMBER.id)
    )


_OF_MEMBERS, _OF_USERS = _named_by(_MEMBER.id), _named_by(_USER.id)
