"""An example of the list of notifications, for the documentation."""

NOTIFICATION_PAGE = {
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
