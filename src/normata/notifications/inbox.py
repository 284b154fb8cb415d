"""The list of a user's notifications."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, select

from normata.notifications.model import Notification as NotificationTable
from normata.notifications.model import NotificationPayload
from normata.paging import PageQuery, QueryFlag, envelope, fetch_page
from normata.vocabulary import Timestamp, Token, sql_table
from normata.wire import Wire


class Notification(Wire):
    """A message to the current user about an organization."""

    id: str
    type: str
    category: Annotated[
        Token,
        Field(json_schema_extra={"x-extensible-enum": list(sql_table(NotificationTable).c.category.info["known"])}),
    ]
    payload: NotificationPayload
    read_at: Timestamp | None
    created_at: Timestamp


class NotificationQuery(PageQuery):
    """What the list of notifications takes."""

    unread_only: Annotated[QueryFlag, Field(description="Whether only unread notifications are listed.")] = False


def list_notifications(connection: Connection, user_id: str, query: NotificationQuery) -> dict[str, Any]:
    """A page of the user's own notifications of the organization, newest first; two statements."""
    table = NotificationTable
    statement = select(*sql_table(table).columns).where(
        table.organization_id == query.organization_id, table.user_id == user_id
    )
    if query.unread_only:
        statement = statement.where(table.read_at.is_(None))
    rows, total = fetch_page(connection, statement, [table.created_at.desc(), table.id.desc()], query)
    return envelope(
        [
            {
                "id": row["id"],
                "type": row["type"],
                "category": row["category"],
                "payload": row["payload"],
                "readAt": row["read_at"],
                "createdAt": row["created_at"],
            }
            for row in rows
        ],
        total,
        query,
    )
