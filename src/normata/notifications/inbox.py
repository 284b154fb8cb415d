"""A user's notifications: the list, and the number of unread ones."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field
from sqlalchemy import bindparam, func, select

from normata.core.db.transaction import Transaction
from normata.core.schema.descriptions import known_values
from normata.core.schema.fields import Timestamp, Token
from normata.core.schema.paging import PageQuery, QueryFlag, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.notifications.model import Notification as NotificationTable
from normata.notifications.model import NotificationPayload

_CATEGORIES = sql_table(NotificationTable).c.category.info["known"]


class Notification(Wire):
    """A message to the current user about an organization."""

    id: str
    type: str
    category: Annotated[
        Token,
        Field(
            description=f"What it is about.{known_values(_CATEGORIES)}",
            json_schema_extra={"x-extensible-enum": list(_CATEGORIES)},
        ),
    ]
    payload: NotificationPayload
    read_at: Timestamp | None
    created_at: Timestamp


class UnreadCount(Wire):
    """The number of unread notifications of the current user."""

    unread: int = Field(description="How many notifications of the organization are unread.")


class NotificationQuery(PageQuery):
    """The query of the list of notifications."""

    counts_all: ClassVar[bool] = True

    unread_only: Annotated[QueryFlag, Field(description="Whether only unread notifications are listed.")] = False


def list_notifications(
    transaction: Transaction, user_id: str, query: NotificationQuery, *, prefix: str = ""
) -> dict[str, Any]:
    """A page of the user's own notifications of the organization, newest first; two statements.

    ``prefix`` goes before the paths that they link to.
    """
    table = NotificationTable
    statement = select(*sql_table(table).columns).where(
        table.organization_id == query.organization_id, table.user_id == user_id
    )
    if query.unread_only:
        statement = statement.where(table.read_at.is_(None))
    found = fetch_page(transaction, statement, [table.created_at.desc(), table.id.desc()], query)
    return envelope([as_item(row, prefix) for row in found.rows], found, query)


def count_unread(transaction: Transaction, user_id: str, organization_id: str) -> dict[str, Any]:
    """The number of unread notifications of the user in the organization, in wire form."""
    return {"unread": transaction.scalar(_UNREAD, {"organization": organization_id, "user": user_id})}


def as_item(row: Any, prefix: str) -> dict[str, Any]:
    """A notification in wire form, with ``prefix`` before the path that it links to."""
    return {
        "id": row.id,
        "type": row.type,
        "category": row.category,
        "payload": _with_prefix(row.payload, prefix),
        "readAt": row.read_at,
        "createdAt": row.created_at,
    }


def _with_prefix(payload: dict[str, Any], prefix: str) -> dict[str, Any]:
    url = payload.get("url")
    return payload | {"url": prefix + url} if prefix and url and url.startswith("/") else payload


_TABLE = sql_table(NotificationTable)
_UNREAD = select(func.count()).where(
    _TABLE.c.organization_id == bindparam("organization"),
    _TABLE.c.user_id == bindparam("user"),
    _TABLE.c.read_at.is_(None),
)
