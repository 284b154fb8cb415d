"""The address of the list of notifications."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import Connection

from normata import errors
from normata.http import JsonResponse, add_operation, read
from normata.identity.access import CurrentCaller, member_sight
from normata.notifications import inbox
from normata.paging import LIST_ERRORS, Page

router = APIRouter()


class NotificationPage(Page[inbox.Notification]):
    """A page of notifications."""


async def list_notifications(
    request: Request, caller: CurrentCaller, query: Annotated[inbox.NotificationQuery, Query()]
) -> Response:
    """The current user's own notifications of the organization, newest first.

    A notification whose `readAt` is null is unread. Its texts are keys of translations (`titleKey`, `bodyKey`) with
    what to fill in (`params`); `entityType` and `entityId` name what it is about.
    """

    def work(connection: Connection) -> dict[str, Any]:
        return inbox.list_notifications(connection, caller.user_id, query)

    return JsonResponse(await read(request, work, member_sight(caller, query.organization_id)))


add_operation(
    router,
    "GET",
    "/notifications/",
    list_notifications,
    operation_id="listNotifications",
    summary="List your notifications",
    tags=["Notifications"],
    response_model=NotificationPage,
    response_description="A page of notifications.",
    responses=errors.responses(*LIST_ERRORS),
)
