"""The operations of notifications."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import FullyCountedPage, OrganizationId, OrganizationQuery
from normata.core.schema.wire import Input, Wire
from normata.notifications import inbox
from normata.notifications.model import Notification
from normata.notifications.read_marks import MARKING_WRITES, mark, mark_all


class NotificationPage(FullyCountedPage[inbox.Notification]):
    """A page of notifications."""


class NotificationsRead(Input):
    """The time up to which the current user has read the notifications of an organization."""

    organization_id: OrganizationId
    until: Annotated[
        Timestamp,
        Field(description="Notifications created at or before this time become read; later ones stay as they are."),
    ]


class NotificationsMarked(Wire):
    """The result of marking the notifications of the current user."""

    marked: int = Field(description="The number of unread notifications that were marked as read.")


_NOTIFICATION_PAGE: dict[str, Any] = {
    "items": [
        {
            "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
            "type": "record.restored",
            "category": "POLICIES",
            "payload": {
                "titleKey": "notifications.policy.restored.title",
                "bodyKey": "notifications.policy.restored.body",
                "params": {"label": "Travelling with Prototypes", "restoredBy": "Dana Demo"},
                "url": "/policies/policy-travel-with-prototypes/",
                "entityType": "Policy",
                "entityId": "policy-travel-with-prototypes",
                "entityLabel": "Travelling with Prototypes",
                "entityMeta": "travel-with-prototypes",
            },
            "readAt": None,
            "createdAt": "2026-11-20T09:14:03.120Z",
        }
    ],
    "total": 1,
    "page": 1,
    "limit": 100,
}

_NOTIFICATION: dict[str, Any] = _NOTIFICATION_PAGE["items"][0]
_READ_AT = "2026-11-20T10:02:41.507Z"


def _marking(*, is_read: bool) -> ChangeOperation:
    """The operation that marks one notification."""
    word, other = ("read", "unread") if is_read else ("unread", "read")
    phrase = "have read" if is_read else "have not read"
    becomes = "the current time" if is_read else "null"

    def work(unit: UnitOfWork, request: Request) -> dict[str, Any]:
        return mark(unit, request.id, is_read=is_read, prefix=request.prefix)

    return ChangeOperation(
        http_method="POST",
        path=f"/notifications/{{id}}/{word}/",
        operation_id=f"markNotification{word.title()}",
        tag="Notifications",
        summary=f"Mark a notification as {word}",
        description=f"""\
Records that you {phrase} one of your own notifications: `readAt` becomes {becomes}. If it is already {word}, nothing
changes, so it is safe to retry. The notifications of other users are not found, whatever your role. The
opposite is `POST /notifications/{{id}}/{other}/`.""",
        about=Notification,
        id_description="The id of one of your own notifications.",
        role="viewer",
        for_auditors=True,
        scope="write",
        work=work,
        present=lambda item: item,
        writes=MARKING_WRITES,
        answer=inbox.Notification,
        answer_description="The notification.",
        example=_NOTIFICATION | {"readAt": _READ_AT if is_read else None},
    )


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/notifications/",
        operation_id="listNotifications",
        tag="Notifications",
        summary="List your notifications",
        description="""\
The current user's own notifications of the organization, newest first.

A notification whose `readAt` is null is unread. Its texts are keys of translations (`titleKey`, `bodyKey`) with
the values of their placeholders (`params`): in the English texts, at `/notifications/texts/`, `{label}` stands for the
parameter `label`. `entityType` and `entityId` identify the row it is about, and `url` is the path to read that row; the
organization goes into the query, as in every read.""",
        query=inbox.NotificationQuery,
        # Not cached: every restore adds a notification, so concurrent restores would wait for the row of one revision.
        build=lambda transaction, request: inbox.list_notifications(
            transaction, request.caller.user_id, request.query, prefix=request.prefix
        ),
        ignores_unknown=True,
        answer=NotificationPage,
        answer_description="A page of notifications.",
        example=_NOTIFICATION_PAGE,
    ),
    ReadOperation(
        path="/notifications/unread-count/",
        operation_id="countUnreadNotifications",
        tag="Notifications",
        summary="Count your unread notifications",
        description="""\
The number of your own unread notifications of the organization. It is cheaper than the list, and intended for a
badge.""",
        query=OrganizationQuery,
        build=lambda transaction, request: inbox.count_unread(
            transaction, request.caller.user_id, request.organization_id
        ),
        answer=inbox.UnreadCount,
        answer_description="The number of unread notifications.",
        example={"unread": 3},
    ),
    _marking(is_read=True),
    _marking(is_read=False),
    ChangeOperation(
        http_method="POST",
        path="/notifications/read/",
        operation_id="markNotificationsRead",
        tag="Notifications",
        summary="Mark your notifications up to a time as read",
        description="""\
Records that you have read all of your own notifications of the organization that were created at or before `until`.
Send the `createdAt` of the newest one that you have shown: later notifications stay unread.""",
        role="viewer",
        for_auditors=True,
        scope="write",
        work=lambda unit, request: mark_all(unit, request.body.organization_id, request.body.until),
        present=lambda marked: {"marked": marked},
        writes=MARKING_WRITES,
        body=NotificationsRead,
        body_required=True,
        body_example={"organizationId": "org-harbourlight", "until": "2026-11-20T09:14:03.120Z"},
        answer=NotificationsMarked,
        answer_description="The number of notifications that were marked as read.",
        example={"marked": 3},
    ),
)
