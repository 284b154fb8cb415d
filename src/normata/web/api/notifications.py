"""The operations of notifications."""

from __future__ import annotations

from normata.notifications import inbox
from normata.schema.paging import Page
from normata.web.operation import ListOperation, Operation


class NotificationPage(Page[inbox.Notification]):
    """A page of notifications."""


_NOTIFICATION_PAGE = {
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

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/notifications/",
        operation_id="listNotifications",
        tag="Notifications",
        summary="List your notifications",
        description="""\
The current user's own notifications of the organization, newest first.

A notification whose `readAt` is null is unread. Its texts are keys of translations (`titleKey`, `bodyKey`) with
what to fill in (`params`); `entityType` and `entityId` name what it is about.""",
        query=inbox.NotificationQuery,
        # Its pages are not kept: every restore adds a notification, and all of them at once would have to wait for each
        # other at the row of one revision.
        build=lambda transaction, query, asker: inbox.list_notifications(
            transaction, asker.caller.user_id, query, prefix=asker.prefix
        ),
        answer=NotificationPage,
        answer_description="A page of notifications.",
        example=_NOTIFICATION_PAGE,
    ),
)
