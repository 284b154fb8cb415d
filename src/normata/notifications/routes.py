"""The address of the list of notifications."""

from __future__ import annotations

from fastapi import APIRouter

from normata.lists import PageList, add_list
from normata.notifications import inbox
from normata.paging import Page

router = APIRouter()


class NotificationPage(Page[inbox.Notification]):
    """A page of notifications."""


add_list(
    router,
    PageList(
        "/notifications/",
        inbox.NotificationQuery,
        lambda connection, query, caller: inbox.list_notifications(connection, caller.user_id, query),
        # Restores add notifications, and do not change the organization's revision: all of them at once would have to
        # wait for each other at that one row.
        kept=False,
    ),
    operation_id="listNotifications",
    summary="List your notifications",
    description="""\
The current user's own notifications of the organization, newest first.

A notification whose `readAt` is null is unread. Its texts are keys of translations (`titleKey`, `bodyKey`) with
what to fill in (`params`); `entityType` and `entityId` name what it is about.""",
    tags=["Notifications"],
    response_model=NotificationPage,
    response_description="A page of notifications.",
)
