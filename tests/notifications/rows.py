"""Notifications as bundles have them."""

from __future__ import annotations

from typing import Any

_ALPHA, _BETA = "org-alpha", "org-beta"


def notification_rows() -> list[dict[str, Any]]:
    """Those of the editor of an organization, and of each other member."""
    return [*(_notification(number) for number in range(12)), *_of_others()]


def _notification(number: int) -> dict[str, Any]:
    """One of twelve notifications of alpha's editor, a day apart; every third one is read."""
    created = f"2026-03-{number + 1:02}T10:00:00.000Z"
    return {
        "id": f"note-{number:02}",
        "organizationId": _ALPHA,
        "userId": "user-editor",
        "type": "policy.published",
        "category": "POLICIES",
        "payload": {"titleKey": "t", "bodyKey": "b", "url": "/policies/", "params": {"n": number}},
        "readAt": created if number % 3 == 0 else None,
        "createdAt": created,
    }


def _of_others() -> list[dict[str, Any]]:
    """An unread and a read notification of each other member."""
    members = [("viewer", _ALPHA), ("auditor", _ALPHA), ("admin", _ALPHA), ("owner", _ALPHA), ("foreigner", _BETA)]
    return [
        {"id": f"note-{state}-{user}", "organizationId": organization_id, "userId": f"user-{user}", "readAt": read_at}
        | {"createdAt": created}
        for user, organization_id in members
        for state, created, read_at in (("unread", "2026-03-02", None), ("read", "2026-03-01", "2026-03-03"))
    ]
